package lock

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/pullet/pullet/state"
)

// group is a model of a group whose nodes are admitted by Decide and end in any way.
type group struct {
	limit, spares, survives int
	claims                  map[int]state.Claim
	gate                    state.Gate
}

func (g *group) view(node string) View {
	return View{Node: node, Name: "slot web", Scope: "role web", Rollout: "v1", Limit: g.limit, MaxHostFaults: g.spares, Claims: g.claims, Gate: g.gate}
}

func (g *group) survived() survived { return survived{failures: g.survives, hosts: g.spares} }

func (g *group) place(node string) (int, bool) { v := g.view(node); return v.own(g.claims) }

// TestHostFaultsKeepTheLimit: whatever fails, and in whatever order, no more than the limit plus the host faults that
// are survived hold claims, no more than the limit of them for another reason than a host fault, and nobody new is
// admitted behind a halt.
func TestHostFaultsKeepTheLimit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := &group{
			limit: rapid.IntRange(1, 3).Draw(t, "limit"), spares: rapid.IntRange(0, 3).Draw(t, "spares"),
			survives: rapid.IntRange(0, 1).Draw(t, "survives"), claims: map[int]state.Claim{}, gate: state.Gate{State: "open"},
		}
		for range rapid.IntRange(5, 60).Draw(t, "events") {
			node := fmt.Sprint("n", rapid.IntRange(0, 7).Draw(t, "node"))
			at, holds := g.place(node)
			halted := g.gate.State == state.Halted
			switch event := rapid.SampledFrom([]string{"admit", "succeed", "fault", "fail"}).Draw(t, "event"); {
			case event == "admit":
				d := Decide(g.view(node))
				if d.Wait != nil {
					continue
				}
				if halted && !holds && !g.gate.Counts(node) {
					t.Fatalf("%s is admitted behind a halt", node)
				}
				g.claims[d.Index] = state.Claim{Node: node, Rollout: "v1"}
				if !holds {
					g.admitted(t)
				}
			case !holds:
			case event == "succeed":
				uncount(&g.gate, node)
				delete(g.claims, at)
			case event == "fault":
				g.survived().count(&g.gate, node, "disk full", Host)
			case event == "fail":
				g.survived().count(&g.gate, node, "exit code 1", Halting)
			}
			g.check(t)
		}
	})
}

// admitted holds the claims to the limit when one was added.
func (g *group) admitted(t *rapid.T) {
	own := 0
	for _, c := range g.claims {
		if slices.Contains(g.gate.Hosts, c.Node) {
			own++
		}
	}
	if len(g.claims)-own > g.limit {
		t.Fatalf("%d claims, %d of them of hosts at fault: the limit is %d", len(g.claims), own, g.limit)
	}
}

func (g *group) check(t *rapid.T) {
	if len(g.claims) > g.limit+g.spares {
		t.Fatalf("%d claims: the limit is %d, and %d host faults are survived", len(g.claims), g.limit, g.spares)
	}
	if (len(g.gate.Hosts) > g.spares || len(g.gate.Failed) > g.survives) && g.gate.State != state.Halted {
		t.Fatalf("goes on: %+v", g.gate)
	}
	for _, n := range g.gate.Hosts {
		if slices.Contains(g.gate.Failed, n) {
			t.Fatalf("%s counts twice: %+v", n, g.gate)
		}
	}
}

// TestHostFaults: a host fault keeps its claim and stops nobody until there are too many of them; it gives the place in
// the whole fleet back.
func TestHostFaults(t *testing.T) {
	f := newFleet(t)
	var all []Request
	for _, q := range f.requests(4, "web") {
		q.Rules.Total, q.Rules.MaxHostFailures = 1, func(roster int) int { return roster / 2 }
		all = append(all, q)
	}
	turns := []*Turn{}
	for i := range 3 {
		turn := f.mustTry(all[i])
		f.must(turn.Fail(f.ctx, "no space left on device", Host))
		turns = append(turns, turn)
		o, err := f.Views.Fleet(f.ctx, false)
		f.must(err)
		if st := o.Statuses[all[i].node()][state.Rollout]; !st.Host || st.State != state.Failed || !turn.Holds() || len(o.Slots["web"]) != i+1 {
			t.Errorf("%+v, holds %v, %v", st, turn.Holds(), o.Slots)
		}
	}
	f.mustWait(all[3], "role web (halted)|host faults: 3, and rollout.maxHostFailures is 2 here: no space left on device|pullet rollout resume")
	f.must(turns[0].Fail(f.ctx, "no space left on device", Host))
	if g := f.gate("web"); len(g.Hosts) != 3 || len(g.Failed) != 0 {
		t.Errorf("a node counts once: %+v", g)
	}
	f.must(turns[0].Fail(f.ctx, "exit code 1", Halting))
	f.must(turns[0].Fail(f.ctx, "no space left on device", Host))
	if g := f.gate("web"); len(g.Hosts) != 2 || strings.Join(g.Failed, " ") != all[0].node() {
		t.Errorf("a failure of the commit is hidden by one of its host: %+v", g)
	}
	f.must(turns[0].Succeed(f.ctx))
	f.must(turns[1].Succeed(f.ctx))
	if g := f.gate("web"); len(g.Hosts) != 1 || len(g.Failed) != 0 {
		t.Errorf("success strikes it: %+v", g)
	}
}

// TestHostFaultAtABarrier: the others go on behind it while few enough hosts are at fault.
func TestHostFaultAtABarrier(t *testing.T) {
	for _, survives := range []int{0, 1} {
		f := newFleet(t)
		all := f.requests(3, "db")
		step := Step{ID: "site/sync", Members: func(string, state.Member) (bool, string) { return true, "" }}
		var open bool
		for i, how := range []string{Done, Faulty, Done} {
			all[i].Rules.MaxHostFailures = func(int) int { return survives }
			var err error
			open, err = NewSteps(f.Store, all[i]).Arrive(f.ctx, step, how)
			f.must(err)
		}
		if g := f.gate("db"); open != (survives == 1) || (g.State == state.Halted) != (survives == 0) || len(g.Failed) != 0 {
			t.Errorf("%d survived: open %v, %+v", survives, open, g)
		}
	}
}

// TestHostFaultAtASerializedStep: the next host takes the step.
func TestHostFaultAtASerializedStep(t *testing.T) {
	f := newFleet(t)
	all := f.requests(3, "db")
	step := Step{ID: "site/one", Members: func(string, state.Member) (bool, string) { return true, "" }}
	for i, want := range []string{"open", state.Halted} {
		all[i].Rules.MaxHostFailures = limit(1)
		turn, err := NewSteps(f.Store, all[i]).Serialize(f.ctx, step, limit(1))
		f.must(err)
		f.must(turn.Acquire(f.ctx))
		f.must(turn.FailStep(f.ctx, "no space left on device", Host))
		if g := f.gate("step-" + state.StepHash(step.ID)); g.State != want || len(g.Hosts) != i+1 {
			t.Errorf("after %d: %+v", i+1, g)
		}
	}
}
