// Package simulation runs fleets of agents in virtual time, over the model of etcd in internal/etcdmodel.
package simulation

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pullet/pullet/internal/etcdmodel"
	"github.com/pullet/pullet/internal/tier"
	"github.com/pullet/pullet/state"
)

var (
	oneSeed   = flag.Int64("seed", -1, "the only seed to simulate")
	manySeeds = flag.Int64("seeds", 400, "how many seeds to simulate")
	firstSeed = flag.Int64("from", 0, "the first seed to simulate")
)

// patience is how long a fleet that nothing troubles any more may take until all run its version.
const patience = 6 * time.Hour

// TestFleet holds fleets to what is promised of gates, a fleet for each seed.
func TestFleet(t *testing.T) {
	first, n := *firstSeed, *manySeeds
	if testing.Short() {
		n = min(n, 100)
	}
	if *oneSeed >= 0 {
		first, n = *oneSeed, 1
		onOneProcessor(t)
	}
	for seed := first; seed < first+n; seed++ {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			t.Parallel()
			if broken := simulate(t, uint64(seed)); len(broken) > 0 {
				t.Errorf("%s\nrun it alone: go test ./lock/simulation -run TestFleet -seed %d", strings.Join(broken, "\n"), seed)
			}
		})
	}
}

// simulate is one fleet's life. It says which promises were broken.
func simulate(t *testing.T, seed uint64) (broken []string) {
	synctest.Test(t, func(t *testing.T) {
		f, _ := live(t, seed)
		broken = f.broken
		if *oneSeed >= 0 {
			f.tell(t)
		}
	})
	return broken
}

// live takes a fleet through its storm, and through the calm after it.
func live(t *testing.T, seed uint64) (*fleet, []etcdmodel.Write) {
	f := newFleet(t, seed)
	defer f.c.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	f.ctx = ctx
	for _, h := range f.hosts {
		f.running.Go(func() { h.run(ctx) })
	}
	o := f.operator(ctx)
	f.storming(ctx, o)
	f.settles(o)
	cancel()
	for _, h := range f.hosts {
		h.kill()
	}
	f.running.Wait()
	f.check()
	return f, f.c.Writes()
}

// tidied is how many minutes what is held may take to be given back when every host runs the version: the next pull of
// its node does it, and a node may be at work on drift.
const tidied = 15

// settles waits until every host that lives runs the fleet's version, with the help that an operator can give.
func (f *fleet) settles(o *operator) {
	began, fixed, calm := time.Now(), false, 0
	for time.Since(began) < patience {
		o.help()
		time.Sleep(time.Minute)
		late := f.late()
		if len(late) > 0 || f.leaving() {
			calm = 0
		} else if calm++; calm > 1 && (len(f.held()) == 0 || calm > tidied) { // the operator had a look behind the last of them
			f.tidy()
			return
		}
		if !fixed && (f.hopeless() || time.Since(began) > 30*time.Minute && f.unknown()) {
			fixed = true
			f.push(f.head().fixed(commit(len(f.releases) + 1)))
			o.try(o.start) // canaries that cannot get through keep newer commits waiting
		}
	}
	f.breaks("%s wait for ever: %s", strings.Join(f.late(), ", "), f.reasons())
}

// late are the hosts that live and do not run the fleet's version, or have not told its rollout that they are through.
func (f *fleet) late() (out []string) {
	current := f.current()
	for _, h := range f.hosts {
		h.mu.Lock()
		disk, err := state.LoadLocal(h.state)
		f.must(err)
		if !h.gone && (current == nil || !current.Same(disk.Running) || !disk.Validated || disk.Failed != "" || disk.Upgrading != "" ||
			disk.Through != current.Rollout()) {
			out = append(out, h.name)
		}
		h.mu.Unlock()
	}
	return out
}

// leaving reports a host that is gone and whose lease has not ended: until then it cannot be given up.
func (f *fleet) leaving() bool {
	present := f.present()
	return slices.ContainsFunc(f.hosts, func(h *host) bool {
		_, alive := present[prefix+"alive/"+h.name]
		return h.gone && alive
	})
}

// hopeless reports that only a commit can let the fleet go on: somebody is frozen.
func (f *fleet) hopeless() bool {
	current := f.current()
	if current == nil {
		return false
	}
	r := f.find(current.ID)
	for _, h := range f.hosts {
		if r.limit(r.group(h.name, h.role), 1) == 0 {
			return true
		}
	}
	return false
}

// unknown reports a result that nobody knows, or that failed on a host that is gone or waits for other groups: an
// operator would commit a change.
func (f *fleet) unknown() bool {
	if f.cutOff() {
		return true
	}
	present := f.present()
	for key, kv := range present {
		of := strings.TrimPrefix(key[strings.LastIndexByte(key, '/'):], "/")
		gone := slices.ContainsFunc(f.hosts, func(h *host) bool { return h.name == of && h.gone })
		var waits state.Status // behind those who read its result, maybe
		parse(present[prefix+"status/rollout/pending/"+of], &waits)
		stuck := gone || waits.Kind == state.WaitRole
		if strings.Contains(key, "/result/") && (strings.Contains(kv.Value, `"result":"unknown"`) || stuck && strings.Contains(kv.Value, `"result":"failed"`)) {
			return true
		}
	}
	return false
}

// cutOff reports a step that must not run twice and has no end.
func (f *fleet) cutOff() bool {
	open := map[string]bool{}
	for _, e := range f.log {
		if e.step != nil && e.host != nil && !e.step.repeatable && (e.what == "start" || e.what == "ok" || e.what == failed) {
			open[e.node+" "+e.step.name] = e.what == "start"
		}
	}
	return slices.Contains(slices.Collect(maps.Values(open)), true)
}

// tell prints what happened.
func (f *fleet) tell(t *testing.T) {
	for _, h := range f.hosts {
		t.Logf("%s: loop %t, every %s, gone %t, %s", h.name, h.loop, h.interval, h.gone, h.state)
	}
	for _, r := range f.releases {
		t.Logf("%+v", *r)
		for _, s := range r.steps {
			t.Logf("    %+v", *s)
		}
	}
	log, n := f.log, 0
	for _, w := range f.c.Writes() {
		for n < len(log) && log[n].at.Before(w.Time) {
			t.Log(log[n].tell(f.began))
			n++
		}
		verb := "changed"
		switch {
		case w.Created:
			verb = "created"
		case w.Deleted:
			verb = "deleted"
		}
		if !strings.Contains(w.Key, "/bell") && !strings.Contains(w.Key, "/facts/") {
			t.Logf("%s @%d %s %s %s %.160s", w.Time.Sub(f.began), w.Revision, w.By, verb, strings.TrimPrefix(w.Key, "/pullet/f/"), w.Value)
		}
	}
}

// onOneProcessor runs what the product starts at one instant in the order in which it starts it.
func onOneProcessor(t *testing.T) {
	before := runtime.GOMAXPROCS(1)
	t.Cleanup(func() { runtime.GOMAXPROCS(before) })
}

// TestSeedReplays: what a seed shows it shows again, to the nanosecond, on one processor. The race detector shuffles
// what starts at one instant.
func TestSeedReplays(t *testing.T) {
	tier.Long(t, "simulates four fleets twice, on one processor")
	onOneProcessor(t)
	for seed := uint64(11); seed < 15; seed++ { // with clones, orphans and a restored etcd among them
		var lives [2][]etcdmodel.Write
		for i := range lives {
			synctest.Test(t, func(t *testing.T) { _, lives[i] = live(t, seed) })
		}
		for i, w := range lives[0][:min(len(lives[0]), len(lives[1]))] {
			again := lives[1][i]
			if w.Value, again.Value = "", ""; w != again { // values have the secrets of hosts and the names of runs
				t.Fatalf("seed %d, write %d of %d and %d:\n%+v\n%+v", seed, i, len(lives[0]), len(lives[1]), lives[0][i], lives[1][i])
			}
		}
		if len(lives[0]) != len(lives[1]) {
			t.Errorf("seed %d: %d and %d writes", seed, len(lives[0]), len(lives[1]))
		}
	}
}
