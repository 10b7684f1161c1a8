package lock

import (
	"context"
	"errors"
	"strconv"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pullet/pullet/state"
)

// Serialize returns a node's turn at a step that few nodes take at a time.
func (s *Steps) Serialize(ctx context.Context, step Step, limit func(roster int) int) (*Turn, error) {
	hash := state.StepHash(step.ID)
	req := *s.req
	t := newTurn(s.store, &req, &pool{
		kind: state.WaitSerialize, name: "serialize " + step.ID, scope: "step " + step.ID, step: step.ID,
		group: "step-" + hash, limit: limit,
		queue: s.store.Rollouts.QueuePrefix(s.req.rollout(), "step-"+hash), claims: s.store.Steps.SemaphorePrefix(hash),
		marks: s.store.Rollouts.MarkPrefix("step-" + hash), follows: s.req.follows(),
	})
	roster, err := s.roster(ctx, step)
	if err == nil {
		t.roster.size = roster.Size
	}
	return t, err
}

// FailStep releases a serialized step's claim after the step failed, and keeps all other nodes from starting it. A host
// fault does that only where the group has more of them than it survives.
func (t *Turn) FailStep(ctx context.Context, reason string, how Failure) error {
	node := t.req.node()
	return again(ctx, node, func() error {
		gate, rev, err := t.gate.read(ctx)
		if err != nil {
			return err
		}
		before := gate.Counts(node) // also by an attempt whose answer was lost, which freed the claim
		t.pool.survived(t.req, t.roster.size).count(&gate, node, reason, how)
		err = t.gate.commit(ctx, rev, t.claim, append(t.claim.releaseOps(), t.gate.op(gate))...)
		if err == nil || before && errors.Is(err, t.claim.lostError()) {
			t.claim.forget()
			return nil
		}
		return err
	})
}

// SucceedStep releases a serialized step's claim after it succeeded. An earlier failure of this node no longer counts,
// and the others go on.
func (t *Turn) SucceedStep(ctx context.Context) error {
	node := t.req.node()
	err := again(ctx, node, func() error {
		gate, rev, err := t.gate.read(ctx)
		halted := gate.State == state.Halted
		if err != nil || !uncount(&gate, node) {
			return err
		}
		if halted && len(gate.Failed) == 0 && len(gate.Hosts) <= t.req.Rules.hostFailures(t.roster.size) {
			gate = state.Gate{State: "open", Hosts: gate.Hosts}
		}
		return t.gate.commit(ctx, rev, t.claim, t.gate.op(gate), t.store.Bells.RingOp())
	})
	return errors.Join(err, t.Release(ctx))
}

// ReleaseSteps releases the places at serialized steps that a node has from a run that was cut off, except those of
// steps that it goes on with. It reports how many it kept.
func ReleaseSteps(
	ctx context.Context, s *state.Store, node string, goesOn func(hash string) bool,
) (kept int, err error) {
	got, err := s.Client.Get(ctx, s.Steps.SemaphorePrefix(""), clientv3.WithPrefix())
	if err != nil {
		return 0, err
	}
	for _, kv := range got.Kvs {
		k, err := s.Key(kv)
		if err != nil || s.Rollouts.ReadClaim(kv).Node != node {
			continue
		}
		hash, place := k.Hash, strconv.Itoa(k.Place)
		if goesOn(hash) {
			kept++
			continue
		}
		if _, err := s.Client.Txn(ctx).
			If(clientv3.Compare(clientv3.CreateRevision(string(kv.Key)), "=", kv.CreateRevision)).
			Then(clientv3.OpDelete(string(kv.Key)), clientv3.OpDelete(s.Rollouts.MarkPrefix("step-"+hash)+place),
				s.Bells.RingOp()).Commit(); err != nil {
			return kept, err
		}
	}
	return kept, nil
}
