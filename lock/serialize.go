package lock

import (
	"context"
	"errors"
	"strconv"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pullet/pullet/state"
)

// Serialize is a node's turn at a step that few nodes take at a time.
func (s *Steps) Serialize(ctx context.Context, step Step, limit func(roster int) int) (*Turn, error) {
	hash := state.StepHash(step.ID)
	req := *s.req
	t := newTurn(s.store, &req, &pool{
		kind: state.WaitSerialize, name: "serialize " + step.ID, scope: "step " + step.ID, step: step.ID, gate: "step-" + hash, limit: limit,
		queue: s.store.QueuePrefix(s.req.rollout(), "step-"+hash), claims: s.store.SemaphorePrefix(hash), marks: s.store.MarkPrefix("step-" + hash), follows: !s.req.Stale,
	})
	roster, err := s.roster(ctx, step)
	if err == nil {
		t.size = roster.Size
	}
	return t, err
}

// StopStep frees a serialized step's claim because it failed, and keeps every other node from starting it. A host fault
// does that only where the group has more of them than it survives.
func (t *Turn) StopStep(ctx context.Context, reason string, how Failure) error {
	node := t.req.node()
	return again(ctx, node, func() error {
		gate, rev, err := t.store.Gate(ctx, t.req.rollout(), t.gate)
		if err != nil {
			return err
		}
		told := counted(gate, node) // also by an attempt whose answer was lost, which freed the claim
		if how == Host {
			faults(&gate, node, reason, t.req.Rules.hostFailures(t.size))
		} else {
			fails(&gate, node, reason, 0)
		}
		gateKey := t.store.GateKey(t.req.rollout(), t.gate)
		done, err := t.store.Client.Txn(ctx).
			If(append(t.holding(), clientv3.Compare(clientv3.ModRevision(gateKey), "=", rev))...).
			Then(append(t.freeOps(), t.gateOp(gate))...).
			Else(clientv3.OpGet(gateKey, clientv3.WithKeysOnly())).Commit()
		switch {
		case err != nil:
			return err
		case !done.Succeeded && revisionOf(done.Responses[0].GetResponseRange().Kvs) != rev:
			return ErrMoved
		case !done.Succeeded && !told:
			return t.lost()
		}
		t.drop()
		return nil
	})
}

// GoOnStep frees a serialized step's claim after it succeeded. A failure of this node before is struck, and lets the
// others go on.
func (t *Turn) GoOnStep(ctx context.Context) error {
	node := t.req.node()
	err := again(ctx, node, func() error {
		gate, rev, err := t.store.Gate(ctx, t.req.rollout(), t.gate)
		halted := gate.State == state.Halted
		if err != nil || !strike(&gate, node) {
			return err
		}
		if halted && len(gate.Failed) == 0 && len(gate.Hosts) <= t.req.Rules.hostFailures(t.size) {
			gate = state.Gate{State: "open", Hosts: gate.Hosts}
		}
		gateKey := t.store.GateKey(t.req.rollout(), t.gate)
		done, err := t.store.Client.Txn(ctx).
			If(append(t.holding(), clientv3.Compare(clientv3.ModRevision(gateKey), "=", rev))...).
			Then(t.gateOp(gate), t.store.RingOp()).
			Else(clientv3.OpGet(gateKey, clientv3.WithKeysOnly())).Commit()
		switch {
		case err != nil || done.Succeeded:
			return err
		case revisionOf(done.Responses[0].GetResponseRange().Kvs) == rev:
			return t.lost()
		}
		return ErrMoved
	})
	return errors.Join(err, t.Release(ctx))
}

// LeaveSteps frees the places at serialized steps that a node still has from a run that was cut off, but for the steps
// that it goes on with: others need them. It reports how many it kept.
func LeaveSteps(ctx context.Context, s *state.Store, node string, goesOn func(hash string) bool) (kept int, err error) {
	got, err := s.Client.Get(ctx, s.SemaphorePrefix(""), clientv3.WithPrefix())
	if err != nil {
		return 0, err
	}
	for _, kv := range got.Kvs {
		k, err := s.Key(kv)
		if err != nil || s.ReadClaim(kv).Node != node {
			continue
		}
		hash, place := k.Hash, strconv.Itoa(k.Place)
		if goesOn(hash) {
			kept++
			continue
		}
		if _, err := s.Client.Txn(ctx).
			If(clientv3.Compare(clientv3.CreateRevision(string(kv.Key)), "=", kv.CreateRevision)).
			Then(clientv3.OpDelete(string(kv.Key)), clientv3.OpDelete(s.MarkPrefix("step-"+hash)+place), s.RingOp()).Commit(); err != nil {
			return kept, err
		}
	}
	return kept, nil
}
