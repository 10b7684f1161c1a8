package main

import (
	"github.com/pullet/pullet/lock"
	"github.com/pullet/pullet/state"
)

// follow says of each node that waits for what it really waits, where that is behind the nodes that it names: by their
// rows, which are as they are now, and not as these nodes said when they looked. A node in the middle of its upgrade at
// which no pull is at work says so.
func (v *fleetStatus) follow(o *state.Overview) {
	if o.Current == nil {
		return
	}
	again := map[string]state.Remedy{} // of nodes that failed, and try again by themselves
	for _, n := range v.Nodes {
		if n.State == failed && n.Itself() {
			again[n.Node] = n.Remedy
		}
	}
	said := map[string]state.Status{}
	for i := range v.Nodes {
		if n := &v.Nodes[i]; n.State == waiting {
			n.untilAgain(again)
			said[n.Node] = n.says(o)
		}
	}
	for i := range v.Nodes {
		switch n := &v.Nodes[i]; {
		case n.State == waiting && n.Itself():
			n.behind(o, said)
		case n.State == upgrading, n.State == upToDate && n.Step != "" && n.Why == n.Step:
			n.cutOff(o)
		}
	}
}

// untilAgain says of a wait for a node that failed that it tries again: an operator settled its step, or resumed.
func (n *nodeStatus) untilAgain(again map[string]state.Remedy) {
	for _, h := range n.Holders {
		if then, tries := again[h.Node]; tries && n.Remedy == lock.RemedyFor(h) {
			n.Remedy = state.Itself(h.Node + ": " + then.Clear)
			return
		}
	}
}

// says is what the row of a waiting node says, as a status.
func (n *nodeStatus) says(o *state.Overview) state.Status {
	st := o.Statuses[n.Node][state.Rollout].Status
	if st.Reason, st.Remedy, st.Holders = n.Why, n.Remedy, n.left; n.Kind != st.Kind || len(n.left) < len(n.Holders) {
		st.Ahead, st.Frees = "", false // it waits for something else by now, or for fewer nodes
	}
	return st
}

// behind takes what the nodes wait for themselves for which the node waits, or that none of them may be at work.
func (n *nodeStatus) behind(o *state.Overview, said map[string]state.Status) {
	// Reading the rows cannot fail.
	b, _ := state.Follow(said[n.Node], o.Current.ID, func(nodes []string) (map[string]state.Status, error) {
		out := map[string]state.Status{}
		for _, node := range nodes {
			if st, waits := said[node]; waits {
				out[node] = st
			}
		}
		return out, nil
	})
	if b == nil {
		b = o.IdleOf(said[n.Node])
	}
	if b != nil && (b.Why != "" || n.Remedy == state.NoAction()) { // else the row says already what comes next
		n.Why, n.Remedy = b.After(n.Why), b.Remedy
	}
}

// cutOff says that the pull of a node in the middle of a run was killed, or that etcd was away when it ended, as soon
// as its lease shows it.
func (n *nodeStatus) cutOff(o *state.Overview) {
	b := o.IdleOf(state.Status{Ahead: n.Node})
	if b == nil || b.Why == "" {
		return
	}
	if n.Why != "" {
		n.Why += "; "
	}
	n.Why, n.Remedy = n.Why+b.Why, b.Remedy
}
