package lock

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/pullet/pullet/state"
)

// stagedOnce is the choice of one master for a step that runs once in the fleet's life, as a node sees it that comes
// after some others.
func stagedOnce(later ...string) Election {
	return Election{ID: "1 of role=master for migrate", Limit: 1, Once: true, Candidates: func(node string, m state.Member) bool {
		return m.Role == "master" && !slices.Contains(later, node)
	}}
}

// TestChosenComesLater: a node that was chosen in an earlier version, and comes after a canary in this one, has its
// place taken by the canary. Else the canary would wait for its result, and it for the canary.
func TestChosenComesLater(t *testing.T) {
	step := chosenStep("migrate")
	step.Once = true
	for name, c := range map[string]struct {
		listed bool // in the inventory
		do     func(f *fleet, before *Candidate)
		later  []string // nodes that come after the canary
		taken  bool
	}{
		"it comes later":    {false, nil, []string{"m2"}, true},
		"by the inventory":  {true, nil, []string{"m2"}, true},
		"it comes no later": {false, nil, nil, false},
		"who asks is later": {false, nil, []string{"m1", "m2"}, false},
		"it began":          {false, func(f *fleet, before *Candidate) { f.began(before, step) }, []string{"m2"}, false},
		"it stood already": {false, func(f *fleet, before *Candidate) {
			f.must(before.Publish(f.ctx, step, "", state.StepResult{Result: "ok"}, []byte(`1`), 0))
		}, []string{"m2"}, false},
		"it is to begin anew": {false, func(f *fleet, before *Candidate) { f.began(before, step); f.again("migrate") }, []string{"m2"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t)
			before := f.elect(f.request("m2", "master"), stagedOnce())
			if !before.Chosen() {
				t.Fatal("nobody is chosen")
			}
			if c.do != nil {
				c.do(f, before)
			}
			f.propose("v2")
			canary := f.request("m1", "master")
			if c.listed {
				canary.Inventory = map[string]state.Member{"m1": {Role: "master"}, "m2": {Role: "master"}}
			}
			if got := f.elect(canary, stagedOnce(c.later...)); got.Chosen() != c.taken {
				t.Fatalf("the canary is chosen: %v", got.Chosen())
			}
			if !c.taken {
				return
			}
			if read, err := before.Record(f.ctx, step, 0); err != nil || !errors.Is(before.Start(f.ctx, step, "2", read), ErrFenced) {
				t.Error("the other one begins all the same", err)
			}
			if f.elect(f.request("m2", "master"), stagedOnce()).Chosen() {
				t.Error("the place is taken back")
			}
		})
	}
}

// began puts on record that a step succeeded at a node.
func (f *fleet) began(c *Candidate, step Step) {
	f.t.Helper()
	read, err := c.Record(f.ctx, step, 0)
	f.must(err)
	f.must(c.Start(f.ctx, step, "1", read))
	f.must(c.Publish(f.ctx, step, "1", state.StepResult{Result: "ok"}, []byte(`1`), 0))
}

// again has a step run again.
func (f *fleet) again(step string) {
	f.t.Helper()
	_, err := f.Steps.Settle(f.ctx, step, "ada", state.Settling{Force: true})
	f.must(err)
}

// TestLowerLimitOfOnce: the choice for a step that runs once in the fleet's life stands with another limit. Who has a
// place above it does not take the step, and nobody waits for its result.
func TestLowerLimitOfOnce(t *testing.T) {
	f := newFleet(t)
	step, two, one := chosenStep("migrate"), of(2), of(1)
	two.ID, one.ID, step.Once, two.Once, one.Once = "migrate", "migrate", true, true, true
	first, second := f.elect(f.request("m1", "master"), two), f.elect(f.request("m2", "master"), two)
	if !first.Chosen() || !second.Chosen() {
		t.Fatal("two are to be chosen")
	}
	for _, c := range []*Candidate{first, second} {
		read, err := c.Record(f.ctx, step, 0)
		f.must(err)
		f.must(c.Start(f.ctx, step, "1", read))
	}
	f.must(second.Publish(f.ctx, step, "1", state.StepResult{Result: "ok"}, []byte(`2`), 0))
	f.propose("v2")
	if !f.elect(f.request("m1", "master"), one).Chosen() || f.elect(f.request("m2", "master"), one).Chosen() {
		t.Error("m1 is to be chosen, and m2 not")
	}
	q := f.request("m3", "master")
	ctx, cancel := context.WithCancel(f.ctx)
	defer cancel()
	found, err := NewSteps(f.Store, q).Results(ctx, step, one, 0, nil, func(*Wait) { cancel() })
	if w := asWait(err); w == nil || len(w.Holders) != 1 || w.Holders[0].Node != "m1" {
		t.Errorf("%+v %v", found, err)
	}
	f.must(first.Publish(f.ctx, step, "1", state.StepResult{Result: "ok"}, []byte(`1`), 0))
	if found, err := NewSteps(f.Store, q).Results(f.ctx, step, one, 0, nil, nil); err != nil || len(found) != 1 || found["m1"].Node == "" {
		t.Errorf("%+v %v", found, err)
	}
	if !f.elect(f.request("m2", "master"), two).Chosen() {
		t.Error("m2 lost its place")
	}
}

// TestAbandonedAfterFailure: nobody ends a step that failed on a node which was given up since.
func TestAbandonedAfterFailure(t *testing.T) {
	f := newFleet(t)
	step, one := chosenStep("migrate"), of(1)
	one.ID, step.Once, one.Once = "migrate", true, true
	c := f.elect(f.request("m1", "master"), one)
	read, err := c.Record(f.ctx, step, 0)
	f.must(err)
	f.must(c.Start(f.ctx, step, "1", read))
	f.must(c.Publish(f.ctx, step, "1", state.StepResult{Result: Failed, Reason: "no such table"}, nil, 0))
	asks := f.elect(f.request("m2", "master"), one)
	if why, err := asks.Abandoned(f.ctx, step); why != "" || err != nil {
		t.Errorf("m1 tries again: %q, %v", why, err)
	}
	f.decommission("m1")
	why, err := asks.Abandoned(f.ctx, step)
	f.must(err)
	f.contains(why, "it failed on m1, which was decommissioned: no such table")
}

// TestAbandonedAboveLimit: nobody knows what came of a step that runs once in the fleet's life, where the node that
// began it was given up or comes back, also when a lower limit leaves that node no place.
func TestAbandonedAboveLimit(t *testing.T) {
	for asks, want := range map[string]string{"m3": "was decommissioned", "m2": "does not take it any more"} {
		f := newFleet(t)
		step, two, one := chosenStep("migrate"), of(2), of(1)
		two.ID, one.ID, step.Once, two.Once, one.Once = "migrate", "migrate", true, true, true
		first, second := f.elect(f.request("m1", "master"), two), f.elect(f.request("m2", "master"), two)
		for _, c := range []*Candidate{first, second} {
			read, err := c.Record(f.ctx, step, 0)
			f.must(err)
			f.must(c.Start(f.ctx, step, "1", read))
		}
		f.must(first.Publish(f.ctx, step, "1", state.StepResult{Result: "ok"}, []byte(`1`), 0))
		f.propose("v2")
		if asks != "m2" {
			f.decommission("m2")
		}
		why, err := f.elect(f.request(asks, "master"), one).Abandoned(f.ctx, step)
		f.must(err)
		f.contains(why, "its result is unknown: m2 began it and "+want+"; look at m2")
		if g := f.gate("master"); g.State != state.Halted || g.Unknown != step.ID {
			t.Errorf("%+v", g)
		}
	}
}
