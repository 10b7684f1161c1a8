package main

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/pullet/pullet/internal/safetext"
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
		if w := lock.BlockedBy(o, n.Node); w != nil {
			n.Why, n.Remedy = w.Gate+": "+w.Reason, w.Remedy
		} else if n.Why == "" && o.Current != nil {
			n.Why, n.Remedy = "no pull since this version was set", state.Itself(takesOrWaits)
		}
		return
	case n.State != waiting:
		return
	}
	if w := lock.BlockedBy(o, n.Node, n.after(o)...); w != nil && n.atGate() {
		n.waitsNow(w)
		return
	}
	if n.lifted(o) {
		if w := lock.NextWait(o, n.Node, n.after(o)...); w != nil {
			n.waitsNow(w)
		} else {
			n.goesOn(o)
		}
		return
	}
	if n.Kind == state.WaitCondition && !n.Until.IsZero() && time.Now().After(n.Until) {
		n.Why += "; that is over, and its next pull asks again"
	}
	n.othersNow(o)
}

// othersNow takes how the nodes are now for which the node waits: other nodes and operators did something since it
// looked.
func (n *nodeStatus) othersNow(o *state.Overview) {
	now, left, news := lock.Refresh(o, state.StatusLine{
		Status: state.Status{Kind: n.Kind, Gate: n.Gate, Holders: n.Holders}, Revision: n.said,
	})
	switch {
	case len(news) == 0:
	case len(left) == 0:
		n.Remedy = state.Itself("it looks again at its next pull")
	case n.Remedy == lock.RemedyFor(n.Holders...): // else it is about something beside them
		n.Remedy = lock.RemedyFor(left...)
	}
	if n.Holders, n.left = now, left; len(news) > 0 {
		n.Why += "; since its last pull: " + safetext.Some(news, 5)
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

// after are the groups that must be through before the node's own, as far as the record says. One that it waited for
// because of a halt is such a group, unless it is its own.
func (n *nodeStatus) after(o *state.Overview) []string {
	if n.depends == nil && n.Halt != "" && !o.In(n.Node, n.Halt) {
		return []string{n.Halt}
	}
	return n.depends
}

// waitsNow takes for what the node waits now, since when that is so.
func (n *nodeStatus) waitsNow(w *lock.Wait) {
	if !w.Since.IsZero() && (n.Kind != w.Kind || n.Gate != w.Gate) { // else it has waited for longer
		n.Since, n.lasts = w.Since, true
	}
	n.Kind, n.Gate, n.Why, n.Remedy = w.Kind, w.Gate, w.Gate+": "+w.Reason, w.Remedy
	n.Halt, n.Holders, n.left = w.Halt, w.Holders, w.Holders
}

// lifted reports that what stopped the node at its last pull does not stop it any more.
func (n *nodeStatus) lifted(o *state.Overview) bool {
	switch n.Kind {
	case state.WaitHalt, state.WaitUnknown:
		return n.Halt != "" && o.Gates[n.Halt].State != state.Halted
	case state.WaitPause, state.WaitStore, state.WaitDisabled, state.WaitFreeze, state.WaitOneVersion:
		return o.Current != nil // nothing stops it now
	case state.WaitSoak:
		watched := func(group string) bool { _, is := o.Soaks[group]; return is }
		return len(o.Soaks) == 0 || n.depends != nil && !slices.ContainsFunc(n.depends, watched)
	case state.WaitGrace: // one without an end has not begun yet
		return !o.Grace && !n.Until.IsZero()
	}
	return false
}

// goesOn says that the node goes on.
func (n *nodeStatus) goesOn(o *state.Overview) {
	over := "lifted since its last pull: " + n.Gate
	if n.Kind == state.WaitSoak {
		over = n.Gate + ": its soak ended since the last pull"
	}
	then := "it goes on at its next pull"
	if n.State = upToDate; !n.through {
		n.State, then = pending, n.nextPull(o)
	}
	n.Why, n.Remedy, n.Kind, n.Gate, n.Halt, n.Holders = over, state.Itself(then), "", "", "", nil
}

// takesOrWaits is what the next pull of a node does that has not looked at the version. Which groups come before its
// own, and how many slots there are, is in the repository, not on record.
const takesOrWaits = "its next pull takes it, or says what it waits for; at once: pullet pull there"

// nextPull says what a node does at its next pull, as far as the record says.
func (n *nodeStatus) nextPull(o *state.Overview) string {
	var beside []string
	for _, one := range []string{n.slotsHeld(o), n.haltedBeside(o)} {
		if one != "" {
			beside = append(beside, one)
		}
	}
	if len(beside) == 0 {
		return "it goes on at its next pull"
	}
	return "it looks again at its next pull: " + strings.Join(beside, "; ")
}

// slotsHeld names who holds slots of the node's group: the record does not say how many there are.
func (n *nodeStatus) slotsHeld(o *state.Overview) string {
	var holders []string
	for _, group := range slices.Sorted(maps.Keys(o.Slots)) {
		for _, place := range slices.Sorted(maps.Keys(o.Slots[group])) {
			switch holder := o.Slots[group][place].Node; {
			case holder == n.Node:
				return ""
			case o.In(n.Node, group):
				holders = append(holders, holder)
			}
		}
	}
	if len(holders) == 0 {
		return ""
	}
	return "slots of its group are held by " + safetext.Some(holders, 5)
}

// haltedBeside names the groups that are halted beside the node's own, where the node has not said after which its own
// comes: only the rules of the repository have that.
func (n *nodeStatus) haltedBeside(o *state.Overview) string {
	if n.depends != nil {
		return ""
	}
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
	return safetext.Some(halted, 5) + " may come first, and is halted"
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
		if n.Remedy = lock.RemedyFor(*h); h.Gone && len(h.Took) == 0 {
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
		off := state.OffScope(o.Switches, n.Node, n.Role, o.Current.ID)
		switch by := "resumed since by " + g.Resumed; {
		case n.unknown != "": // nobody said what came of it
			n.Remedy = state.Act(by + ": it halts again at its next pull; " + state.SettleHint(n.unknown))
		case f != nil:
			n.Remedy = state.Act(by + ": it tries again after pullet enable --" + scope.String())
		case off != "":
			n.Remedy = state.Act(by + ": it tries again after pullet enable --" + off)
		default:
			n.Remedy = state.Itself(by + ": it tries again at its next pull")
		}
	}
}
