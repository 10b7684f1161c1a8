package lock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pullet/pullet/internal/patience"
	"github.com/pullet/pullet/state"
)

// joint is a step of all nodes of a role.
func joint(role string) Step {
	return Step{ID: "db/join", Stage: "1", Members: func(_ string, m state.Member) (bool, string) { return m.Role == role, "" }}
}

// arrive is an arrival that must be answered.
func (f *fleet) arrive(q Request, how string) bool {
	f.t.Helper()
	open, err := NewSteps(f.Store, q).Arrive(f.ctx, joint("db"), how)
	f.must(err)
	return open
}

// await is one look at the barrier: "" is open.
func (f *fleet) await(q Request) string {
	f.t.Helper()
	ctx, cancel := context.WithCancel(f.ctx)
	defer cancel()
	err := NewSteps(f.Store, q).AwaitOpen(ctx, joint("db"), func(*Wait) { cancel() })
	if err == nil {
		return ""
	}
	if asWait(err) == nil {
		f.t.Fatal(err)
	}
	return err.Error()
}

func (f *fleet) mustAwait(q Request, want string) {
	f.t.Helper()
	if got := f.await(q); want == "" && got != "" || want != "" && got == "" {
		f.t.Errorf("got %q, want %q", got, want)
	} else {
		f.contains(got, want)
	}
}

// TestBarrierOpensAtOnce: of two hundred that arrive at the same time the last one opens it, in the transaction of its
// arrival; it opens once, everybody is told, and nothing else is written.
func TestBarrierOpensAtOnce(t *testing.T) {
	const nodes = 200
	f := newFleet(t)
	all := f.requests(nodes, "db")
	opened := make([]bool, nodes)
	f.atOnce(nodes, func(i int) (err error) {
		steps := NewSteps(f.Store, all[i])
		if opened[i], err = steps.Arrive(f.ctx, joint("db"), []string{Done, Skipped}[i%2]); err != nil {
			return err
		}
		return steps.AwaitOpen(f.ctx, joint("db"), func(*Wait) {})
	})
	f.opensOnce(all[0], nodes)
	if n := len(slices.DeleteFunc(opened, func(o bool) bool { return !o })); n != 1 {
		t.Errorf("%d arrivals opened it", n)
	}
}

// opensOnce judges the history of a barrier where nobody failed: it opened once, with the last arrival.
func (f *fleet) opensOnce(q Request, arrivals int) {
	f.t.Helper()
	s := NewSteps(f.Store, q)
	var in, opens []int64
	for _, e := range f.events(s.key(joint("db"), "")) {
		key := string(e.Kv.Key)
		switch {
		case strings.Contains(key, "/in/"):
			in = append(in, e.Kv.ModRevision)
		case strings.HasSuffix(key, "/open"):
			opens = append(opens, e.Kv.CreateRevision)
		}
	}
	if len(in) != arrivals || len(opens) != 1 || in[len(in)-1] != opens[0] {
		f.t.Errorf("%d arrivals, the last at %d, opened at %d", len(in), in[len(in)-1], opens)
	}
}

// TestBarrierMovedSinceTheTally: a barrier does not open on a count that is over.
func TestBarrierMovedSinceTheTally(t *testing.T) {
	f := newFleet(t)
	all := f.requests(2, "db")
	f.arrive(all[0], Done)
	b := &barrier{steps: NewSteps(f.Store, all[0]), step: joint("db")}
	tally, err := b.tally(f.ctx)
	f.must(err)
	f.arrive(all[0], Failed)
	if err := b.openUnlessMoved(f.ctx, tally); !errors.Is(err, ErrMoved) {
		t.Error(err)
	}
	f.arrive(all[0], Done)
	f.mustAwait(all[0], "not arrived yet")
}

// TestBarrierWaits: who waits is told for whom, and wakes when the last one comes; afterwards it stays open, for late
// nodes too.
func TestBarrierWaits(t *testing.T) {
	f := newFleet(t)
	all := f.requests(3, "db")
	if f.arrive(all[0], Done) || f.arrive(all[1], Skipped) {
		t.Fatal("it is open")
	}
	f.mustAwait(all[0], "barrier db/join: not arrived yet: db002 (alive); no action needed")
	told, woken := make(chan struct{}, 10), make(chan error, 1)
	go func() {
		woken <- NewSteps(f.Store, all[1]).AwaitOpen(f.ctx, joint("db"), func(*Wait) { told <- struct{}{} })
	}()
	<-told
	if !f.arrive(all[2], Done) {
		t.Error("the last one does not open it")
	}
	f.must(<-woken)
	f.opensOnce(all[0], 3)
	late := f.request("late", "db")
	if !f.arrive(late, Done) || !f.arrive(all[0], Failed) {
		t.Error("it is not open any more")
	}
	f.mustAwait(late, "")
}

// TestBarrierLateJoiner: a node that is not in the frozen roster does not count, and waits with the others.
func TestBarrierLateJoiner(t *testing.T) {
	f := newFleet(t)
	all := f.requests(2, "db")
	f.arrive(all[0], Done)
	late := f.request("late", "db")
	if f.arrive(late, Done) {
		t.Error("the late one opened it")
	}
	f.mustAwait(late, "db001 (alive)")
	if !f.arrive(all[1], Done) {
		t.Error("it is not open")
	}
	f.opensOnce(all[0], 2)
}

// TestBarrierTwice: who arrives twice counts once.
func TestBarrierTwice(t *testing.T) {
	f := newFleet(t)
	all := f.requests(3, "db")
	for range 3 {
		if f.arrive(all[0], Done) {
			t.Fatal("it is open")
		}
	}
	f.arrive(all[1], Done)
	f.mustAwait(all[0], "db002")
	if !f.arrive(all[2], Done) {
		t.Error("it is not open")
	}
}

// TestBarrierFailed: too many failures keep it closed and halt the group when all have come; a node that fixes its step
// opens it.
func TestBarrierFailed(t *testing.T) {
	f := newFleet(t)
	all := f.requests(3, "db")
	f.arrive(all[0], Failed)
	f.arrive(all[1], Done)
	if g := f.gate("db"); g.State == state.Halted {
		t.Errorf("halted before all have come: %+v", g)
	}
	if f.arrive(all[2], Done) {
		t.Error("it is open")
	}
	if g := f.gate("db"); g.State != state.Halted || g.Node != "db000" || !slices.Equal(g.Failed, []string{"db000"}) {
		t.Errorf("%+v", g)
	}
	f.mustAwait(all[1], "step db/join failed on db000")
	if !f.arrive(all[0], Done) {
		t.Error("it is fixed, and not open")
	}
	f.mustAwait(all[1], "")
}

// TestBarrierDoneThenFailed: the last word of a node counts.
func TestBarrierDoneThenFailed(t *testing.T) {
	f := newFleet(t)
	all := f.requests(2, "db")
	f.arrive(all[0], Done)
	f.arrive(all[0], Failed)
	if f.arrive(all[1], Done) {
		t.Error("it is open")
	}
	f.arrive(all[0], Skipped)
	f.mustAwait(all[1], "")
}

// TestBarrierSurvives: as many failures as the group survives let it open, with the last one or the first to look.
func TestBarrierSurvives(t *testing.T) {
	for last, hows := range map[string][]string{"done": {Failed, Done, Done}, "failed": {Done, Done, Failed}} {
		f := newFleet(t)
		all := f.requests(3, "db")
		open := false
		for i := range all {
			all[i].Rules.MaxFailures = 1
			open = f.arrive(all[i], hows[i])
		}
		if !open || f.gate("db").State == state.Halted {
			t.Errorf("the last is %s: open %v, %+v", last, open, f.gate("db"))
		}
	}
}

// TestBarrierAfterAResume: what an operator resumed is not halted again for the same failure, and is for a new one.
func TestBarrierAfterAResume(t *testing.T) {
	f := newFleet(t)
	all := f.requests(3, "db")
	f.arrive(all[0], Failed)
	f.arrive(all[1], Done)
	f.arrive(all[2], Done)
	if opened, err := f.Rollouts.Resume(f.ctx, "op", "db"); err != nil || len(opened) != 1 {
		t.Fatalf("%v %v", opened, err)
	}
	f.mustAwait(all[1], "step db/join failed on db000")
	if g := f.gate("db"); g.State == state.Halted {
		t.Errorf("the resume is undone: %+v", g)
	}
	f.arrive(all[1], Failed)
	if g := f.gate("db"); g.State != state.Halted {
		t.Errorf("a new failure does not halt: %+v", g)
	}
}

// TestBarrierKeepsAHalt: a barrier that fails in a halted group leaves the halt as it is: its cause is named, not what
// came of it.
func TestBarrierKeepsAHalt(t *testing.T) {
	f := newFleet(t)
	all := f.requests(2, "db")
	f.must(NewTurn(f.Store, all[1]).Fail(f.ctx, "it broke", Halting))
	before := f.gate("db")
	f.arrive(all[0], Failed)
	f.arrive(all[1], Done)
	if g := f.gate("db"); before.State != state.Halted || g.Reason != before.Reason || g.Node != "db001" {
		t.Errorf("halted by %+v, then %+v", before, g)
	}
}

// TestBarrierHaltsAfterNews: a gate that was written since a step failed keeps no halt away, unless an operator resumed
// it.
func TestBarrierHaltsAfterNews(t *testing.T) {
	f := newFleet(t)
	all := f.requests(2, "db")
	f.arrive(all[0], Failed)
	_, err := f.Client.Do(f.ctx, f.Rollouts.GateOp("v1", "db", state.Gate{State: "open"}))
	f.must(err)
	f.arrive(all[1], Done)
	if g := f.gate("db"); g.State != state.Halted || g.Node != "db000" {
		t.Errorf("%+v", g)
	}
}

// TestBarrierLost: who does not answer is waited for, given up, or counted as failed, by the rules.
func TestBarrierLost(t *testing.T) {
	for _, c := range []struct {
		onLost   string
		survives int
		waits    string
	}{
		{"", 0, "not arrived yet: db001 (not answering)|start db001 again, or give it up: pullet decommission db001"},
		{Hold, 0, "db001 (not answering)"},
		{Release, 0, ""},
		{Fail, 0, "step db/join failed on db001"},
		{Fail, 1, ""},
	} {
		f := newFleet(t)
		all := f.requests(2, "db")
		all[0].Rules.OnLost, all[0].Rules.MaxFailures = c.onLost, c.survives
		f.arrive(all[0], Done)
		f.mustAwait(all[0], "db001 (alive)")
		f.die(all[1])
		f.mustAwait(all[0], c.waits)
		if halted := f.gate("db").State == state.Halted; halted != strings.Contains(c.waits, "failed") {
			t.Errorf("%s: halted %v", c.onLost, halted)
		}
	}
}

// TestBarrierDecommissioned: a member that is given up is not waited for, and its failure does not count.
func TestBarrierDecommissioned(t *testing.T) {
	f := newFleet(t)
	all := f.requests(3, "db")
	f.arrive(all[0], Done)
	f.arrive(all[1], Failed)
	for _, node := range []string{"db001", "db002"} {
		_, err := f.Nodes.Decommission(f.ctx, node, "op", true)
		f.must(err)
	}
	f.mustAwait(all[0], "")
}

// TestBarrierNeverSeen: a node that only the inventory knows is waited for, also where lost ones are given up.
func TestBarrierNeverSeen(t *testing.T) {
	f := newFleet(t)
	q := f.request("db1", "db")
	q.Inventory, q.Rules.OnLost = map[string]state.Member{"never": {Role: "db"}}, Release
	f.arrive(q, Done)
	f.mustAwait(q, "never (never seen)|start never, remove it from nodes/")
}

// TestBarrierLeavesOut: disabled and frozen nodes are left out when the roster is frozen, and named; who asks is not.
func TestBarrierLeavesOut(t *testing.T) {
	f := newFleet(t)
	all := f.requests(3, "db")
	f.request("frozen1", "db")
	f.switchOff(state.HostScope("db001"))
	f.switchOff(state.HostScope("db000"))
	step := joint("db")
	step.Members = func(node string, m state.Member) (bool, string) {
		if node == "frozen1" {
			return false, "frozen"
		}
		return m.Role == "db", ""
	}
	steps := NewSteps(f.Store, all[0])
	if open, err := steps.Arrive(f.ctx, step, Done); open || err != nil {
		t.Fatalf("%v %v", open, err)
	}
	f.mustAwait(all[0], "not arrived yet: db002 (alive); left out: db001 (disabled), frozen1 (frozen)")
	if !f.arrive(all[2], Done) {
		t.Error("it is not open")
	}
}

// TestBarrierSuperseded: who waits leaves when the fleet moves on, and the next version's barrier is another one.
func TestBarrierSuperseded(t *testing.T) {
	f := newFleet(t)
	all := f.requests(2, "db")
	f.arrive(all[0], Done)
	f.propose("v2")
	if err := NewSteps(f.Store, all[0]).AwaitOpen(f.ctx, joint("db"), func(*Wait) {}); !errors.Is(err, ErrSuperseded) {
		t.Errorf("%v", err)
	}
	all[0].Version, all[0].VersionRev = f.version, f.rev
	f.mustAwait(all[0], "not arrived yet: db000 (alive), db001 (alive)")
}

// TestBarrierLeaseGone: a node that counts as dead does not arrive, and learns it at once.
func TestBarrierLeaseGone(t *testing.T) {
	f := newFleet(t)
	q := f.request("db1", "db")
	f.die(q)
	began := time.Now()
	if _, err := NewSteps(f.Store, q).Arrive(f.ctx, joint("db"), Done); !errors.Is(err, state.ErrLeaseLost) || time.Since(began) > patience.Stretch(5*time.Second) {
		t.Errorf("after %s: %v", time.Since(began), err)
	}
	for _, e := range f.events(NewSteps(f.Store, q).key(joint("db"), "")) {
		if !strings.HasSuffix(string(e.Kv.Key), "/roster") {
			t.Errorf("%s was written", e.Kv.Key)
		}
	}
}

// TestBarrierOfMany: in a large roster few nodes look at everything at a time, and each does now and then.
func TestBarrierOfMany(t *testing.T) {
	const nodes = 10000
	most, polls := 0, map[int]bool{}
	for poll := range 20 {
		n := 0
		for i := range nodes {
			node := state.Node{Name: fmt.Sprint("n", i)}
			b := &barrier{steps: &Steps{req: &Request{Presence: &state.Presence{Node: node}}}}
			if b.looksAtAll(nodes, poll) {
				n++
				polls[poll] = true
			}
		}
		most = max(most, n)
	}
	if most > 100 || len(polls) < 19 {
		t.Errorf("up to %d look at everything, in %d of 20 polls", most, len(polls))
	}
}

// TestRosterIsFrozenOnce: all that ask at once get one list.
func TestRosterIsFrozenOnce(t *testing.T) {
	f := newFleet(t)
	all := f.requests(10, "db")
	sizes := make([]int, len(all))
	f.atOnce(len(all), func(i int) error {
		if i%3 == 0 {
			if err := setSwitch(f.ctx, f.Store, state.HostScope(all[i].node()), state.Switch{}, 0); err != nil {
				return err
			}
		}
		roster, err := NewSteps(f.Store, all[i]).roster(f.ctx, joint("db"))
		if err == nil {
			sizes[i] = roster.Size
		}
		return err
	})
	if slices.Min(sizes) != slices.Max(sizes) {
		t.Errorf("sizes %v", sizes)
	}
	writes := 0
	for _, e := range f.events(NewSteps(f.Store, all[0]).key(joint("db"), "roster")) {
		if e.Type == clientv3.EventTypePut {
			writes++
		}
	}
	if writes != 1 {
		t.Errorf("%d writes", writes)
	}
}
