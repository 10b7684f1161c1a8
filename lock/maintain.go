package lock

import (
	"context"
	"fmt"
	"strconv"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pullet/pullet/state"
)

// upkeep puts in order what keeps the node waiting.
type upkeep struct {
	store     *state.Store
	req       *Request
	pool      *pool
	ticket    *ticket
	gate      *poolGate
	groups    *dependencies
	fullSince time.Time // since when the node is the first in the queue and waits for holders
}

// maintain does what the first in the queue does while it waits: it reclaims from lost nodes, halts a group that makes
// no progress, closes groups that are through, and finds out who is missing there. It reports that another look is
// worth it.
func (u *upkeep) maintain(ctx context.Context, r *reading, d *Decision) (again bool, err error) {
	if d.Recognise && r.view.Ahead != nil { // the first in the queue does it
		return false, nil
	}
	if d.Recognise {
		return true, u.store.Doubts.Recognise(ctx, u.req.node(), r.was, r.wasRev)
	}
	if taken, err := u.reclaimAll(ctx, r, d); taken || err != nil {
		return taken, err
	}
	if err := u.findHolders(ctx, r, d); err != nil {
		return false, err
	}
	if d.Yield {
		return true, u.yield(ctx, r)
	}
	if set, err := u.gate.updateClock(ctx, r, *d); set || err != nil {
		return set, err
	}
	for i := range r.view.Depends {
		dep := &r.view.Depends[i]
		if r.view.Ahead != nil || u.ticket.outside { // the first in the queue finds out
			break
		}
		if dep.Closed || dep.Gate.State == state.Halted {
			continue
		}
		closed, err := u.groups.closeOrFindMissing(ctx, dep)
		if closed || err != nil {
			return closed, err
		}
		*d = Decide(r.view) // now with who is missing
		return false, nil
	}
	return false, nil
}

// reclaimAll reclaims the places for which the node waits from lost nodes. They are lost because etcd ended the leases
// of their marks.
func (u *upkeep) reclaimAll(ctx context.Context, r *reading, d *Decision) (taken bool, err error) {
	lost := d.ReclaimElsewhere
	for _, i := range d.Reclaim {
		lost = append(
			lost,
			Held{
				Key:   u.pool.claims + strconv.Itoa(i),
				Fence: r.fences[i],
				Group: u.pool.group,
				Name:  u.pool.name,
				Claim: r.view.Claims[i],
			},
		)
	}
	for _, h := range lost {
		if taken, err := u.reclaim(ctx, r, h); taken || err != nil {
			return taken, err
		}
		r.markAlive(h) // it registered anew, or somebody was faster
	}
	if len(lost) > 0 {
		*d = Decide(r.view)
	}
	return false, nil
}

// findHolders finds the conditions of the holders for which the node waits. It does so once the node has been first in
// the queue for Patience, or at once in a pull that does not wait that long.
func (u *upkeep) findHolders(ctx context.Context, r *reading, d *Decision) error {
	if !d.AwaitHolders {
		u.fullSince = time.Time{}
		return nil
	}
	if u.fullSince.IsZero() {
		u.fullSince = time.Now()
	}
	if time.Since(u.fullSince) < Patience && !u.req.Lasting && !u.req.Brief {
		return nil
	}
	if err := fillConditions(ctx, u.store, u.req, d.Wait.Holders); err != nil {
		return err
	}
	r.view.Conditions = map[string]state.Holder{}
	for _, h := range d.Wait.Holders {
		r.view.Conditions[h.Node] = h
	}
	*d = Decide(r.view)
	return nil
}

// yield releases the node's place in the total, and stops counting in groups that it left: the nodes for which it waits
// may need that. It keeps its place in its group, where it is half changed.
func (u *upkeep) yield(ctx context.Context, r *reading) error {
	var unmoved []clientv3.Cmp
	var ops []clientv3.Op
	as := func(key string) {
		unmoved = append(unmoved, clientv3.Compare(clientv3.ModRevision(key), "<", r.revision+1))
	}
	if index, counts := r.view.own(r.view.Totals); counts {
		key := u.store.Rollouts.TotalPrefix() + strconv.Itoa(index)
		as(key)
		ops = append(ops, clientv3.OpDelete(key))
	}
	if index, holds := r.view.own(r.view.Claims); holds {
		key, idle := u.pool.claims+strconv.Itoa(index), r.view.Claims[index]
		idle.Idle, idle.Groups = true, u.req.groups(nil)
		as(key)
		ops = append(ops, state.Put(key, idle))
	}
	_, err := u.store.Client.Txn(ctx).If(unmoved...).Then(append(ops, u.store.Bells.RingOp())...).Commit()
	return err
}

// reclaim takes a claim back from a node that does not answer, and records it. The transaction checks that the node's
// lease ended.
func (u *upkeep) reclaim(ctx context.Context, r *reading, c Held) (bool, error) {
	s, q := u.store, u.req
	gate, gateRev, err := s.Rollouts.Gate(ctx, q.rollout(), c.Group)
	if err != nil {
		return false, err
	}
	reason := fmt.Sprintf(
		"it did not answer while it held %s: the slot was taken back (rollout.onLost: %s)",
		c.Name,
		q.Rules.OnLost,
	)
	conditions := []clientv3.Cmp{
		clientv3.Compare(clientv3.CreateRevision(c.Key), "=", c.Fence),
		clientv3.Compare(clientv3.CreateRevision(s.Presences.AliveKey(c.Node)), "=", 0),
		clientv3.Compare(clientv3.ModRevision(s.Rollouts.GateKey(q.rollout(), c.Group)), "=", gateRev),
	}
	record := map[string]any{
		"by":     q.node(),
		"slot":   c.Key,
		"fence":  c.Fence,
		"claim":  c.Claim,
		"onLost": q.Rules.OnLost,
		"time":   time.Now().UTC(),
	}
	ops := []clientv3.Op{
		clientv3.OpDelete(c.Key), state.Put(s.Rollouts.LostKey(q.rollout(), c.Node), record), s.Bells.RingOp(),
	}
	for i, other := range r.view.Totals {
		if other.Node == c.Node {
			ops = append(ops, clientv3.OpDelete(s.Rollouts.TotalPrefix()+strconv.Itoa(i)))
		}
	}
	st := q.status(reason)
	st.Version, st.Release, st.Remedy = c.Version, c.Release, state.Act(startAgain(c.Node))
	if u.pool.slots && !q.Apart {
		ops = append(ops, s.Statuses.LostOp(c.Node, st))
	}
	if q.Rules.OnLost == Fail {
		gate.Step = u.pool.step
		u.pool.survived(q, 0).count(&gate, c.Node, reason, Halting)
		ops = append(ops, s.Rollouts.GateOp(q.rollout(), c.Group, gate))
	}
	done, err := s.Client.Txn(ctx).If(conditions...).Then(ops...).Commit()
	return err == nil && done.Succeeded, err
}
