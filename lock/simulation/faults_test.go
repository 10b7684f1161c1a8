package simulation

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/pullet/pullet/state"
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
			add("cut all", at, func() { f.c.inflict(faults{cut: true}) })
			add("heal all", at+lasts/4, func() { f.c.inflict(faults{}) })
		case 10:
			wrong := faults{
				lostRequest: 0.15 * f.rng.Float64(), lostAnswer: 0.25 * f.rng.Float64(), busy: 0.3 * f.rng.Float64(),
				dropEvent: 0.5 * f.rng.Float64(), slow: 1 + 30*f.rng.Float64(), noSpace: f.rng.IntN(4) == 0,
			}
			add("trouble", at, func() { f.c.inflict(wrong) })
			add("no trouble", at+lasts, func() { f.c.inflict(faults{}) })
		case 11:
			add("compact", at, f.c.compact)
		}
	}
	return out
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
	if h.proc != nil {
		h.proc.n.inflict(faults{cut: cut})
	}
}

// calmDown ends all faults. Hosts that were to be killed for good are.
func (f *fleet) calmDown() {
	f.mu.Lock()
	f.calm = true
	f.mu.Unlock()
	f.c.inflict(faults{})
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

// operator is who runs pullet's commands.
type operator struct {
	*fleet
	store *state.Store
	ctx   context.Context
}

// insist does something until the store says how it went, or for a while.
func (o *operator) insist(do func(ctx context.Context) error) error {
	var err error
	for range 4 {
		if err = do(o.ctx); err == nil || o.ctx.Err() != nil {
			return err
		}
		timer := time.NewTimer(3 * time.Second)
		select {
		case <-timer.C:
		case <-o.ctx.Done():
		}
		timer.Stop()
	}
	return err
}

// try is something that an operator does and looks at no further.
func (o *operator) try(do func(ctx context.Context) error) { _ = o.insist(do) }

// acts draws what operators and committers do.
func (o *operator) acts() []act {
	var out []act
	rng := o.rng
	for range o.coming {
		out = append(out, act{o.upTo(storm), "push", "", o.pushNext})
	}
	for range rng.IntN(7) {
		at, lasts := o.upTo(storm), o.upTo(8*time.Minute)
		h := o.hosts[rng.IntN(len(o.hosts))]
		scope := []state.Scope{state.HostScope(h.name), state.RoleScope(h.role), state.GlobalScope()}[rng.IntN(3)]
		some := state.Switch{Enabled: rng.IntN(5) == 0, Version: "v01", By: "operator", At: time.Now()}
		if !some.Enabled {
			some.Version = ""
		}
		switch rng.IntN(6) {
		case 0:
			out = append(out, act{at, "pause", h.name, func() { o.try(o.pause) }}, act{at + lasts, "unpause", h.name, func() { o.try(o.unpause) }})
		case 1, 2:
			out = append(out, act{at, "disable", h.name, func() { o.try(o.switching(scope, some)) }},
				act{at + lasts, "enable", h.name, func() { o.try(o.switching(scope, state.Switch{Enabled: true})) }})
		case 3:
			out = append(out, act{at, "resume", h.name, func() { o.try(o.resume) }})
		case 4:
			out = append(out, act{at, "decommission", h.name, func() { o.decommission(h, true) }})
		case 5:
			out = append(out, act{at, "back", h.name, func() { o.try(o.back) }}, act{at + lasts, "follow", h.name, func() { o.try(o.follow) }})
		}
	}
	return out
}

func (o *operator) pause(ctx context.Context) error {
	_, err := o.store.Pause(ctx, &state.Switch{By: "operator"}, 0)
	return err
}

func (o *operator) unpause(ctx context.Context) error {
	_, err := o.store.Unpause(ctx)
	return err
}

func (o *operator) switching(c state.Scope, w state.Switch) func(context.Context) error {
	return func(ctx context.Context) error { return setSwitch(ctx, o.store, c, w, 0) }
}

func (o *operator) resume(ctx context.Context) error {
	_, err := o.store.Resume(ctx, "", "operator")
	return err
}

// decommission gives a host up that does not answer.
func (o *operator) decommission(h *host, once bool) {
	o.try(func(ctx context.Context) error {
		_, err := o.store.Decommission(ctx, h.name, "operator", false)
		if once {
			return nil
		}
		return err
	})
}

// back sets the version before the current one again, and holds the fleet there.
func (o *operator) back(ctx context.Context) error {
	current, rev, err := o.store.Current(ctx)
	if err != nil || current == nil || current.Previous == "" {
		return err
	}
	bad := append(slices.Clone(current.Bad), current.ID)
	v := state.Version{ID: current.Previous, Previous: current.ID, Held: true, By: "operator", Bad: bad, Canary: o.find(current.Previous).waitsForCanaries()}
	is, err := o.store.Propose(ctx, v, current, rev)
	if err == nil && !is.Done {
		err = errors.New("another was faster")
	}
	return err
}

// follow ends a hold.
func (o *operator) follow(ctx context.Context) error {
	current, rev, err := o.store.Current(ctx)
	if err != nil || current == nil || !current.Held {
		return err
	}
	v := *current
	v.Held, v.By = false, "operator"
	_, err = o.store.Propose(ctx, v, current, rev)
	return err
}

// help does what the reasons to wait ask of an operator.
func (o *operator) help() {
	o.try(o.unpause)
	o.try(o.resume)
	o.try(o.follow)
	for _, h := range o.hosts {
		o.try(o.switching(state.HostScope(h.name), state.Switch{Enabled: true}))
		o.try(o.switching(state.RoleScope(h.role), state.Switch{Enabled: true}))
		h.mu.Lock()
		gone := h.gone
		h.mu.Unlock()
		if gone {
			o.decommission(h, false)
		}
	}
	o.try(o.switching(state.GlobalScope(), state.Switch{Enabled: true}))
}

// storming lets faults and operators loose on the fleet.
func (f *fleet) storming(ctx context.Context, o *operator) {
	wrong, acts := f.faults(), o.acts()
	var both sync.WaitGroup
	both.Go(func() { f.timetable(ctx, acts) })
	f.timetable(ctx, wrong)
	timer := time.NewTimer(max(0, storm-f.clock()))
	defer timer.Stop()
	<-timer.C
	f.calmDown()
	both.Wait()
}

// setSwitch sets a switch whatever it was before.
func setSwitch(ctx context.Context, s *state.Store, c state.Scope, w state.Switch, lasts time.Duration) error {
	all, err := s.Switches(ctx)
	if err != nil {
		return err
	}
	var was *state.Switch
	if have, there := all[c.String()]; there {
		was = &have
	}
	to := &w
	if w.Enabled && w.Version == "" && c.Kind != "host" { // as if it had never been set
		to = nil
	}
	return s.SetSwitch(ctx, c, to, was, lasts)
}
