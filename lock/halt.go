package lock

import (
	"context"

	"github.com/pullet/pullet/state"
)

// halt halts the node's group because of what failed on another node, unless an operator resumed it since.
func (s *Steps) halt(ctx context.Context, because state.Gate, news int64) error {
	return again(ctx, s.req.node(), func() error {
		return state.HaltGroup(ctx, s.store, s.req.rollout(), s.req.Rules.Group, because, news)
	})
}

// haltUnknown halts the group for a step whose result nobody knows.
func (s *Steps) haltUnknown(ctx context.Context, step Step, node, reason string, revision int64) error {
	return s.halt(ctx, state.UnknownGate(node, step.ID, reason), revision)
}
