package membership

import (
	"cmp"
	"fmt"
	"slices"
)

// Kind is what a step does.
type Kind string

// The kinds of steps. Who carries one out does so on the leader, at once: it asks the members how they are just before,
// and decides again where etcd refuses a step.
const (
	// Wait does nothing: Why says what it waits for, and is "" where the cluster is as it is to be.
	Wait Kind = ""
	// Add makes a host a learner, on an empty disk.
	Add Kind = "add"
	// Promote makes a learner a voter. etcd does not look whether the learner lives: who carries it out asks it just
	// before.
	Promote Kind = "promote"
	// Remove makes a voter or a learner a host without the datastore. It is never the leader: who carries it out and leads
	// does not remove itself, because the others may not reach each other.
	Remove Kind = "remove"
	// Lead makes a voter the leader, because the leader is to be removed.
	Lead Kind = "lead"
)

// Step is the next thing to do.
type Step struct {
	Kind Kind   `json:"kind"`
	Node string `json:"node"`
	Why  string `json:"why"`
}

// Next says what is to be done next. As long as fewer voters answer than a quorum it is nothing: who can write nothing
// changes nothing. No step lessens how many more voters may fail, but where the cluster is to shrink.
func Next(c Cluster) Step {
	v := c.view()
	if n, q := up(v.voters), quorum(len(v.voters)); n < q {
		return Step{Why: fmt.Sprintf("%d of %d members answer: it takes %d", n, len(v.voters), q)}
	}
	if m, why := v.unwanted(); why != "" {
		return Step{Remove, m.Node, why}
	}
	host, found := v.host()
	takes := len(v.learners) < min(v.needed, MaxLearners)
	if takes && found && v.room() {
		return Step{Add, host.Node, fmt.Sprintf("members to stay: %d of %d", len(v.staying)+len(v.learners), c.Count)}
	}
	if step := v.change(takes && !found && v.again()); step.Kind != Wait || step.Why != "" {
		return step
	}
	return Step{Why: v.awaits(found)}
}

// view is a cluster with its members sorted out.
type view struct {
	Cluster
	voters, leaving, staying []Member // the voters, who of them is to be one no more, and who is
	learners, ready          []Member // the learners, and who of them can be promoted
	needed                   int      // how many voters have to come
}

func (c Cluster) view() view {
	v := view{Cluster: c}
	v.voters, v.learners = c.split()
	for _, m := range v.voters {
		if c.leaves(m) != "" {
			v.leaving = append(v.leaving, m)
		} else {
			v.staying = append(v.staying, m)
		}
	}
	for _, m := range v.learners {
		if m.CaughtUp && m.Down == 0 {
			v.ready = append(v.ready, m)
		}
	}
	v.needed = max(0, c.Count-len(v.staying))
	return v
}

// unwanted is a learner that is not to become a voter, and why: one that leaves, or one too many.
func (v view) unwanted() (m Member, why string) {
	for _, m := range v.learners {
		if why := v.leaves(m); why != "" {
			return m, why
		}
	}
	if len(v.learners) <= v.needed {
		return Member{}, ""
	}
	// Who has the record stays.
	return slices.MaxFunc(v.learners, func(a, b Member) int { return later(a.CaughtUp, b.CaughtUp) }), v.surplus()
}

// room tells that no learner is on its way: a host that comes is told who the members are, and etcd takes it for none
// where there is another one since.
func (v view) room() bool { return up(v.learners) == len(v.learners) }

// again tells whether the host of a voter that is away and leaves is ready, or one at the address of that: it may have
// lost its disk, and come again with an empty one.
func (v view) again() bool {
	return slices.ContainsFunc(v.Hosts, func(h Host) bool {
		away := func(m Member) bool { return (m.Node == h.Node || m.Node == h.At) && m.Down > 0 }
		return h.Ready && slices.ContainsFunc(v.leaving, away)
	})
}

// awaits is what a cluster waits for that needs no step now.
func (v view) awaits(found bool) string {
	n := v.needed - len(v.learners)
	switch late := slices.IndexFunc(v.learners, func(m Member) bool { return !m.CaughtUp || m.Down > 0 }); {
	case n > 0 && !found:
		return fmt.Sprintf("it needs %s, and no further host that may carry it is ready", hosts(n))
	case late >= 0:
		return v.learners[late].Node + " gets the record"
	}
	return v.away()
}

// away says of the first voter that is away when another host takes its place.
func (v view) away() string {
	for _, m := range v.voters {
		if m.Down > 0 {
			return fmt.Sprintf("no other member reaches %s: after %s another host takes its place", m.Node, v.ReplaceAfter)
		}
	}
	return ""
}

func (v view) surplus() string {
	return fmt.Sprintf("it is one more than the %d that are wanted", v.Count)
}

func hosts(n int) string {
	if n == 1 {
		return "one more host"
	}
	return fmt.Sprintf("%d more hosts", n)
}

// change is the step that changes the voters; comes says that a host would come, where it could. An odd number of
// voters is the aim of each step that makes it even.
func (v view) change(comes bool) Step {
	odd, leaves := len(v.voters)%2 == 1, len(v.leaving) > 0
	switch {
	case len(v.voters) > v.Count && leaves:
		return v.remove(v.first(), v.leaves(v.first()))
	case len(v.voters) > v.Count:
		return v.remove(v.last(), v.surplus())
	// Who is away makes place for its successor, before that is promoted, or for itself, where its disk is empty.
	case odd && leaves && v.first().Down > 0 && (len(v.ready) > 0 || comes),
		!odd && leaves && len(v.ready) == 0:
		return v.remove(v.first(), v.leaves(v.first()))
	// Who answers leaves when its successor is a voter.
	case len(v.ready) > 1, len(v.ready) > 0 && (leaves || !odd):
		return Step{Promote, v.ready[0].Node, "it has the record"}
	}
	return Step{}
}

// remove removes a voter where the others have a quorum without it, and is led by another one before.
func (v view) remove(m Member, why string) Step {
	rest := without(v.voters, m.Node)
	if n := up(rest); n < quorum(len(rest)) {
		return Step{Why: fmt.Sprintf("%s is to leave (%s), and without it %d of %d members would answer",
			m.Node, why, n, len(rest))}
	}
	if !m.Leader {
		return Step{Remove, m.Node, why}
	}
	// Others that leave and answer did so before the leader: these stay.
	rest = slices.DeleteFunc(rest, func(m Member) bool { return m.Down > 0 })
	return Step{Lead, rest[0].Node, m.Node + " is to leave: " + why}
}

// first is the voter that leaves first: one that is away, else one that does not lead.
func (v view) first() Member {
	return slices.MinFunc(v.leaving, func(a, b Member) int {
		return cmp.Or(later(a.Down > 0, b.Down > 0), -later(a.Leader, b.Leader), cmp.Compare(a.Node, b.Node))
	})
}

// last is the voter that is one too many: one that is away, else of the failure domain with most members, else the one
// that would be taken last.
func (v view) last() Member {
	place := func(m Member) int {
		return slices.IndexFunc(v.Hosts, func(h Host) bool { return h.Node == m.Node })
	}
	return slices.MinFunc(v.staying, func(a, b Member) int {
		return cmp.Or(
			later(a.Down > 0, b.Down > 0),
			cmp.Compare(v.crowd(v.domain(b.Node), v.staying), v.crowd(v.domain(a.Node), v.staying)),
			cmp.Compare(place(b), place(a)),
		)
	})
}

// host is the host that becomes a member next: of those that are ready one that did not fail, in the failure domain
// with fewest members. It is none that failed as long as one can come again, and none at the address of a member.
func (v view) host() (Host, bool) {
	here := slices.Concat(v.staying, v.learners)
	taken := slices.Concat(here, v.leaving)
	free := slices.DeleteFunc(slices.Clone(v.Hosts), func(h Host) bool {
		return !h.Ready || h.At != "" || slices.ContainsFunc(taken, func(m Member) bool { return m.Node == h.Node })
	})
	if len(free) == 0 {
		return Host{}, false
	}
	host := slices.MinFunc(free, func(a, b Host) int {
		return cmp.Or(-later(a.Failed, b.Failed), cmp.Compare(v.crowd(a.Domain, here), v.crowd(b.Domain, here)))
	})
	return host, !host.Failed || !v.again()
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
