package lock

import (
	"context"
	"fmt"

	"github.com/pullet/pullet/state"
)

// trouble finds out which of the nodes that are waited for do not go on by themselves: an operator keeps them where
// they are, they failed, or do not answer.
func trouble(ctx context.Context, s *state.Store, q *Request, holders []state.Holder) error {
	if len(holders) == 0 {
		return nil
	}
	nodes := make([]string, len(holders))
	for i, h := range holders {
		nodes[i] = h.Node
	}
	blockers, err := s.BlockersOf(ctx, nodes)
	if err != nil {
		return err
	}
	for i := range holders {
		judge(&holders[i], blockers.Nodes[holders[i].Node], blockers.Switches, q.Version.ID)
	}
	return nil
}

// judge says of a node that others wait for at a version how it is.
func judge(h *state.Holder, p state.NodeBlockers, switches map[string]state.Switch, version string) {
	h.Alive, h.Gone, h.Off = p.Alive, p.Gone, state.OffScope(switches, h.Node, p.Role, version)
	if _, paused := switches[state.PauseScope]; paused && h.Off == "" {
		h.Off = state.PauseScope
	}
	h.Failed, h.Parked, h.Seen = p.Failed == version, p.Parked == version, h.Seen || p.Known
}

// conditionOf is how a node is for which others wait.
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

// remedyFor is what an operator can do about nodes that are waited for: about the first that does not go on.
func remedyFor(holders []state.Holder) state.Remedy {
	remedy := state.NoAction()
	for _, h := range holders {
		switch conditionOf(h) {
		case state.HolderOff:
			if h.Off == state.PauseScope {
				return state.Act("pullet rollout resume")
			}
			return state.Act("pullet enable --" + h.Off)
		case state.HolderFailed:
			return state.Act(fmt.Sprintf("mend %s, or push a commit that does (see pullet failures)", h.Node))
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
			remedy = state.Itself("it waits itself: pullet status says for what") // others may be in worse trouble
		}
	}
	return remedy
}

// life is how a node is, in a word. One that was never seen has no time.
func life(h state.Holder) string {
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
