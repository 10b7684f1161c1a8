package lock

import (
	"context"
	"fmt"

	"github.com/pullet/pullet/state"
)

// fillConditions finds out which of the nodes that others wait for need an operator: an operator disabled them, they
// failed, or they do not answer.
func fillConditions(ctx context.Context, s *state.Store, q *Request, holders []state.Holder) error {
	if len(holders) == 0 {
		return nil
	}
	nodes := make([]string, len(holders))
	for i, h := range holders {
		nodes[i] = h.Node
	}
	blockers, err := s.Views.Blockers(ctx, nodes)
	if err != nil {
		return err
	}
	for i := range holders {
		fillCondition(&holders[i], blockers.Nodes[holders[i].Node], blockers.Switches, q.Version.ID)
	}
	return nil
}

// fillCondition sets the condition of a node that others wait for at a version.
func fillCondition(h *state.Holder, p state.NodeBlockers, switches map[string]state.Switch, version string) {
	h.Alive, h.Gone, h.Off = p.Alive, p.Gone, state.OffScope(switches, h.Node, p.Role, version)
	if _, paused := switches[state.PauseScope]; paused && h.Off == "" {
		h.Off = state.PauseScope
	}
	h.Failed, h.Parked, h.Seen = p.Failed == version, p.Parked == version, h.Seen || p.Known
}

// conditionOf is the condition of a node that others wait for.
func conditionOf(h state.Holder) state.WaitKind {
	switch {
	case h.Off != "":
		return state.HolderOff
	case h.Alive && h.Failed:
		return state.HolderFailed
	case h.Alive && h.Parked:
		return state.HolderParked
	case h.Alive:
		return state.HolderAlive
	case len(h.Took) > 0:
		return state.HolderKeeps
	case h.Seen || !h.Since.IsZero():
		return state.HolderLost
	}
	return state.HolderUnseen
}

// RemedyFor returns what an operator can do about nodes that others wait for: about the first that needs an operator.
func RemedyFor(holders ...state.Holder) state.Remedy {
	remedy := state.NoAction()
	for _, h := range holders {
		switch conditionOf(h) {
		case state.HolderOff:
			if h.Off == state.PauseScope {
				return state.Act("pullet rollout resume")
			}
			return state.Act("pullet enable --" + h.Off)
		case state.HolderFailed:
			return state.Act(fmt.Sprintf("fix %s, or push a commit that does (see pullet failures)", h.Node))
		case state.HolderLost:
			return state.Act(startAgain(h.Node))
		case state.HolderKeeps:
			return state.Act(takeOver(h))
		case state.HolderUnseen:
			return state.Act(
				fmt.Sprintf(
					"start %[1]s, remove it from nodes/ in the repository, or give it up: pullet decommission %[1]s",
					h.Node,
				),
			)
		case state.HolderParked:
			remedy = state.Itself("it waits, too: see pullet status") // another one may need an operator
		}
	}
	return remedy
}

// Condition is a node's condition in a few words.
func Condition(h state.Holder) string {
	switch conditionOf(h) {
	case state.HolderOff:
		if h.Off == state.PauseScope {
			return "paused"
		}
		return "disabled"
	case state.HolderFailed:
		return "failed"
	case state.HolderParked:
		return "waits in mid-run"
	case state.HolderAlive:
		return "alive"
	case state.HolderLost, state.HolderKeeps:
		if h.Gone {
			return "given up"
		}
		return "not answering"
	}
	return "never seen"
}
