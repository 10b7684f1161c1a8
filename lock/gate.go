package lock

import (
	"context"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pullet/pullet/state"
)

// poolGate is the gate of a pool: open or halted.
type poolGate struct {
	store *state.Store
	req   *Request
	pool  *pool
}

// read returns the gate and its revision.
func (g *poolGate) read(ctx context.Context) (state.Gate, int64, error) {
	return g.store.Rollouts.Gate(ctx, g.req.rollout(), g.pool.group)
}

// op writes the pool's own gate, which says what it guards.
func (g *poolGate) op(gate state.Gate) clientv3.Op {
	gate.Step = g.pool.step
	return g.store.Rollouts.GateOp(g.req.rollout(), g.pool.group, gate)
}

// write writes the pool's own gate if it did not move.
func (g *poolGate) write(ctx context.Context, r *reading, gate state.Gate, more ...clientv3.Op) error {
	_, err := g.store.Client.Txn(ctx).
		If(clientv3.Compare(clientv3.ModRevision(g.store.Rollouts.GateKey(g.req.rollout(), g.pool.group)), "=", r.gateRev)).
		Then(append(more, g.op(gate), g.store.Bells.RingOp())...).Commit()
	return err
}

// commit writes what only the holder of a claim may, if the gate is still at a revision: ErrMoved where it moved.
func (g *poolGate) commit(ctx context.Context, rev int64, claim *ownClaim, ops ...clientv3.Op) error {
	key := g.store.Rollouts.GateKey(g.req.rollout(), g.pool.group)
	done, err := g.store.Client.Txn(ctx).
		If(append(claim.conditions(), clientv3.Compare(clientv3.ModRevision(key), "=", rev))...).
		Then(ops...).
		Else(clientv3.OpGet(key, clientv3.WithKeysOnly())).Commit()
	switch {
	case err != nil || done.Succeeded:
		return err
	case revisionOf(done.Responses[0].GetResponseRange().Kvs) != rev:
		return ErrMoved
	}
	return claim.lostError()
}

// updateClock stops the progress deadline, starts it, or halts the group that did not keep it, as a decision says. It
// reports whether there was something to do.
func (g *poolGate) updateClock(ctx context.Context, r *reading, d Decision) (bool, error) {
	gate := r.view.Gate
	switch {
	case d.Stalled:
		gate.Clock = false
		gate.Halt(
			"",
			fmt.Sprintf("no node finished within %s (rollout.progressDeadline); %s", g.req.Rules.Deadline, d.StallReason),
		)
		return true, g.write(ctx, r, gate)
	case d.StartClock:
		clock, err := g.clockOp(ctx)
		if err != nil {
			return false, err
		}
		gate.Clock = true
		return true, g.write(ctx, r, gate, clock)
	case d.StopClock:
		gate.Clock = false
		return true, g.write(ctx, r, gate, clientv3.OpDelete(g.store.Rollouts.ClockKey(g.req.rollout(), g.pool.group)))
	}
	return false, nil
}

// clockOp writes the progress deadline anew.
func (g *poolGate) clockOp(ctx context.Context) (clientv3.Op, error) {
	lease, err := g.store.Client.Grant(ctx, int64(g.req.Rules.Deadline.Seconds()))
	if err != nil {
		return clientv3.Op{}, err
	}
	return clientv3.OpPut(g.store.Rollouts.ClockKey(g.req.rollout(), g.pool.group), "", clientv3.WithLease(lease.ID)), nil
}
