package lock

import (
	"maps"
	"slices"

	"github.com/pullet/pullet/state"
)

// newSwitched is an operator's word of a scope, with what takes it back.
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

// Frozen is the wait of a node whose changes a switch stops, all of them.
func Frozen(scope string, w state.Switch) *Wait {
	wait := newSwitched(scope, w).wait()
	wait.Kind, wait.Gate, wait.Since = state.WaitFreeze, scope+" (all changes disabled)", w.At
	wait.Reason += "; drift is not corrected either"
	return wait
}

// Doubted is the wait of a node that does not accept the fleet's record.
func Doubted(w state.Switch) *Wait { return newSwitched(state.StoreScope, w).wait() }

// Stopped is what keeps a node from changing to the fleet's version until an operator acts, by the record of now: what
// its next pull would say first. It is nil where nothing does. Beside the halts of the node's own groups those count of
// one on which these depend.
func Stopped(o *state.Overview, node, depends string) *Wait {
	role := o.Nodes[node].Role
	if w, scope := state.FreezeOf(o.Switches, node, role); w != nil {
		return Frozen(scope.String(), *w)
	}
	if o.Current == nil || o.Running[node] == o.Current.ID {
		return nil
	}
	for _, scope := range []string{state.OffScope(o.Switches, node, role, o.Current.ID), state.StoreScope, state.PauseScope} {
		if w, set := o.Switches[scope]; set {
			wait := newSwitched(scope, w).wait()
			wait.Since = w.At
			return wait
		}
	}
	for _, group := range slices.Sorted(maps.Keys(o.Gates)) { // that of all groups sorts first
		g := state.GroupGate{Group: group, Gate: o.Gates[group]}
		if g.State == state.Halted && !counted(g.Gate, node) && (group == depends || o.In(node, group)) {
			wait := halted(g.Scope(), group, g.Gate)
			wait.Since = g.At
			return wait
		}
	}
	return nil
}

// Cure is what an operator can do about nodes for which others wait: about the first that does not go on.
func Cure(holders ...state.Holder) state.Remedy { return remedyFor(holders) }
