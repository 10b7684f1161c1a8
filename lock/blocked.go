package lock

import (
	"maps"
	"slices"

	"github.com/pullet/pullet/state"
)

// newSwitched is a switch that an operator set for a scope, with the command that clears it.
func newSwitched(what string, w state.Switch) *Switched {
	clear := "pullet enable --" + what
	switch what {
	case state.StoreScope:
		clear = acceptStore
	case state.PauseScope:
		clear = "pullet rollout resume"
	}
	return &Switched{What: what, Clear: clear, Switch: w}
}

// FrozenWait is the wait of a node for which a switch stops all changes.
func FrozenWait(scope string, w state.Switch) *Wait {
	wait := newSwitched(scope, w).wait()
	wait.Kind, wait.Gate, wait.Since = state.WaitFreeze, scope+" (all changes disabled)", w.At
	wait.Reason += "; drift is not corrected either"
	return wait
}

// DoubtedWait is the wait of a node that does not accept the fleet's record.
func DoubtedWait(node, reason string) *Wait {
	return newSwitched(state.StoreScope, state.Switch{By: node, Reason: reason}).wait()
}

// BlockedBy returns what keeps a node from changing to the fleet's version until an operator acts, as the record has it
// now; nil where nothing does. It is what the node's next pull would say first. Halts of the groups on which the node's
// groups depend count, too.
func BlockedBy(o *state.Overview, node string, depends ...string) *Wait {
	role := o.Nodes[node].Role
	if w, scope := state.FreezeOf(o.Switches, node, role); w != nil {
		return FrozenWait(scope.String(), *w)
	}
	if o.Current == nil || o.Runs(node) {
		return nil
	}
	for _, scope := range []string{
		state.OffScope(o.Switches, node, role, o.Current.ID), state.StoreScope, state.PauseScope,
	} {
		if w, set := o.Switches[scope]; set {
			wait := newSwitched(scope, w).wait()
			wait.Since = w.At
			return wait
		}
	}
	for _, group := range slices.Sorted(maps.Keys(o.Gates)) { // that of all groups sorts first
		g := state.GroupGate{Group: group, Gate: o.Gates[group]}
		if g.State == state.Halted && !g.Gate.Counts(node) && (slices.Contains(depends, group) || o.In(node, group)) {
			wait := halted(g.Scope(), group, g.Gate)
			wait.Since = g.At
			return wait
		}
	}
	return nil
}

// NextWait returns the wait that the node's next pull meets, as the record has it now: what blocks it, or a group that
// must be through first. It is nil where the record has neither.
func NextWait(o *state.Overview, node string, depends ...string) *Wait {
	if w := BlockedBy(o, node, depends...); w != nil || o.Current == nil || o.Runs(node) {
		return w
	}
	for _, group := range depends {
		d := Dependency{Group: group, Closed: o.Closed[group], Gate: o.Gates[group]}
		d.Until, d.Soaking = o.Soaks[group]
		if !d.Closed && !d.Soaking {
			d.Missing, d.More = notThrough(o, group)
			d.Closed = len(d.Missing) == 0
		}
		if w := d.wait(); w != nil {
			return w
		}
	}
	return nil
}

// RemedyOf is what an operator can do about the nodes of a group that do not run the fleet's version.
func RemedyOf(o *state.Overview, group string) state.Remedy {
	missing, _ := notThrough(o, group)
	return RemedyFor(missing...)
}

// notThrough returns nodes of a group that do not run the fleet's version, and how many more there are.
func notThrough(o *state.Overview, group string) (out []state.Holder, more int) {
	for _, node := range o.Members(group) {
		switch {
		case o.Gone[node] || o.Runs(node):
		case len(out) == shownMissing:
			more++
		default:
			h := state.Holder{Node: node}
			fillCondition(&h, o.BlockersOf(node), o.Switches, o.Current.ID)
			out = append(out, h)
		}
	}
	return out, more
}
