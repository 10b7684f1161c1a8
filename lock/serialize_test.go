package lock

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/pullet/pullet/state"
)

func (f *fleet) semaphore(step Step) string { return f.Steps.SemaphorePrefix(state.StepHash(step.ID)) }

// serialize is a node's turn at a step that so many take at a time.
func (f *fleet) serialize(q Request, limit func(int) int) *Turn {
	f.t.Helper()
	turn, err := NewSteps(f.Store, q).Serialize(f.ctx, joint("db"), limit)
	f.must(err)
	return turn
}

func (f *fleet) mustSerialize(q Request) *Turn {
	f.t.Helper()
	turn := f.serialize(q, limit(1))
	if wait, err := turn.Try(f.ctx); wait != nil || err != nil {
		f.t.Fatalf("%v %v", wait, err)
	}
	return turn
}

// stops says why a node may not take the step.
func (f *fleet) stops(q Request) string {
	f.t.Helper()
	turn := f.serialize(q, limit(1))
	wait, err := turn.Try(f.ctx)
	f.must(err)
	if wait == nil {
		f.t.Fatal("it may")
	}
	f.must(turn.Leave(f.ctx))
	return wait.Error()
}

// TestSerialize: never more than the count at once, by etcd's history, also as a share of who has the step; all get
// their turn.
func TestSerialize(t *testing.T) {
	for name, count := range map[string]func(int) int{"2": limit(2), "25%": func(roster int) int { return roster / 4 }} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t)
			all := f.requests(8, "db")
			f.request("web1", "web") // has no part in it
			meet := f.meet(2)
			f.atOnce(len(all), func(i int) error {
				turn, err := NewSteps(f.Store, all[i]).Serialize(f.ctx, joint("db"), count)
				if err != nil {
					return err
				}
				if err := turn.Acquire(f.ctx); err != nil {
					return err
				}
				meet()
				return errors.Join(turn.Check(f.ctx, "db/join"), turn.SucceedStep(f.ctx))
			})
			if most, made, left := f.mostClaims(f.semaphore(joint("db"))); most != 2 || made != 8 || left != 0 {
				t.Errorf("at most %d at a time, %d made, %d left", most, made, left)
			}
		})
	}
}

// TestSerializeStops: the first failure keeps the others out; its node may try again, and its success lets them go on.
func TestSerializeStops(t *testing.T) {
	f := newFleet(t)
	all := f.requests(3, "db")
	turn := f.mustSerialize(all[0])
	f.contains(f.stops(all[1]), "serialize db/join (1 at a time)|db000 holds it")
	f.must(turn.FailStep(f.ctx, "it broke", Halting))
	if turn.Holds() || len(f.keys(f.semaphore(joint("db")))) != 0 {
		t.Error("its place is not free")
	}
	f.contains(f.stops(all[1]), "step db/join (halted)|it failed on db000: it broke")
	told, woken := make(chan struct{}, 10), make(chan error, 1)
	all[1].Waiting = func(*Wait) { told <- struct{}{} }
	waiter := f.serialize(all[1], limit(1))
	go func() { woken <- waiter.Acquire(f.ctx) }()
	<-told
	again := f.serialize(all[0], limit(1))
	_, before, err := again.attempt(f.ctx, nil)
	f.must(err)
	if wait, _, err := again.attempt(f.ctx, before); wait != nil || err != nil { // the first of the queue is let by after its poll
		t.Fatalf("%v %v", wait, err)
	}
	f.must(again.SucceedStep(f.ctx))
	f.must(<-woken)
	f.must(waiter.SucceedStep(f.ctx))
	f.mustSerialize(all[2])
}

// TestSerializeTwoFailures: the others go on when the last of those that failed succeeded.
func TestSerializeTwoFailures(t *testing.T) {
	f := newFleet(t)
	all := f.requests(3, "db")
	two := []*Turn{f.serialize(all[0], limit(2)), f.serialize(all[1], limit(2))}
	for _, turn := range two {
		f.must(turn.Acquire(f.ctx))
	}
	for _, turn := range two {
		f.must(turn.FailStep(f.ctx, "it broke", Halting))
	}
	f.must(f.mustSerialize(all[0]).SucceedStep(f.ctx))
	f.contains(f.stops(all[2]), "(halted)")
	f.must(f.mustSerialize(all[1]).SucceedStep(f.ctx))
	f.mustSerialize(all[2])
}

// TestSerializeAtOnce: failures and successes at the same time are all recorded.
func TestSerializeAtOnce(t *testing.T) {
	f := newFleet(t)
	all := f.requests(8, "db")
	turns := make([]*Turn, len(all))
	for i := range all {
		turns[i] = f.serialize(all[i], limit(8))
		f.must(turns[i].Acquire(f.ctx))
	}
	f.atOnce(len(all), func(i int) error { return turns[i].FailStep(f.ctx, "it broke", Halting) })
	if g, _, err := f.Rollouts.Gate(f.ctx, "v1", turns[0].pool.group); err != nil || len(g.Failed) != 8 || g.State != state.Halted {
		t.Errorf("%+v %v", g, err)
	}
	for i := range all {
		f.must(turns[i].Acquire(f.ctx))
	}
	f.atOnce(len(all), func(i int) error { return turns[i].SucceedStep(f.ctx) })
	if g, _, err := f.Rollouts.Gate(f.ctx, "v1", turns[0].pool.group); err != nil || len(g.Failed) != 0 || g.State == state.Halted {
		t.Errorf("%+v %v", g, err)
	}
	if most, made, left := f.mostClaims(f.semaphore(joint("db"))); most != 8 || made != 16 || left != 0 {
		t.Errorf("at most %d at a time, %d made, %d left", most, made, left)
	}
}

// TestSerializeFence: a node whose place was taken back and given to another does not free it.
func TestSerializeFence(t *testing.T) {
	f := newFleet(t)
	all := f.requests(2, "db")
	for i := range all {
		all[i].Rules.OnLost = Release
	}
	turn := f.mustSerialize(all[0])
	f.die(all[0])
	f.mustSerialize(all[1])
	if got := f.lost("db000"); got.By != "db001" {
		t.Errorf("%+v", got)
	}
	if err := turn.FailStep(f.ctx, "it broke", Halting); !errors.Is(err, ErrFenced) {
		t.Errorf("%v", err)
	}
	f.must(turn.SucceedStep(f.ctx))
	if got := f.keys(f.semaphore(joint("db"))); len(got) != 1 {
		t.Errorf("the other's place is gone: %q", got)
	}
}

// TestSerializeAcrossVersions: a node on another version does not run the step side by side.
func TestSerializeAcrossVersions(t *testing.T) {
	f := newFleet(t)
	f.mustSerialize(f.request("db1", "db"))
	f.propose("v2")
	q := f.request("db2", "db")
	f.contains(f.stops(q), "serialize db/join|db1 holds it")
	done, err := f.Nodes.Decommission(f.ctx, "db1", "op", true)
	freed := done.Freed
	if err != nil || len(freed) != 1 || freed[0] != fmt.Sprintf("semaphore/%s/0", state.StepHash("db/join")) {
		t.Errorf("%q %v", freed, err)
	}
	f.mustSerialize(q)
}

// TestSerializeIsNoSlot: what stops a rollout does not stop a serialized step.
func TestSerializeIsNoSlot(t *testing.T) {
	f := newFleet(t)
	q := f.request("db1", "db")
	f.pause()
	f.broken("other", "db")
	f.switchOff(state.RoleScope("db"))
	f.mustSerialize(q)
}

// TestSerializeSuperseded: who waits for its turn at a step leaves when the fleet moves on; who corrects drift of an
// older version waits.
func TestSerializeSuperseded(t *testing.T) {
	f := newFleet(t)
	all := f.requests(3, "db")
	holder := f.mustSerialize(all[0])
	all[2].Stale = true
	ended, told := make([]chan error, 3), make(chan string, 10)
	for i := range all[1:] {
		q := &all[1+i]
		q.Waiting = func(w *Wait) { told <- q.node() }
		waiter := f.serialize(*q, limit(1))
		ended[1+i] = make(chan error, 1)
		go func() { ended[1+i] <- waiter.Acquire(f.ctx) }()
		<-told
	}
	f.propose("v2")
	f.must(holder.SucceedStep(f.ctx))
	if err := <-ended[1]; !errors.Is(err, ErrSuperseded) {
		t.Errorf("%v", err)
	}
	f.must(<-ended[2])
}

// TestStopStepTwice: a failure whose record was not confirmed is no lost claim.
func TestStopStepTwice(t *testing.T) {
	f := newFleet(t)
	turn := f.mustSerialize(f.request("db1", "db"))
	key, fence := turn.claim.held.key, turn.claim.held.fence
	f.must(turn.FailStep(f.ctx, "it broke", Halting))
	turn.claim.held.key, turn.claim.held.fence = key, fence // as when the answer is lost
	f.must(turn.FailStep(f.ctx, "it broke", Halting))
	if turn.Holds() {
		t.Error("it still has its place")
	}
}

// TestSerializeLost: a node that is lost in a serialized step has failed it where the rules say so, and no other starts
// it, however many failures a group survives.
func TestSerializeLost(t *testing.T) {
	f := newFleet(t)
	holder, next := f.request("db1", "db"), f.request("db2", "db")
	for _, q := range []*Request{&holder, &next} {
		q.Rules.OnLost, q.Rules.MaxFailures = Fail, 1
	}
	f.mustSerialize(holder)
	f.die(holder)
	if why := f.stops(next); !strings.Contains(why, "(halted)") || !strings.Contains(why, "db1") {
		t.Error(why)
	}
}

// TestPutBackAtAStep: a place at a serialized step that the store forgot is claimed again, beside those that others
// have meanwhile.
func TestPutBackAtAStep(t *testing.T) {
	f := newFleet(t)
	turn := f.mustSerialize(f.request("db1", "db"))
	held, lives := turn.Slot(), turn.req.Presence.Lives()
	f.must(turn.Release(f.ctx))
	f.mustSerialize(f.request("db2", "db"))
	for range 2 { // once more changes nothing
		f.putsBack(held, lives)
		if got := f.keys(f.Steps.SemaphorePrefix(held.Step)); len(got) != 2 {
			t.Errorf("%q", got)
		}
	}
}

// TestLeftMakesNoRoster: a run of a version that the fleet has left does not say who belongs to a barrier.
func TestLeftMakesNoRoster(t *testing.T) {
	f := newFleet(t)
	q := f.request("db1", "db")
	f.propose("v2")
	if _, err := NewSteps(f.Store, q).Arrive(f.ctx, joint("db"), "done"); !errors.Is(err, ErrSuperseded) {
		t.Errorf("%v", err)
	}
}
