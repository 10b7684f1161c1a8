package main

import (
	"maps"
	"slices"
	"strings"

	"github.com/pullet/pullet/lock"
	"github.com/pullet/pullet/state"
)

// refresh brings what a node said when it looked last up to date, as far as the fleet's record knows better by now.
func (n *nodeStatus) refresh(o *state.Overview) {
	switch {
	case n.State == failed:
		n.triesAgain(o)
		return
	case n.State == pending && n.Kind == "": // it has not looked: its next pull waits
		if w := lock.Stopped(o, n.Node, ""); w != nil {
			n.Why, n.Remedy = w.Gate+": "+w.Reason, w.Remedy
		}
		return
	case n.State != waiting:
		return
	}
	if w := lock.Stopped(o, n.Node, n.Halt); w != nil && n.atGate() {
		n.waitsNow(w)
		return
	}
	if n.lifted(o) {
		n.goesOn(o)
		return
	}
	n.othersNow(o)
}

// othersNow takes how the nodes are now for which the node waits: other nodes and operators did something since it
// looked.
func (n *nodeStatus) othersNow(o *state.Overview) {
	now, left, news := lock.Now(o, n.Kind, n.Holders)
	switch {
	case len(news) == 0:
	case len(left) == 0:
		n.Remedy = state.Itself("it looks again at its next pull")
	case n.Remedy == lock.Cure(n.Holders...): // else it is about something beside them
		n.Remedy = lock.Cure(left...)
	}
	if n.Holders, n.left = now, left; len(news) > 0 {
		n.Why += "; since its last pull: " + shownNames(news, 5)
	}
	n.chosen(o)
}

// atGate reports a wait that ends where an operator stops the node now: it has not begun, or its pull asks again.
func (n *nodeStatus) atGate() bool {
	switch n.Kind {
	case state.WaitSlot,
		state.WaitTotal,
		state.WaitQueue,
		state.WaitRole,
		state.WaitSoak,
		state.WaitWindow,
		state.WaitLimit,
		state.WaitGrace,
		state.WaitPause,
		state.WaitDisabled,
		state.WaitOneVersion,
		state.WaitFreeze,
		state.WaitStore:
		return true
	case state.WaitHalt, state.WaitUnknown:
		return !strings.HasPrefix(n.Halt, "step-") // a serialized step's, in the middle of a run
	}
	return false
}

// waitsNow takes what stops the node now, since when that is so.
func (n *nodeStatus) waitsNow(w *lock.Wait) {
	if n.Kind != w.Kind || n.Gate != w.Gate { // else it has waited there for longer
		n.Since, n.lasts = w.Since, !w.Since.IsZero()
	}
	n.Kind, n.Gate, n.Why, n.Remedy, n.Halt, n.Holders, n.left = w.Kind, w.Gate, w.Gate+": "+w.Reason, w.Remedy, w.Halt, nil, nil
}

// lifted reports that what stopped the node at its last pull does not stop it any more.
func (n *nodeStatus) lifted(o *state.Overview) bool {
	switch n.Kind {
	case state.WaitHalt, state.WaitUnknown:
		return n.Halt != "" && o.Gates[n.Halt].State != state.Halted
	case state.WaitPause, state.WaitStore, state.WaitDisabled, state.WaitFreeze, state.WaitOneVersion:
		return o.Current != nil // nothing stops it now
	case state.WaitGrace: // one without an end has not begun yet
		return !o.Grace && !n.Until.IsZero()
	}
	return false
}

// goesOn says that the node goes on.
func (n *nodeStatus) goesOn(o *state.Overview) {
	n.Why, n.Remedy = "lifted since its last pull: "+n.Gate, state.Itself(
		"it goes on at its next pull"+n.unlessAfter(o),
	)
	n.State, n.Kind, n.Gate, n.Halt, n.Holders = pending, "", "", "", nil
	if o.Current != nil && n.Version == o.Current.ID {
		n.State = upToDate
	}
}

// unlessAfter names the groups that are halted beside the node's own: only the rules of the repository, which a node
// reads at its pull, say whether its own comes after them.
func (n *nodeStatus) unlessAfter(o *state.Overview) string {
	var halted []string
	for _, group := range slices.Sorted(maps.Keys(o.Gates)) {
		g := state.GroupGate{Group: group, Gate: o.Gates[group]}
		if g.State == state.Halted && !strings.HasPrefix(group, "step-") && !o.In(n.Node, group) {
			halted = append(halted, g.Scope())
		}
	}
	if len(halted) == 0 {
		return ""
	}
	return ", unless it comes after " + shownNames(halted, 5) + ", which is halted"
}

// chosen takes what operators did since about the nodes for whose result this one waits: they were given up, or are to
// run again what they started.
func (n *nodeStatus) chosen(o *state.Overview) {
	if n.Kind != state.WaitResult {
		return
	}
	for i := range n.Holders {
		h := &n.Holders[i]
		if len(h.Took) == 0 {
			continue
		}
		h.Took = slices.DeleteFunc(slices.Clone(h.Took), func(step string) bool {
			t, said := o.Settled[step]
			return said && t.Revision > n.said && (!t.Done || slices.Contains(t.Waiting, h.Node))
		})
		if n.Remedy = lock.Cure(*h); h.Gone && len(h.Took) == 0 {
			n.Remedy = state.Itself("another host takes its place at its next pull")
		}
		return
	}
}

// triesAgain says what an operator did since about the failure of the node: its step was settled, or the halt that it
// caused was lifted.
func (n *nodeStatus) triesAgain(o *state.Overview) {
	if t, said := o.Settled[n.unknown]; said && t.Revision > n.said {
		by, then := t.By, "it goes on"
		if !t.Done || slices.Contains(t.Waiting, n.Node) {
			by, then = t.Asker().By, "the step runs again"
		}
		n.Remedy = state.Itself("settled since by " + by + ": " + then + " at the next pull")
		return
	}
	for _, group := range slices.Sorted(maps.Keys(o.Gates)) {
		g := o.Gates[group]
		if n.Kind != "" || !o.In(n.Node, group) || g.State == state.Halted || g.Resumed == "" || g.Seen < n.said {
			continue
		}
		f, scope := state.FreezeOf(o.Switches, n.Node, n.Role)
		switch by := "resumed since by " + g.Resumed; {
		case n.unknown != "": // nobody said what came of it
			n.Remedy = state.Act(by + ": it halts again at its next pull; " + state.SettleHint(n.unknown))
		case f != nil:
			n.Remedy = state.Act(by + ": it tries again after pullet enable --" + scope.String())
		default:
			n.Remedy = state.Itself(by + ": it tries again at its next pull")
		}
	}
}
