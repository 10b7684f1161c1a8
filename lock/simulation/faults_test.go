package simulation

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/pullet/pullet/internal/etcdmodel"
)

// act is something that happens to a fleet at a time.
type act struct {
	at   time.Duration
	name string
	whom string
	do   func()
}

// storm is how long things go wrong.
const storm = 45 * time.Minute

// timetable runs acts in their order.
func (f *fleet) timetable(ctx context.Context, acts []act) {
	slices.SortStableFunc(acts, func(a, b act) int { return int(a.at - b.at) })
	for _, a := range acts {
		timer := time.NewTimer(a.at - f.clock())
		select {
		case <-timer.C:
			f.record(event{what: a.name, node: a.whom})
			a.do()
		case <-ctx.Done():
			timer.Stop()
			return
		}
	}
}

func (f *fleet) upTo(d time.Duration) time.Duration {
	return time.Duration(1+f.rng.Int64N(int64(d/time.Microsecond))) * time.Microsecond
}

// faults draws what goes wrong.
func (f *fleet) faults() []act {
	var out []act
	var h *host
	add := func(name string, at time.Duration, do func()) { out = append(out, act{at, name, h.name, do}) }
	gone := 0
	for range f.rng.IntN(14) {
		h = f.hosts[f.rng.IntN(len(f.hosts))]
		h, at, lasts := h, f.upTo(storm), f.upTo([]time.Duration{20 * time.Second, 3 * time.Minute, 12 * time.Minute}[f.rng.IntN(3)])
		arrows := 1 + f.rng.IntN(60)
		switch f.rng.IntN(12) {
		case 0:
			add("kill", at, h.kill)
		case 1, 2, 3:
			add("kill at an arrow", at, func() { h.killAfter(arrows) })
		case 4:
			if gone*4 < len(f.hosts)-1 {
				gone++
				add("kill for good", at, func() { h.leave(arrows) })
			}
		case 5, 6:
			add("pause", at, h.pause)
			add("go on", at+lasts, h.resume)
		case 7, 8:
			add("partition", at, func() { h.cut(true) })
			add("heal", at+lasts, func() { h.cut(false) })
		case 9:
			add("cut all", at, func() { f.inflict(etcdmodel.Faults{Cut: true}) })
			add("heal all", at+lasts/4, func() { f.inflict(etcdmodel.Faults{}) })
		case 10:
			wrong := etcdmodel.Faults{
				LostRequest: 0.15 * f.rng.Float64(), LostAnswer: 0.25 * f.rng.Float64(), Busy: 0.3 * f.rng.Float64(),
				DropEvent: 0.5 * f.rng.Float64(), Slow: 1 + 30*f.rng.Float64(), NoSpace: f.rng.IntN(4) == 0,
			}
			add("trouble", at, func() { f.inflict(wrong) })
			add("no trouble", at+lasts, func() { f.inflict(etcdmodel.Faults{}) })
		case 11:
			add("compact", at, f.c.Compact)
		}
	}
	return out
}

// inflict sets what is wrong with etcd for everybody.
func (f *fleet) inflict(wrong etcdmodel.Faults) {
	f.mu.Lock()
	f.weather = append(f.weather, fit{time.Now(), wrong == etcdmodel.Faults{}})
	f.mu.Unlock()
	f.c.Inflict(wrong)
}

func (h *host) killAfter(arrows int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.proc != nil {
		h.proc.left = arrows
	} else {
		h.arm = arrows
	}
}

func (h *host) leave(arrows int) {
	h.mu.Lock()
	h.gone = true
	h.mu.Unlock()
	h.killAfter(arrows)
}

func (h *host) cut(cut bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if p := h.proc; p != nil {
		p.cut = cut
		for _, n := range p.lines {
			n.Inflict(etcdmodel.Faults{Cut: cut})
		}
		h.feels(!cut)
	}
}

// calmDown ends all faults. Hosts that were to be killed for good are.
func (f *fleet) calmDown() {
	f.mu.Lock()
	f.calm = true
	f.mu.Unlock()
	f.inflict(etcdmodel.Faults{})
	for _, h := range f.clones {
		f.leaves(h)
	}
	for _, h := range f.hosts {
		h.resume()
		h.cut(false)
		h.mu.Lock()
		gone := h.gone
		if h.arm = 0; h.proc != nil {
			h.proc.left = 0
		}
		h.mu.Unlock()
		if gone {
			h.kill()
		}
	}
}

// storming lets faults and operators loose on the fleet.
func (f *fleet) storming(ctx context.Context, o *operator) {
	wrong, acts := f.faults(), slices.Concat(o.acts(), o.more(), f.accidents(o))
	var both sync.WaitGroup
	both.Go(func() { f.timetable(ctx, acts) })
	f.timetable(ctx, wrong)
	timer := time.NewTimer(max(0, storm-f.clock()))
	defer timer.Stop()
	<-timer.C
	f.calmDown()
	both.Wait()
}
