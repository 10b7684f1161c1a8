package lock

import (
	"cmp"
	"context"
	"strconv"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pullet/pullet/state"
)

// admission claims a place for the node, as a decision says.
type admission struct {
	store   *state.Store
	req     *Request
	pool    *pool
	ticket  *ticket
	gate    *poolGate
	claim   *ownClaim
	reader  *reader
	waiting *waiting
}

// commit claims the place in one transaction. It fails with ErrMoved unless the place is still free or the node's own,
// nobody else claimed a place, the gates, the switches and the version are unchanged, and the node's lease lives. A
// claim for the same version ignores the gates.
func (a *admission) commit(ctx context.Context, r *reading, d Decision) error {
	if a.req.Parked && r.view.deadlinePassed() {
		_, err := a.gate.updateClock(ctx, r, r.view.decideParked(a.req.node()+" waits in mid-run for others (pullet status)"))
		return cmp.Or(err, ErrMoved)
	}
	key, fence := a.pool.claims+strconv.Itoa(d.Index), r.fences[d.Index]
	retried := fence != 0 && r.view.Claims[d.Index].Rollout == a.req.rollout()
	before := a.before(r, d, retried)
	ops, gate, err := a.ops(ctx, r, d, key, before)
	if err != nil {
		return err
	}
	done, err := a.store.Client.Txn(ctx).If(a.conditions(r, d, key, fence, retried)...).Then(ops...).Commit()
	if err != nil {
		return err
	}
	if !done.Succeeded {
		return ErrMoved
	}
	a.req.Presence.Claims(done.Header.Revision)
	if fence == 0 {
		fence = done.Header.Revision
	}
	if a.claim.gate, a.claim.gateRev = &r.view.Gate, r.gateRev; gate != nil {
		a.claim.gate, a.claim.gateRev = gate, done.Header.Revision
	}
	a.claim.held = heldPlace{
		key: key, fence: fence, groups: a.req.groups(r.view.Claims[d.Index].Groups), step: a.pool.step, before: before,
	}
	a.ticket.queued, a.ticket.maybeQueued = false, false
	a.waiting.over()
	if i, holds := r.view.own(r.view.Totals); holds {
		a.claim.held.total = a.store.Rollouts.TotalPrefix() + strconv.Itoa(i)
	} else if d.Total >= 0 {
		a.claim.held.total = a.store.Rollouts.TotalPrefix() + strconv.Itoa(d.Total)
	}
	if a.reader.restarted(r, done.Header) && !retried { // what it looked at may be forgotten
		return cmp.Or(a.claim.release(ctx), ErrMoved)
	}
	return nil
}

// conditions must hold when the place is claimed.
func (a *admission) conditions(r *reading, d Decision, key string, fence int64, retried bool) []clientv3.Cmp {
	out := []clientv3.Cmp{
		clientv3.Compare(clientv3.CreateRevision(key), "=", fence),
		a.req.Presence.Lives(),
	}
	if a.pool.follows {
		out = append(out, clientv3.Compare(clientv3.ModRevision(a.store.Versions.CurrentKey()), "=", a.req.VersionRev))
	}
	if fence == 0 { // of two that count the same nodes, and find room for one, one is admitted
		counts := []string{a.pool.claims}
		if a.pool.slots {
			for _, group := range a.req.across() {
				counts = append(counts, a.store.Rollouts.SlotPrefix(group))
			}
		}
		for _, prefix := range counts {
			none := clientv3.Compare(clientv3.CreateRevision(prefix), "<", r.revision+1)
			out = append(out, none.WithPrefix())
		}
	}
	if d.Total >= 0 {
		if _, holds := r.view.own(r.view.Totals); !holds {
			out = append(
				out,
				clientv3.Compare(clientv3.CreateRevision(a.store.Rollouts.TotalPrefix()+strconv.Itoa(d.Total)), "=", 0),
			)
		}
	}
	if !retried {
		out = append(out, r.moved...)
	}
	return out
}

// before is as which the node holds the place, for a run of a reaction. One that was killed left it in its own claim.
func (a *admission) before(r *reading, d Decision, retried bool) *state.Claim {
	was, held := r.view.Claims[d.Index]
	switch {
	case !held || !a.req.Apart:
		return nil
	case retried || was.Before != nil:
		return was.Before
	}
	return &was
}

// ops write the claim. It also returns the gate where the claim changes it.
func (a *admission) ops(
	ctx context.Context, r *reading, d Decision, key string, before *state.Claim,
) ([]clientv3.Op, *state.Gate, error) {
	q := a.req
	value := a.claim.value(a.pool.step)
	value.Groups, value.Before = q.groups(r.view.Claims[d.Index].Groups), before
	ops := []clientv3.Op{
		state.Put(key, value), clientv3.OpDelete(a.ticket.key), clientv3.OpPut(a.store.Doubts.ClaimedKey(q.node()), ""),
		clientv3.OpPut(a.pool.marks+strconv.Itoa(d.Index), q.node(), clientv3.WithLease(q.Presence.Lease)),
	}
	if d.Total >= 0 {
		ops = append(ops, state.Put(a.store.Rollouts.TotalPrefix()+strconv.Itoa(d.Total), value))
	}
	if a.pool.slots {
		ops = append(ops, clientv3.OpPut(a.store.Rollouts.BegunKey(q.rollout(), a.pool.group), ""))
	}
	if a.pool.slots && !q.Apart {
		ops = append(ops, a.store.Statuses.Ops(q.node(), state.Rollout, state.Running, q.status(""))...)
		ops = append(ops, a.store.Statuses.BeginOp(q.Presence, q.status(state.InRun)))
	}
	if !r.view.Timed || r.view.Gate.Clock && !r.view.deadlinePassed() { // else it passed while nobody was there to be late
		return ops, nil, nil
	}
	clock, err := a.gate.clockOp(ctx) // the first that is admitted sets the progress deadline going
	if err != nil {
		return nil, nil, err
	}
	gate := r.view.Gate
	gate.Clock = true
	return append(ops, clock, a.gate.op(gate)), &gate, nil
}
