package lock

import (
	"context"
	"errors"
	"slices"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pullet/pullet/state"
)

// Serialize is a node's turn at a step that few nodes take at a time.
func (s *Steps) Serialize(ctx context.Context, step Step, limit func(roster int) int) (*Turn, error) {
	hash := state.StepHash(step.ID)
	req := *s.req
	t := newTurn(s.store, &req, &pool{
		name: "serialize " + step.ID, scope: "step " + step.ID, gate: "step-" + hash, limit: limit,
		queue: s.store.QueuePrefix(s.req.rollout(), "step-"+hash), claims: s.store.SemaphorePrefix(hash), marks: s.store.MarkPrefix("step-" + hash),
	})
	roster, err := s.roster(ctx, step)
	if err == nil {
		t.size = roster.Size
	}
	return t, err
}

// StopStep frees a serialized step's claim because it failed, and keeps every other node from starting it.
func (t *Turn) StopStep(ctx context.Context, reason string) error {
	node := t.req.node()
	return again(ctx, node, func() error {
		gate, rev, err := t.store.Gate(ctx, t.req.rollout(), t.gate)
		if err != nil {
			return err
		}
		fails(&gate, node, reason, 0)
		done, err := t.store.Client.Txn(ctx).
			If(clientv3.Compare(clientv3.ModRevision(t.store.GateKey(t.req.rollout(), t.gate)), "=", rev)).
			Then(append(t.freeOps(), t.store.GateOp(t.req.rollout(), t.gate, gate))...).Commit()
		if err == nil && !done.Succeeded {
			err = errMoved
		}
		return err
	})
}

// GoOnStep frees a serialized step's claim after it succeeded. A failure of this node before is struck, and lets the others go on.
func (t *Turn) GoOnStep(ctx context.Context) error {
	node := t.req.node()
	gate, rev, err := t.store.Gate(ctx, t.req.rollout(), t.gate)
	if err != nil || !slices.Contains(gate.Failed, node) {
		return errors.Join(err, t.Release(ctx))
	}
	if gate.Failed = without(gate.Failed, node); len(gate.Failed) == 0 {
		gate = state.Gate{State: "open"}
	}
	if _, err := t.store.Client.Txn(ctx).
		If(clientv3.Compare(clientv3.ModRevision(t.store.GateKey(t.req.rollout(), t.gate)), "=", rev)).
		Then(t.store.GateOp(t.req.rollout(), t.gate, gate), t.store.RingOp()).Commit(); err != nil {
		return err
	}
	return t.Release(ctx)
}

// LeaveSteps frees the places at serialized steps that a node which is in none of them still has: its run was cut off there, and others need
// them.
func LeaveSteps(ctx context.Context, s *state.Store, node string) error {
	prefix := s.SemaphorePrefix("")
	got, err := s.Client.Get(ctx, prefix, clientv3.WithPrefix())
	if err != nil {
		return err
	}
	for _, kv := range got.Kvs {
		var c state.Claim
		if err := decode(kv, &c); err != nil {
			return err
		}
		if c.Node != node {
			continue
		}
		hash, place, _ := strings.Cut(strings.TrimPrefix(string(kv.Key), prefix), "/")
		if _, err := s.Client.Txn(ctx).
			If(clientv3.Compare(clientv3.CreateRevision(string(kv.Key)), "=", kv.CreateRevision)).
			Then(clientv3.OpDelete(string(kv.Key)), clientv3.OpDelete(s.MarkPrefix("step-"+hash)+place), s.RingOp()).Commit(); err != nil {
			return err
		}
	}
	return nil
}
