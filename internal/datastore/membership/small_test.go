package membership

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// TestSmallWorld: for each cluster with up to 3 voters and 2 learners, whatever is true of them, the next step may be
// done, and steps end where nothing new happens.
func TestSmallWorld(t *testing.T) {
	each := 1
	if testing.Short() {
		each = 5
	}
	t.Parallel()
	seen, all := map[Kind]int{}, 0
	smallClusters(func(c Cluster) {
		if all++; all%each != 0 || t.Failed() {
			return
		}
		step := Next(c)
		seen[step.Kind]++
		if wrong := unfit(c, step); wrong != "" {
			t.Fatalf("%s %s (%s): %s: %+v", step.Kind, step.Node, step.Why, wrong, c)
		}
		if all%(7*each) == 0 {
			settles(t, c)
		}
	})
	for _, kind := range []Kind{Wait, Add, Promote, Remove, Lead} {
		if seen[kind] < 20 {
			t.Errorf("only %d clusters have the step %q", seen[kind], kind)
		}
	}
}

// settles carries out step after step in a world in which each host that is added comes.
func settles(t *testing.T, c Cluster) {
	t.Helper()
	const enough = 20 // two learners go, three voters make place, five come, and the leader hands over
	at, steps := c, []Step(nil)
	for range enough {
		step := Next(at)
		steps = append(steps, step)
		if wrong := unfit(at, step); wrong != "" {
			t.Fatalf("%+v: %s: %+v, later than %+v", step, wrong, at, c)
		}
		if step == (Step{}) {
			atRest(t, at)
		}
		if step.Kind == Wait {
			return
		}
		at = done(at, step)
	}
	t.Fatalf("no end of steps: %+v: %+v", c, steps)
}

func atRest(t *testing.T, c Cluster) {
	t.Helper()
	ok := len(c.Members) == c.Count
	for _, m := range c.Members {
		ok = ok && !m.Learner && m.Down == 0 && c.leaves(m) == ""
	}
	if !ok {
		t.Fatalf("this is no cluster at rest: %+v", c)
	}
}

// done is a cluster behind a step.
func done(c Cluster, step Step) Cluster {
	c.Members = slices.Clone(c.Members)
	switch step.Kind {
	case Add:
		c.Members = append(c.Members, Member{Node: step.Node, Learner: true, CaughtUp: true})
	case Remove:
		c.Members = without(c.Members, step.Node)
	}
	for i := range c.Members {
		m := &c.Members[i]
		switch step.Kind {
		case Promote:
			m.Learner = m.Learner && m.Node != step.Node
		case Lead:
			m.Leader = m.Node == step.Node
		}
	}
	return c
}

// smallClusters shows each small cluster. Members that are away may be dead, and hosts that lost their disk ready.
func smallClusters(see func(Cluster)) {
	voters := fates(Member{}, 3)
	learners := append(fates(Member{Learner: true}, 2), fates(Member{Learner: true, CaughtUp: true}, 2)...)
	for n := range 4 {
		for _, v := range tuples(voters, n) {
			for k := range MaxLearners + 1 {
				for _, l := range tuples(learners, k) {
					for leader := range max(1, n) {
						variants(v, l, leader, see)
					}
				}
			}
		}
	}
}

// fate is a member that is, and why it leaves: 1 as the repository does not name it, 2 as an operator moves it.
type fate struct {
	Member
	why int
}

func fates(m Member, whys int) (out []fate) {
	for _, m.Down = range []time.Duration{0, time.Minute, replaceAfter} {
		for why := range whys {
			m.Moving = why == 2
			out = append(out, fate{m, why})
		}
	}
	return out
}

// tuples are all of a length, one of those that differ in their order alone.
func tuples(of []fate, length int) [][]fate {
	if length == 0 {
		return [][]fate{nil}
	}
	var out [][]fate
	for i, f := range of {
		for _, t := range tuples(of[i:], length-1) {
			out = append(out, append([]fate{f}, t...))
		}
	}
	return out
}

// variants shows a cluster with other hosts, ready or failed, and other wants.
func variants(voters, learners []fate, leader int, see func(Cluster)) {
	for _, others := range [][]Host{
		nil, {{Node: "x", Ready: true}}, {{Node: "x"}, {Node: "y", Ready: true, Failed: true}, {Node: "z", Ready: true}},
	} {
		for _, ready := range []bool{false, true} {
			for _, count := range []int{1, 3, 5} {
				c := Cluster{Count: count, ReplaceAfter: replaceAfter, Hosts: slices.Clone(others)}
				for i, f := range slices.Concat(voters, learners) {
					f.Node, f.Leader = fmt.Sprintf("h%d", i), i == leader && !f.Learner && f.Down == 0
					c.Members = append(c.Members, f.Member)
					if f.why != 1 {
						c.Hosts = append(c.Hosts, Host{Node: f.Node, Ready: ready && !f.Moving})
					}
				}
				see(c)
			}
		}
	}
}
