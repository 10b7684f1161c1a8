package lock

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pullet/pullet/internal/patience"
	"github.com/pullet/pullet/state"
)

var enabled = state.Switch{Enabled: true}

func hostOf(t *Turn) state.Scope { return state.HostScope(t.req.node()) }

// TestSwitchPrecedence: host over role over global; nothing but its end lifts a pause.
func TestSwitchPrecedence(t *testing.T) {
	f := newFleet(t)
	q := f.request("me", "web")
	set := func(c state.Scope, w state.Switch) { t.Helper(); f.must(setSwitch(f.ctx, f.Store, c, w, 0)) }
	want := func(parts string) {
		t.Helper()
		if parts != "" {
			f.mustWait(q, parts)
			return
		}
		f.must(f.mustTry(q).Release(f.ctx))
	}
	host, role, all := state.HostScope("me"), state.RoleScope("web"), state.GlobalScope()
	set(all, state.Switch{Reason: "incident", By: "op"})
	want("global (disabled): disabled by op: incident; pullet enable --global")
	set(role, state.Switch{})
	want("role web (disabled): disabled; pullet enable --role web")
	set(role, enabled) // the same as none: what holds for all holds again
	want("global (disabled)")
	set(role, state.Switch{Enabled: true, Version: "another"})
	want("role web (one version): only version another is admitted")
	set(role, state.Switch{Enabled: true, Version: "v1"})
	want("")
	set(role, state.Switch{})
	set(host, enabled)
	want("")
	f.pause()
	want("the rollout (paused): paused by op: incident; pullet rollout resume")
	set(host, state.Switch{})
	want("host me (disabled)")
	set(host, enabled)
	_, err := f.Switches.Unpause(f.ctx)
	f.must(err)
	want("")
	set(state.HostScope("another"), state.Switch{})
	set(state.RoleScope("db"), state.Switch{})
	want("")
}

// TestSwitchWakes: who waits for a switch is told at once when it is lifted.
func TestSwitchWakes(t *testing.T) {
	for name, c := range map[string]struct{ set, lift func(f *fleet) }{
		"pause":  {(*fleet).pause, func(f *fleet) { _, err := f.Switches.Unpause(f.ctx); f.must(err) }},
		"host":   {func(f *fleet) { f.switchOff(state.HostScope("me")) }, func(f *fleet) { f.must(setSwitch(f.ctx, f.Store, state.HostScope("me"), enabled, 0)) }},
		"global": {func(f *fleet) { f.switchOff(state.GlobalScope()) }, func(f *fleet) { f.must(setSwitch(f.ctx, f.Store, state.GlobalScope(), enabled, 0)) }},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t)
			q := f.request("me", "web")
			c.set(f)
			told, admitted := make(chan struct{}, 10), make(chan error, 1)
			q.Waiting = func(*Wait) { told <- struct{}{} }
			turn := NewTurn(f.Store, q)
			go func() { admitted <- turn.Acquire(f.ctx) }()
			<-told
			began := time.Now()
			c.lift(f)
			if err := <-admitted; err != nil || time.Since(began) > patience.Stretch(5*time.Second) {
				t.Errorf("after %s: %v", time.Since(began), err)
			}
		})
	}
}

// TestNobodyPasses: once it is committed that nobody is admitted, no later claim is made: by nodes of several groups
// that race for places.
func TestNobodyPasses(t *testing.T) {
	for name, c := range map[string]struct {
		stop func(f *fleet)
		key  func(f *fleet) string // whose first write stops everybody
		gate string                // what they wait for then
	}{
		"pause":   {(*fleet).pause, func(f *fleet) string { return f.Switches.PauseKey() }, "(paused)"},
		"disable": {func(f *fleet) { f.switchOff(state.GlobalScope()) }, func(f *fleet) string { return f.Switches.Key(state.GlobalScope()) }, "global (disabled)"},
		"halt":    {func(f *fleet) { f.broken("bad", "base") }, func(f *fleet) string { return f.Rollouts.GateKey("v1", "base") }, "role base (halted)"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t)
			f.must(f.mustTry(f.request("base1", "base")).Succeed(f.ctx)) // all depend on it
			ctx, cancel := context.WithCancel(f.ctx)
			defer cancel()
			var nodes []Request
			var stopped sync.WaitGroup // the first of each queue: the others learn it when they are
			admitted := make(chan struct{}, 10000)
			firsts := map[string]func(){}
			for i := range 16 {
				role := fmt.Sprint("role", i%4)
				if firsts[role] == nil {
					stopped.Add(1)
					firsts[role] = sync.OnceFunc(stopped.Done)
				}
				q := f.request(fmt.Sprint("n", i), role)
				q.Rules.Limit, q.Rules.Depends = limit(2), []string{"base"}
				q.Waiting = func(w *Wait) {
					if strings.Contains(w.Gate, c.gate) {
						firsts[role]()
					}
				}
				nodes = append(nodes, q)
			}
			go func() {
				for range 40 {
					<-admitted
				}
				c.stop(f)
				stopped.Wait()
				cancel()
			}()
			f.atOnce(len(nodes), func(i int) error { return takeTurns(ctx, f, nodes[i], admitted) })
			if f.ctx.Err() != nil {
				t.Fatal("a queue was never stopped")
			}
			for _, q := range nodes {
				f.mustWait(q, c.gate)
			}
			f.noClaimAfter(c.key(f))
		})
	}
}

// takeTurns takes and gives back a place until ctx ends.
func takeTurns(ctx context.Context, f *fleet, q Request, admitted chan<- struct{}) error {
	turn := NewTurn(f.Store, q)
	for {
		if err := turn.Acquire(ctx); err != nil {
			if ctx.Err() == nil {
				return err
			}
			return nil
		}
		admitted <- struct{}{}
		if err := turn.Release(f.ctx); err != nil {
			return err
		}
	}
}

// noClaimAfter judges etcd's history: no claim is younger than the first write of a key.
func (f *fleet) noClaimAfter(key string) {
	f.t.Helper()
	stop := int64(0)
	for _, e := range f.events(key) {
		if stop == 0 && e.Type == clientv3.EventTypePut && !strings.Contains(string(e.Kv.Value), `"open"`) {
			stop = e.Kv.ModRevision
		}
	}
	before := 0
	for _, e := range f.events(f.Rollouts.SlotPrefix("")) {
		switch {
		case !e.IsCreate():
		case e.Kv.CreateRevision > stop:
			f.t.Errorf("%s was claimed at %d, after %s at %d", e.Kv.Key, e.Kv.CreateRevision, key, stop)
		default:
			before++
		}
	}
	if stop == 0 || before < 40 {
		f.t.Errorf("stopped at %d, after %d claims", stop, before)
	}
}

// TestNobodyPassesAHalt: the first failure halts its group, and no claim there, or where somebody depends on it, is
// made after that revision.
func TestNobodyPassesAHalt(t *testing.T) {
	f := newFleet(t)
	var mu sync.Mutex
	admitted := 0
	ctx, cancel := context.WithCancel(f.ctx)
	defer cancel()
	var nodes []Request
	for i := range 16 {
		role := []string{"web", "web", "web", "lb"}[i%4]
		q := f.request(fmt.Sprint("n", i), role)
		q.Rules.Limit = limit(4)
		if role == "lb" {
			q.Rules.Depends = []string{"web"}
			q.Waiting = func(w *Wait) {
				if strings.Contains(w.Gate, "role web (halted)") { // the first of the queue knows
					cancel()
				}
			}
		}
		nodes = append(nodes, q)
	}
	f.atOnce(len(nodes), func(i int) error {
		turn := NewTurn(f.Store, nodes[i])
		if err := turn.Acquire(ctx); err != nil {
			if asWait(err) == nil && ctx.Err() == nil {
				return err
			}
			return nil
		}
		mu.Lock()
		admitted++
		fails := admitted == 3
		mu.Unlock()
		if fails {
			return turn.Fail(f.ctx, "it broke", Halting)
		}
		return turn.Succeed(f.ctx)
	})
	gate := f.gate("web")
	if gate.State != state.Halted || len(gate.Failed) != 1 || gate.Node != gate.Failed[0] || gate.Reason != "it broke" {
		t.Fatalf("gate %+v", gate)
	}
	if admitted < 3 || admitted > 8 {
		t.Errorf("%d were admitted", admitted)
	}
	halted := int64(0)
	for _, e := range f.events(f.Rollouts.GateKey("v1", "web")) {
		if halted == 0 && strings.Contains(string(e.Kv.Value), state.Halted) {
			halted = e.Kv.ModRevision
		}
	}
	for _, e := range f.events(f.Rollouts.SlotPrefix("")) {
		if e.IsCreate() && e.Kv.CreateRevision > halted {
			t.Errorf("%s was claimed at %d, after the halt at %d", e.Kv.Key, e.Kv.CreateRevision, halted)
		}
	}
}

// TestWindow: outside its window a group waits, and says when it opens.
func TestWindow(t *testing.T) {
	f := newFleet(t)
	q := f.request("me", "web")
	until := "Mon 22:00 UTC"
	q.Rules.Closed = func(now time.Time) string {
		if time.Since(now) > time.Minute {
			t.Errorf("asked for %s", now)
		}
		return until
	}
	f.mustWait(q, "maintenance window of role web|it opens Mon 22:00 UTC")
	until = ""
	f.mustTry(q)
}
