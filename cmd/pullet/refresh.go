package main

import (
	"maps"
	"slices"

	"github.com/pullet/pullet/state"
)

// refresh brings what a node said when it looked last up to date, as far as the fleet's record knows better by now.
func (n *nodeStatus) refresh(o *state.Overview) {
	switch {
	case n.State == failed:
		n.triesAgain(o)
		return
	case n.State != waiting:
		return
	case n.lifted(o):
		n.goesOn(o)
		return
	case n.Clear != state.NoAction:
		return
	}
	for _, h := range n.Holders {
		if _, known := o.Nodes[h.Node]; known && !o.Alive[h.Node] {
			n.Why, n.Clear = n.Why+"; "+h.Node+" does not answer by now", startAgain(h.Node)
			return
		}
	}
	for _, group := range []string{state.AllGroups, state.GroupOf(n.Role)} {
		if g := o.Gates[group]; g.State == state.Halted {
			n.Clear = g.Clear()
			return
		}
	}
	n.follow(o)
}

// lifted reports that what stopped the node at its last pull does not stop it any more.
func (n *nodeStatus) lifted(o *state.Overview) bool {
	switch n.Kind {
	case state.WaitHalt, state.WaitUnknown:
		return n.Halt != "" && o.Gates[n.Halt].State != state.Halted
	case state.WaitPause:
		_, set := o.Switches[state.PauseScope]
		return !set
	case state.WaitStore:
		_, set := o.Switches[state.StoreScope]
		return !set
	case state.WaitDisabled, state.WaitFreeze, state.WaitOneVersion:
		return o.Current != nil && state.OffScope(o.Switches, n.Node, n.Role, o.Current.ID) == ""
	}
	return false
}

// goesOn says that the node goes on.
func (n *nodeStatus) goesOn(o *state.Overview) {
	n.Why, n.Clear = "lifted since its last pull: "+n.Gate, "it goes on at its next pull"
	n.State, n.Kind, n.Gate, n.Halt, n.Holders = pending, "", "", "", nil
	if o.Current != nil && n.Version == o.Current.ID {
		n.State = upToDate
	}
}

// triesAgain says that the halt which the node's failure caused was lifted since.
func (n *nodeStatus) triesAgain(o *state.Overview) {
	for _, group := range slices.Sorted(maps.Keys(o.Gates)) {
		g := o.Gates[group]
		roster := o.Rosters[group]
		its := group == state.AllGroups || group == state.GroupOf(n.Role) || roster != nil && roster.Has(n.Node)
		if its && g.State != state.Halted && g.Resumed != "" && g.At.After(n.Since) {
			n.Clear = "resumed since by " + g.Resumed + ": it tries again at its next pull"
		}
	}
}
