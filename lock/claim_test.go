package lock

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/pullet/pullet/state"
)

// broken makes a node that cannot even begin: its failure halts its group.
func (f *fleet) broken(node, group string) {
	f.t.Helper()
	f.must(NewTurn(f.Store, f.request(node, group)).Fail(f.ctx, "it broke", Halting))
}

// switchOff is an operator's word against a scope.
func (f *fleet) switchOff(c state.Scope) {
	f.t.Helper()
	f.must(setSwitch(f.ctx, f.Store, c, state.Switch{Reason: "disk swap", By: "op"}, 0))
}

func (f *fleet) pause() {
	f.t.Helper()
	if ok, err := f.Switches.Pause(f.ctx, &state.Switch{Reason: "incident", By: "op"}, 0); !ok || err != nil {
		f.t.Fatalf("pause: %v %v", ok, err)
	}
}

// overtakes claims a place whoever comes first in the queue.
func (f *fleet) overtakes(node string, q Request) *Turn {
	f.t.Helper()
	other := f.request(node, q.Rules.Role)
	other.Rules.Limit = q.Rules.Limit
	turn := NewTurn(f.Store, other)
	_, before, err := turn.attempt(f.ctx, nil)
	f.must(err)
	if wait, _, err := turn.attempt(f.ctx, before); wait != nil || err != nil {
		f.t.Fatalf("%v %v", wait, err)
	}
	return turn
}

// decided is a turn that looked and may claim.
func (f *fleet) decided(q Request) (*Turn, *reading, Decision) {
	f.t.Helper()
	turn := NewTurn(f.Store, q)
	r, err := turn.enter(f.ctx)
	f.must(err)
	d := Decide(r.view)
	if d.Wait != nil {
		f.t.Fatalf("not admitted: %v", d.Wait)
	}
	return turn, r, d
}

// TestMovedInBetween: what an admission was decided from is compared when it is made, piece by piece.
func TestMovedInBetween(t *testing.T) {
	for name, move := range map[string]func(f *fleet, q Request){
		"nothing":                  func(*fleet, Request) {},
		"the gate":                 func(f *fleet, q Request) { f.broken("other", "web") },
		"the gate of a dependency": func(f *fleet, q Request) { f.broken("other", "db") },
		"the gate of all": func(f *fleet, q Request) {
			_, err := f.Client.Do(f.ctx, f.Rollouts.GateOp("v1", state.AllGroups, state.Gate{State: state.Halted}))
			f.must(err)
		},
		"the pause":        func(f *fleet, q Request) { f.pause() },
		"the host switch":  func(f *fleet, q Request) { f.switchOff(state.HostScope("me")) },
		"the role switch":  func(f *fleet, q Request) { f.switchOff(state.RoleScope("web")) },
		"the fleet switch": func(f *fleet, q Request) { f.switchOff(state.GlobalScope()) },
		"the version":      func(f *fleet, q Request) { f.propose("v2") },
		"the lease":        func(f *fleet, q Request) { f.die(q) },
		"the name": func(f *fleet, q Request) {
			f.die(q)
			_, err := f.Presences.Register(f.ctx, state.Node{Name: "me"}, state.Alive{Owner: "another host"}, nil, time.Minute)
			f.must(err)
		},
		"the slots": func(f *fleet, q Request) { f.overtakes("other", q) },
		"another of the slots": func(f *fleet, q Request) {
			first := f.overtakes("first", q)
			f.overtakes("other", q)
			f.must(first.Release(f.ctx)) // the place that was seen is free again, and another is not
		},
		"the fleet's slots": func(f *fleet, q Request) {
			other := f.request("other", "lb")
			other.Rules.Total = q.Rules.Total
			f.mustTry(other)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t)
			q := f.request("me", "web")
			q.Rules.Depends, q.Rules.Limit, q.Rules.Total = []string{"db"}, limit(2), 2
			f.must(NewTurn(f.Store, f.request("db1", "db")).Succeed(f.ctx))
			f.mustTry(q).Release(f.ctx) // db is closed now
			turn, r, d := f.decided(q)
			move(f, q)
			switch err := turn.admission.commit(f.ctx, r, d); {
			case name == "nothing" && (err != nil || !turn.Holds()):
				t.Errorf("%v", err)
			case name != "nothing" && (!errors.Is(err, ErrMoved) || turn.Holds()):
				t.Errorf("admitted: %v", err)
			}
		})
	}
}

// TestOlderClaimMeetsAHalt: a claim of an older version is no way around a halt of the newer one.
func TestOlderClaimMeetsAHalt(t *testing.T) {
	f := newFleet(t)
	f.mustTry(f.request("me", "web"))
	f.propose("v2")
	q := f.request("me", "web")
	turn, r, d := f.decided(q)
	f.broken("other", "web")
	if err := turn.admission.commit(f.ctx, r, d); !errors.Is(err, ErrMoved) {
		t.Errorf("admitted to a version that was halted in between: %v", err)
	}
	f.mustWait(q, "role web (halted)|other failed: it broke")
}

// TestAdoption: a node finds its own claim again, also that of an older version, with the same fence; no second one is
// made.
func TestAdoption(t *testing.T) {
	f := newFleet(t)
	q := f.request("me", "web")
	first := f.mustTry(q)
	key, fence := first.claim.held.key, first.Fence()
	again := f.mustTry(q)
	f.must(first.Fail(f.ctx, "broke", Halting))
	halted := f.mustTry(q) // it retries inside, also while its group is halted
	f.pause()
	paused := f.mustTry(q) // or all are paused
	_, err := f.Switches.Unpause(f.ctx)
	f.must(err)
	f.propose("v2")
	newer := f.mustTry(f.request("me", "web"))
	for i, s := range []*Turn{again, halted, paused, newer} {
		if s.Fence() != fence || s.claim.held.key != key {
			t.Errorf("%d: fence %d at %s, want %d at %s", i, s.Fence(), s.claim.held.key, fence, key)
		}
	}
	f.must(newer.Succeed(f.ctx))
	if most, made, left := f.mostClaims(f.Rollouts.SlotPrefix("web")); most != 1 || made != 1 || left != 0 {
		t.Errorf("most %d, made %d, left %d", most, made, left)
	}
}

// TestClaimInAnotherGroup: a node whose group is another one in the new version takes its claim along.
func TestClaimInAnotherGroup(t *testing.T) {
	f := newFleet(t)
	f.must(f.mustTry(f.request("me", "web")).Fail(f.ctx, "broke", Halting))
	f.propose("v2")
	q := f.request("me", "web")
	q.Rules.Group = "canaries"
	turn := f.mustTry(q)
	if got := f.keys(f.Rollouts.SlotPrefix("")); len(got) != 1 || got[0] != "canaries/0" {
		t.Errorf("claims %q", got)
	}
	f.must(turn.Succeed(f.ctx))
	f.mustTry(f.request("other", "web"))
}

// TestFence: after the claim was taken back, and given to somebody else, its old holder learns it and changes nothing.
func TestFence(t *testing.T) {
	for name, do := range map[string]func(*fleet, *Turn) error{
		"check":   func(f *fleet, s *Turn) error { return s.Check(f.ctx, "a step") },
		"succeed": func(f *fleet, s *Turn) error { return s.Succeed(f.ctx) },
		"fail":    func(f *fleet, s *Turn) error { return s.Fail(f.ctx, "broke", Halting) },
		"late":    func(f *fleet, s *Turn) error { return s.Fail(f.ctx, "broke", Late) },
		"broken":  func(f *fleet, s *Turn) error { return s.Fail(f.ctx, "broke", Broken) },
		"release": func(f *fleet, s *Turn) error { return errors.Join(s.Release(f.ctx), ErrFenced) }, // it wanted to be rid of it anyway
		"park":    func(f *fleet, s *Turn) error { return errors.Join(s.Park(f.ctx, state.Status{}), ErrFenced) },
	} {
		for _, gate := range []string{"no gate yet", "a gate"} {
			t.Run(name+", "+gate, func(t *testing.T) {
				t.Parallel()
				f := newFleet(t)
				turn := f.mustTry(f.request("me", "web"))
				f.must(turn.Check(f.ctx, "a step"))
				if gate == "a gate" {
					f.must(turn.Fail(f.ctx, "before", Halting))
					f.must(turn.Fail(f.ctx, "again", Halting))
				}
				made := *turn.claim
				_, err := f.Client.Delete(f.ctx, made.held.key)
				f.must(err)
				if err := do(f, turn); !errors.Is(err, ErrFenced) {
					t.Errorf("taken back: %v", err)
				}
				_, err = f.Client.Put(f.ctx, made.held.key, `{"node":"other","version":"v1"}`)
				f.must(err)
				*turn.claim = made
				before := len(f.events(""))
				if err := do(f, turn); !errors.Is(err, ErrFenced) {
					t.Errorf("given to another: %v", err)
				}
				if after := f.events(""); len(after) != before {
					t.Errorf("%s was written", after[before].Kv.Key)
				}
			})
		}
	}
}

// TestCheckNames: others see the step that a holder is in.
func TestCheckNames(t *testing.T) {
	f := newFleet(t)
	turn := f.mustTry(f.request("holder", "web"))
	f.must(turn.Check(f.ctx, "web/restart"))
	f.mustWait(f.request("me", "web"), "holder holds it|in step web/restart (alive)")
}

// TestCutOff: a lease that was not renewed for long stops the next step, before it ends.
func TestCutOff(t *testing.T) {
	f := newFleet(t)
	now := time.Duration(0)
	f.Store = state.Over(f.Client, strings.Split(f.Versions.CurrentKey(), "/")[2], func() time.Duration { return now })
	turn := f.mustTry(f.request("me", "web"))
	now = 39 * time.Second
	f.must(turn.Check(f.ctx, "a step"))
	now = 41 * time.Second // of 60
	if err := turn.Check(f.ctx, "a step"); !errors.Is(err, state.ErrLeaseLost) {
		t.Errorf("%v", err)
	}
}

// setSwitch sets a switch whatever it was before.
func setSwitch(ctx context.Context, s *state.Store, c state.Scope, w state.Switch, lasts time.Duration) error {
	all, err := s.Switches.List(ctx)
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
	return s.Switches.Set(ctx, c, to, was, lasts)
}
