package lock

import (
	"context"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pullet/pullet/state"
)

// halt halts the node's group because of what failed on another node, unless an operator resumed it since.
func (s *Steps) halt(ctx context.Context, because state.Gate, news int64) error {
	return again(ctx, s.req.node(), func() error { return s.haltOnce(ctx, because, news) })
}

// haltOnce is one attempt for each state of the gate.
func (s *Steps) haltOnce(ctx context.Context, because state.Gate, news int64) error {
	group := s.req.Rules.Group
	gate, rev, err := s.store.Gate(ctx, s.req.rollout(), group)
	if err != nil || gate.State == state.Halted || gate.Resumed != "" && news < rev {
		return err
	}
	gate.Halt(because.Node, because.Reason)
	gate.Unknown = because.Unknown
	if !counted(gate, because.Node) {
		gate.Failed, gate.Hosts = append(gate.Failed, because.Failed...), append(gate.Hosts, because.Hosts...)
	}
	done, err := s.store.Client.Txn(ctx).
		If(clientv3.Compare(clientv3.ModRevision(s.store.GateKey(s.req.rollout(), group)), "=", rev)).
		Then(s.store.GateOp(s.req.rollout(), group, gate), s.store.RingOp()).Commit()
	if err == nil && !done.Succeeded {
		err = ErrMoved
	}
	return err
}

// haltUnknown halts the group for a step whose result nobody knows.
func (s *Steps) haltUnknown(ctx context.Context, step Step, node, reason string, revision int64) error {
	return s.halt(
		ctx,
		state.Gate{Node: node, Reason: "step " + step.ID + ": " + reason, Failed: []string{node}, Unknown: step.ID},
		revision,
	)
}
