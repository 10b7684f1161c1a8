package membership

import "slices"

// unfit says what is wrong with a step for a cluster, whatever the cluster is; "" where it may be done.
func unfit(c Cluster, step Step) string {
	voters, learners := c.split()
	n, answer := len(voters), up(voters)
	i := slices.IndexFunc(c.Members, func(m Member) bool { return m.Node == step.Node })
	if step.Kind != Wait && answer < quorum(n) {
		return "there is no quorum"
	}
	if (step.Kind == Wait || step.Kind == Add) != (i < 0) {
		return "it is about no member, or adds one"
	}
	switch step.Kind {
	case Add:
		return unfitAdd(c, step.Node, len(learners))
	case Promote:
		return unfitPromotion(c, c.Members[i], n, answer)
	case Lead:
		if m := c.Members[i]; m.Learner || m.Leader || m.Down > 0 {
			return "it cannot lead"
		}
	case Remove:
		if m := c.Members[i]; !m.Learner {
			return unfitRemoval(c, m, voters)
		} else if len(learners) <= c.Count-staying(c, voters) && c.leaves(m) == "" {
			return "the learner is wanted"
		}
	}
	return ""
}

func unfitAdd(c Cluster, node string, learners int) string {
	switch h := slices.IndexFunc(c.Hosts, func(h Host) bool { return h.Node == node && h.Ready }); {
	case h < 0:
		return "no such host is ready"
	case learners >= MaxLearners:
		return "there are enough learners"
	}
	return ""
}

func unfitPromotion(c Cluster, m Member, voters, answer int) string {
	switch {
	case !m.Learner || !m.CaughtUp || m.Down > 0 || c.leaves(m) != "":
		return "it is no learner that may be promoted"
	case answer+1 < quorum(voters+1):
		return "with it there is no quorum"
	case voters%2 == 1 && readyLearners(c) < 2 && !leaving(c):
		return "an even number of voters bears no more faults"
	case voters+1 > c.Count+1:
		return "there are too many voters"
	case answer+1-quorum(voters+1) < answer-quorum(voters):
		return "fewer voters may fail then"
	}
	return ""
}

func unfitRemoval(c Cluster, m Member, voters []Member) string {
	rest := without(voters, m.Node)
	stays := func(m Member) bool { return c.leaves(m) == "" }
	margin := up(voters) - quorum(len(voters))
	switch n := up(rest); {
	case m.Leader:
		return "it leads"
	case len(rest) == 0 || n < quorum(len(rest)):
		return "the rest has no quorum"
	case stays(m) && staying(c, voters) < len(voters):
		return "it stays, and another one leaves"
	case !stays(m) && m.Down == 0 && slices.ContainsFunc(rest, func(m Member) bool { return !stays(m) && m.Down > 0 }):
		return "it answers, and another one that leaves does not"
	case stays(m) && len(voters) <= c.Count:
		return "it is wanted"
	case len(voters)%2 == 1 && len(voters) <= c.Count && readyLearners(c) == 0 && !hostReady(c):
		return "nobody takes its place"
	case n-quorum(len(rest)) < margin && len(voters) <= c.Count:
		return "fewer voters may fail then"
	}
	return ""
}

func staying(c Cluster, voters []Member) (n int) {
	for _, m := range voters {
		if c.leaves(m) == "" {
			n++
		}
	}
	return n
}

func leaving(c Cluster) bool {
	return slices.ContainsFunc(c.Members, func(m Member) bool { return !m.Learner && c.leaves(m) != "" })
}

func readyLearners(c Cluster) (n int) {
	for _, m := range c.Members {
		if m.Learner && m.CaughtUp && m.Down == 0 && c.leaves(m) == "" {
			n++
		}
	}
	return n
}

// hostReady tells whether a host is ready that is no member which answers.
func hostReady(c Cluster) bool {
	return slices.ContainsFunc(c.Hosts, func(h Host) bool {
		answers := func(m Member) bool { return m.Node == h.Node && (m.Down == 0 || m.Learner) }
		return h.Ready && !slices.ContainsFunc(c.Members, answers)
	})
}
