package lock

import (
	"context"
	"fmt"

	"github.com/pullet/pullet/state"
)

// trouble finds out which of the nodes that are waited for do not go on by themselves: an operator keeps them where they are, or they failed.
// Roles are those that all of them may have.
func trouble(ctx context.Context, s *state.Store, q *Request, roles []string, holders []state.Holder) error {
	if len(holders) == 0 {
		return nil
	}
	switches, err := s.Switches(ctx)
	if err != nil {
		return err
	}
	for i := range holders {
		h := &holders[i]
		if h.Off = offScope(switches, h.Node, roles, q.Version.ID); h.Off != "" || !h.Alive {
			continue
		}
		failed, err := s.StatusOf(ctx, h.Node, state.Rollout, state.Failed)
		if err != nil {
			return err
		}
		h.Failed = failed.Version == q.Version.ID
	}
	return nil
}

// offScope is the switch that keeps a node where it is: "host web1", "role web", "global"; "" is none. A role's is known where there is one role.
func offScope(switches map[string]state.Switch, node string, roles []string, version string) string {
	scopes := []state.Scope{state.HostScope(node)}
	if len(roles) == 1 {
		scopes = append(scopes, state.RoleScope(roles[0]))
	}
	for _, c := range append(scopes, state.GlobalScope()) {
		if w, ok := switches[c.String()]; ok {
			if w.Enabled && (w.Version == "" || w.Version == version) {
				return ""
			}
			return c.String()
		}
	}
	return ""
}

// clearOf is what an operator can do about nodes that are waited for.
func clearOf(holders []state.Holder) string {
	for _, h := range holders {
		switch {
		case h.Off != "":
			return "pullet enable --" + h.Off
		case h.Failed:
			return fmt.Sprintf("mend %s, or push a commit that does (see pullet failures)", h.Node)
		case h.Alive:
		case !h.Since.IsZero():
			return startAgain(h.Node)
		default:
			return fmt.Sprintf("start %s, or remove it from nodes/ in the repository", h.Node)
		}
	}
	return goesOn
}

// life is how a node is, in a word. One that was never seen has no time.
func life(h state.Holder) string {
	switch {
	case h.Off != "":
		return "disabled"
	case h.Failed:
		return "failed"
	case h.Alive:
		return "alive"
	case !h.Since.IsZero():
		return "not answering"
	}
	return "never seen"
}
