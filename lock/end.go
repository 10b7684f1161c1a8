package lock

import (
	"context"
	"errors"
	"slices"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pullet/pullet/state"
)

// keyValue is what etcd returns.
type keyValue = mvccpb.KeyValue

// ErrFenced says that the claim was taken back: what the node does now is not covered by it any more.
var ErrFenced = errors.New("the slot was taken back from this node (see pullet status): no further step is started")

// Check reports whether the claim is still this node's: nil, ErrFenced, or why the store could not tell.
func (s *Slot) Check(ctx context.Context) error {
	got, err := s.store.Client.Get(ctx, s.key, clientv3.WithKeysOnly())
	if err != nil {
		return err
	}
	if len(got.Kvs) == 0 || got.Kvs[0].CreateRevision != s.fence {
		return ErrFenced
	}
	return nil
}

// Succeed records that the node runs the version, and frees the slot, in one transaction.
func (s *Slot) Succeed(ctx context.Context) error {
	node := s.req.Presence.Node.Name
	for {
		gate, gateRev, err := s.store.Gate(ctx, s.req.Version.ID, s.req.Group)
		if err != nil {
			return err
		}
		ops := []clientv3.Op{clientv3.OpDelete(s.key), s.store.RingOp()}
		ops = append(ops, s.store.RunningOps(s.req.Presence, s.req.Version.ID)...)
		ops = append(ops, s.store.StatusOps(node, state.Rollout, state.Success, s.req.status(""))...)
		if i := slices.Index(gate.Failed, node); i >= 0 { // success strikes the failure; a halt stays
			gate.Failed = slices.Delete(gate.Failed, i, i+1)
			ops = append(ops, s.store.GateOp(s.req.Version.ID, s.req.Group, gate))
		}
		done, err := s.store.Client.Txn(ctx).If(
			clientv3.Compare(clientv3.CreateRevision(s.key), "=", s.fence),
			clientv3.Compare(clientv3.ModRevision(s.store.GateKey(s.req.Version.ID, s.req.Group)), "=", gateRev),
		).Then(ops...).Commit()
		if err != nil {
			return err
		}
		if done.Succeeded {
			return nil
		}
		if err := s.Check(ctx); err != nil {
			return err
		}
	}
}

// Fail records that the upgrade failed and why. The claim stays, the node retries inside it. When the group has more failures than
// it survives, it is halted in the same transaction.
func (s *Slot) Fail(ctx context.Context, reason string) error {
	return fail(ctx, s.store, s.req, reason, clientv3.Compare(clientv3.CreateRevision(s.key), "=", s.fence))
}

// Fail records that a node cannot even begin with the version, such as one that does not compile there. It holds no slot.
func Fail(ctx context.Context, store *state.Store, req Request, reason string) error {
	return fail(ctx, store, req, reason)
}

func fail(ctx context.Context, store *state.Store, q Request, reason string, holds ...clientv3.Cmp) error {
	node, gateKey := q.Presence.Node.Name, store.GateKey(q.Version.ID, q.Group)
	for {
		gate, gateRev, err := store.Gate(ctx, q.Version.ID, q.Group)
		if err != nil {
			return err
		}
		if !slices.Contains(gate.Failed, node) { // it counts once
			gate.Failed = append(gate.Failed, node)
		}
		if len(gate.Failed) > q.MaxFailures && gate.State != state.Halted {
			gate.State, gate.Node, gate.Reason = state.Halted, node, reason
		}
		ops := append([]clientv3.Op{store.GateOp(q.Version.ID, q.Group, gate), store.RingOp()},
			store.StatusOps(node, state.Rollout, state.Failed, q.status(reason))...)
		done, err := store.Client.Txn(ctx).
			If(append(holds, clientv3.Compare(clientv3.ModRevision(gateKey), "=", gateRev))...).
			Then(ops...).
			Else(clientv3.OpGet(gateKey, clientv3.WithKeysOnly())).Commit()
		if err != nil || done.Succeeded {
			return err
		}
		if kvs := done.Responses[0].GetResponseRange().Kvs; len(kvs) == 0 && gateRev == 0 || len(kvs) > 0 && kvs[0].ModRevision == gateRev {
			return ErrFenced // the gate did not move: it was the claim
		}
	}
}
