package membership

import (
	"slices"
	"time"
)

// Cluster is a datastore as the controller sees it.
type Cluster struct {
	Count        int           // how many voters there are to be: 1, 3 or 5
	ReplaceAfter time.Duration // how long a member is away before another host takes its place
	Members      []Member
	Hosts        []Host // that may carry the datastore, in the order in which they are taken
}

// Member is a host that carries the datastore.
type Member struct {
	Node     string
	Learner  bool
	Leader   bool
	Down     time.Duration // how long none of the others has reached it; 0: one does, or it leads
	CaughtUp bool          // of a learner: it has what the leader has
	Moving   bool          // an operator moves the datastore away from it
}

// Host is one that may carry the datastore.
type Host struct {
	Node   string
	Domain string // where a fault hits all hosts, such as a rack; "": nobody said
	Ready  bool   // it lives, said where it would serve, and no operator moves the datastore away from it
	// Failed is that it did not come when it was a learner last. When all that are ready failed, but hosts of members that
	// answer, the controller forgets it of all but the last one: else Next would try the first of them again and again.
	Failed bool
	At     string // the member that has the address which this host offers; "": none
}

// MaxLearners is how many learners there are at a time: a pair is promoted together, because an even number of voters
// bears no more faults than the odd one below it.
const MaxLearners = 2

func quorum(voters int) int { return voters/2 + 1 }

// split are the voters and the learners, by name.
func (c Cluster) split() (voters, learners []Member) {
	members := slices.SortedFunc(slices.Values(c.Members), func(a, b Member) int {
		if a.Node < b.Node {
			return -1
		}
		return 1
	})
	for _, m := range members {
		if m.Learner {
			learners = append(learners, m)
		} else {
			voters = append(voters, m)
		}
	}
	return voters, learners
}

// learnerTime is how long a learner may take at least until it answers: its host starts it, and it gets the record.
const learnerTime = time.Minute

// dead reports a member that is away for too long.
func (c Cluster) dead(m Member) bool {
	after := c.ReplaceAfter
	if m.Learner {
		after = max(after, learnerTime)
	}
	return m.Down >= after && m.Down > 0
}

func (c Cluster) eligible(m Member) bool {
	return slices.ContainsFunc(c.Hosts, func(h Host) bool { return h.Node == m.Node })
}

// leaves is why a member is to be one no more; "" where it stays.
func (c Cluster) leaves(m Member) string {
	switch {
	case c.dead(m):
		return "no other member reached it for " + m.Down.Round(time.Second).String()
	case !c.eligible(m):
		return "the repository does not name it any more"
	case m.Moving:
		return "an operator moves the datastore away from it"
	}
	return ""
}

func (c Cluster) domain(node string) string {
	for _, h := range c.Hosts {
		if h.Node == node {
			return h.Domain
		}
	}
	return ""
}

// crowd is how many members of some share the failure domain of a host.
func (c Cluster) crowd(domain string, members []Member) (n int) {
	for _, m := range members {
		if domain != "" && c.domain(m.Node) == domain {
			n++
		}
	}
	return n
}

func up(members []Member) (n int) {
	for _, m := range members {
		if m.Down == 0 {
			n++
		}
	}
	return n
}

// without are the members but one.
func without(members []Member, node string) []Member {
	return slices.DeleteFunc(slices.Clone(members), func(m Member) bool { return m.Node == node })
}
