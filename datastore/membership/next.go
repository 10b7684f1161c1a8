package membership

import (
	"cmp"
	"fmt"
	"slices"
)

// Kind is what a step does.
type Kind string

// The kinds of steps.
const (
	Wait    Kind = ""        // nothing can be done: Why says what it waits for, "" that all is as it is to be
	Add     Kind = "add"     // a host becomes a learner
	Promote Kind = "promote" // a learner becomes a voter
	Remove  Kind = "remove"  // a member is one no more
	Lead    Kind = "lead"    // a voter becomes the leader
)

// Step is the next thing to do.
type Step struct {
	Kind Kind   `json:"kind"`
	Node string `json:"node"`
	Why  string `json:"why"`
}

// Next says what is to be done next. As long as fewer voters answer than a quorum it is nothing: who can write nothing
// changes nothing.
func Next(c Cluster) Step {
	voters, learners := c.split()
	if n := up(voters); n < quorum(len(voters)) {
		return Step{Why: fmt.Sprintf("%d of %d members answer: it takes %d", n, len(voters), quorum(len(voters)))}
	}
	var leaving, staying []Member
	for _, m := range voters {
		if c.leaves(m) != "" {
			leaving = append(leaving, m)
		} else {
			staying = append(staying, m)
		}
	}
	needed := max(0, c.Count-len(staying))
	for _, m := range learners {
		if why := cmp.Or(c.leaves(m), surplus(len(learners) > needed, c.Count)); why != "" {
			return Step{Remove, m.Node, why}
		}
	}
	host, found := c.next(staying, leaving, learners)
	if found && len(learners) < min(needed, MaxLearners) && up(learners) == len(learners) { // one comes after the other
		return Step{Add, host.Node, fmt.Sprintf("%d of %d members", len(staying)+len(learners), c.Count)}
	}
	if step := c.change(voters, leaving, staying, learners, needed); step.Kind != Wait || step.Why != "" {
		return step
	}
	switch {
	case len(learners) < needed:
		return Step{Why: fmt.Sprintf("it needs %s, and no further host that may carry it is ready",
			hosts(needed-len(learners)))}
	case needed > 0:
		return Step{Why: learners[0].Node + " gets the record"}
	}
	return Step{Why: c.away(voters)}
}

// away says of the first voter that is away when another host takes its place.
func (c Cluster) away(voters []Member) string {
	for _, m := range voters {
		if m.Down > 0 {
			return fmt.Sprintf("no other member reaches %s: after %s another host takes its place", m.Node, c.ReplaceAfter)
		}
	}
	return ""
}

func surplus(is bool, count int) string {
	if !is {
		return ""
	}
	return fmt.Sprintf("it is one more than the %d that are wanted", count)
}

func hosts(n int) string {
	if n == 1 {
		return "one more host"
	}
	return fmt.Sprintf("%d more hosts", n)
}

// change is the step that changes the voters.
func (c Cluster) change(voters, leaving, staying, learners []Member, needed int) Step {
	ready := slices.DeleteFunc(slices.Clone(learners), func(m Member) bool { return !m.CaughtUp || m.Down > 0 })
	switch {
	case len(ready) > 0 && (len(voters)%2 == 0 || len(voters) == len(leaving)) || len(ready) > 1 && len(leaving) == 0:
		if n := up(voters) + 1; n < quorum(len(voters)+1) {
			return Step{Why: fmt.Sprintf("with %s, %d of %d members would answer", ready[0].Node, n, len(voters)+1)}
		}
		return Step{Promote, ready[0].Node, "it has the record"}
	case len(leaving) > 0 && len(voters) > 1 && (needed == 0 || len(ready) > 0):
		// Its successor has the record already, and is promoted next.
		m := c.first(leaving)
		return c.remove(m, c.leaves(m), voters, staying)
	case len(staying) > c.Count:
		m := c.last(staying)
		return c.remove(m, surplus(true, c.Count), voters, staying)
	}
	return Step{}
}

// remove removes a voter where the others have a quorum without it, and is led by another one before.
func (c Cluster) remove(m Member, why string, voters, staying []Member) Step {
	rest := without(voters, m.Node)
	if n := up(rest); n < quorum(len(rest)) {
		return Step{Why: fmt.Sprintf("%s is to leave (%s), and without it %d of %d members would answer",
			m.Node, why, n, len(rest))}
	}
	if !m.Leader {
		return Step{Remove, m.Node, why}
	}
	others := slices.DeleteFunc(without(staying, m.Node), func(m Member) bool { return m.Down > 0 })
	if len(others) == 0 {
		return Step{Remove, m.Node, why} // the rest chooses its leader itself
	}
	return Step{Lead, others[0].Node, m.Node + " is to leave: " + why}
}

// first is the voter that leaves first: one that is dead, else one that does not lead.
func (c Cluster) first(leaving []Member) Member {
	return slices.MinFunc(leaving, func(a, b Member) int {
		return cmp.Or(later(c.dead(a), c.dead(b)), -later(a.Leader, b.Leader), cmp.Compare(a.Node, b.Node))
	})
}

// last is the voter that is one too many: one that is away, else of the failure domain with most members, else the one
// that would be taken last.
func (c Cluster) last(staying []Member) Member {
	place := func(m Member) int {
		return slices.IndexFunc(c.Hosts, func(h Host) bool { return h.Node == m.Node })
	}
	return slices.MinFunc(staying, func(a, b Member) int {
		return cmp.Or(
			later(a.Down > 0, b.Down > 0),
			cmp.Compare(c.crowd(c.domain(b.Node), staying), c.crowd(c.domain(a.Node), staying)),
			cmp.Compare(place(b), place(a)),
		)
	})
}

// next is the host that becomes a member next: of those that are ready one that did not fail, in the failure domain with
// fewest members.
func (c Cluster) next(staying, leaving, learners []Member) (Host, bool) {
	here := slices.Concat(staying, learners)
	taken := slices.Concat(here, leaving)
	free := slices.DeleteFunc(slices.Clone(c.Hosts), func(h Host) bool {
		return !h.Ready || slices.ContainsFunc(taken, func(m Member) bool { return m.Node == h.Node })
	})
	if len(free) == 0 {
		return Host{}, false
	}
	return slices.MinFunc(free, func(a, b Host) int {
		return cmp.Or(-later(a.Failed, b.Failed), cmp.Compare(c.crowd(a.Domain, here), c.crowd(b.Domain, here)))
	}), true
}

// later orders by a property: who has it comes first.
func later(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}
