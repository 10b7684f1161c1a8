package lock

import (
	"context"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pullet/pullet/state"
)

// ending records that the node succeeded.
type ending struct {
	store  *state.Store
	req    *Request
	pool   *pool
	claim  *ownClaim
	roster *groupRoster
	groups *dependencies
}

// Succeed records in one transaction that the node runs the version, and what else it has to tell of that, and frees
// its claim. The last of its group to get there closes it.
func (t *Turn) Succeed(ctx context.Context, more ...clientv3.Op) error {
	return t.ending.record(ctx, more)
}

// record does what Succeed says.
func (e *ending) record(ctx context.Context, more []clientv3.Op) error {
	var end groupState
	err := again(ctx, e.req.node(), func() (err error) {
		if e.roster.frozen == nil { // it parked, and had nothing to change afterwards
			if err := e.roster.freeze(ctx, false); err != nil && Unreadable("", err) == nil {
				return err
			}
		}
		end, err = e.try(ctx, more)
		return err
	})
	if err != nil {
		return err
	}
	e.claim.forget()
	e.extendDeadline(ctx, end.clock)
	if e.roster.frozen != nil && end.through >= int64(e.roster.frozen.Size) && !end.closed {
		// The success is on record. Where this fails, a node that waits for the group closes it.
		_ = again(ctx, e.req.node(), func() error { return e.groups.close(ctx, e.req.Rules.Group) })
	}
	return nil
}

// groupState is the state of the group when a node is through.
type groupState struct {
	through int64 // nodes of the group
	clock   int64 // the lease of the group's progress deadline; 0: none runs
	closed  bool  // the group is through, and on record as that
}

// extendDeadline restarts the progress deadline after a holder finished. The nodes that wait notice one that has just
// passed.
func (e *ending) extendDeadline(ctx context.Context, clock int64) {
	if clock != 0 {
		_, _ = e.store.Client.KeepAliveOnce(ctx, clientv3.LeaseID(clock))
	}
}

// try makes one attempt for each state of the gate.
func (e *ending) try(ctx context.Context, more []clientv3.Op) (groupState, error) {
	s, q := e.store, e.req
	for {
		gate, gateRev, err := e.claim.adopt(ctx)
		if err != nil {
			return groupState{}, err
		}
		ops := append(e.ops(gate), more...)
		n := len(ops)
		ops = append(
			append(ops, e.groupOps()...),
			clientv3.OpGet(s.Rollouts.ClockKey(q.rollout(), e.pool.group)),
		) // its keys alone would come without the lease
		unmoved := clientv3.Compare(clientv3.ModRevision(s.Rollouts.GateKey(q.rollout(), q.Rules.Group)), "=", gateRev)
		done, err := s.Client.Txn(ctx).
			If(append(e.claim.conditions(), unmoved)...).
			Then(ops...).
			Else(append(e.verifyOps(), e.groupOps()...)...).Commit()
		if err != nil {
			return groupState{}, err
		}
		if done.Succeeded {
			q.Presence.Wrote(done.Header.Revision) // a record that lacks this one went back
			end := groupStateOf(done.Responses[n:])
			for _, kv := range done.Responses[n+2].GetResponseRange().Kvs {
				end.clock = kv.Lease
			}
			return end, nil
		}
		if over, err := e.verify(done); over || err != nil {
			return groupStateOf(done.Responses[2:]), err
		}
	}
}

// ops write the success. The last node of a roster also closes the group, unless it has a soak time: that takes a
// lease.
func (e *ending) ops(gate state.Gate) []clientv3.Op {
	s, q := e.store, e.req
	node, group, rollout := q.node(), q.Rules.Group, q.rollout()
	ops := append(e.claim.releaseOps(), s.Statuses.RunningOps(q.Presence, q.Version.ID)...)
	ops = append(ops, s.Statuses.Ops(node, state.Rollout, state.Success, q.status(""))...)
	if e.claim.held.key == "" { // else it is rung for the claim
		ops = append(ops, s.Bells.RingOp())
	}
	if uncount(&gate, node) { // a halt stays
		ops = append(ops, s.Rollouts.GateOp(rollout, group, gate))
	}
	if e.roster.frozen == nil || !e.roster.frozen.Has(node) {
		return ops
	}
	ops = append(ops, s.Rollouts.DoneOp(rollout, group, node, ""))
	if e.groups.soak(group) > 0 {
		return ops
	}
	last := []clientv3.Cmp{
		clientv3.Compare(clientv3.CreateRevision(s.Rollouts.DoneKey(rollout, group, node)), "=", 0),
		clientv3.Compare(clientv3.Version(s.Rollouts.ThroughKey(rollout, group)), "=", int64(e.roster.frozen.Size-1)),
		clientv3.Compare(clientv3.CreateRevision(s.Rollouts.ClosedKey(rollout, group)), "=", 0),
	}
	return append(ops, clientv3.OpTxn(last, []clientv3.Op{e.groups.closedOp(group)}, nil))
}

// groupOps read what groupStateOf takes.
func (e *ending) groupOps() []clientv3.Op {
	rollout, group := e.req.rollout(), e.req.Rules.Group
	return []clientv3.Op{
		clientv3.OpGet(e.store.Rollouts.ThroughKey(rollout, group), clientv3.WithKeysOnly()),
		clientv3.OpGet(e.store.Rollouts.ClosedKey(rollout, group), clientv3.WithCountOnly()),
	}
}

func groupStateOf(answers []*pb.ResponseOp) groupState {
	return groupState{through: arrived(answers[0]), closed: answers[1].GetResponseRange().Count > 0}
}

// verifyOps read whether the claim is still there, and whether an earlier attempt whose answer was lost succeeded.
func (e *ending) verifyOps() []clientv3.Op {
	key := e.claim.held.key
	if key == "" {
		key = e.req.Presence.Key
	}
	return []clientv3.Op{
		clientv3.OpGet(key, clientv3.WithKeysOnly()),
		clientv3.OpGet(e.store.Statuses.RunningKey(e.req.Version.ID, e.req.node()), clientv3.WithKeysOnly()),
	}
}

// verify reports that an earlier attempt succeeded, or ErrFenced when the claim is gone. Otherwise the gate changed.
func (e *ending) verify(done *clientv3.TxnResponse) (bool, error) {
	claim, running := done.Responses[0].GetResponseRange().Kvs, done.Responses[1].GetResponseRange().Kvs
	switch {
	case e.claim.held.key == "" && len(claim) > 0 && claim[0].ModRevision == e.req.Presence.Revision:
		return false, nil
	case e.claim.held.key != "" && len(claim) > 0 && claim[0].CreateRevision == e.claim.held.fence:
		return false, nil
	case e.claim.held.key != "" && len(running) > 0 && running[0].ModRevision > e.claim.held.fence:
		return true, nil
	}
	return false, e.claim.lostError()
}
