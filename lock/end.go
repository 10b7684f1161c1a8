package lock

import (
	"context"
	"slices"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pullet/pullet/state"
)

// Succeed records in one transaction that the node runs the version, and what else it has to tell of that, and frees
// its claim. The last of its group to get there closes it.
func (t *Turn) Succeed(ctx context.Context, told ...clientv3.Op) error {
	var end ending
	err := again(ctx, t.req.node(), func() (err error) {
		if t.roster == nil { // it parked, and had nothing to change afterwards
			if err := t.freeze(ctx, false); err != nil && Unreadable("", err) == nil {
				return err
			}
		}
		end, err = t.succeed(ctx, told)
		return err
	})
	if err != nil {
		return err
	}
	t.drop()
	t.prolong(ctx, end.clock)
	if t.roster != nil && end.through >= int64(t.roster.Size) && !end.closed {
		_ = again(
			ctx,
			t.req.node(),
			func() error { return t.close(ctx, t.req.Rules.Group) },
		) // the success is on record; else who waits for the group does it
	}
	return nil
}

// ending is what a node that is through finds about its group.
type ending struct {
	through int64 // nodes of the group
	clock   int64 // the lease of the group's progress deadline; 0: none runs
	closed  bool  // the group is through, and on record as that
}

// prolong begins the progress deadline again: a holder finished. One that passed just now is seen by who waits.
func (t *Turn) prolong(ctx context.Context, clock int64) {
	if clock != 0 {
		_, _ = t.store.Client.KeepAliveOnce(ctx, clientv3.LeaseID(clock))
	}
}

// succeed makes one attempt for each state of the gate.
func (t *Turn) succeed(ctx context.Context, told []clientv3.Op) (ending, error) {
	s, q := t.store, t.req
	for {
		gate, gateRev, err := t.leftovers(ctx)
		if err != nil {
			return ending{}, err
		}
		ops := append(t.successOps(gate), told...)
		n := len(ops)
		ops = append(
			append(ops, t.endOps()...),
			clientv3.OpGet(s.ClockKey(q.rollout(), t.gate)),
		) // its keys alone would come without the lease
		done, err := s.Client.Txn(ctx).
			If(append(t.holding(), clientv3.Compare(clientv3.ModRevision(s.GateKey(q.rollout(), q.Rules.Group)), "=", gateRev))...).
			Then(ops...).
			Else(append(t.lookBack(), t.endOps()...)...).Commit()
		if err != nil {
			return ending{}, err
		}
		if done.Succeeded {
			end := endOf(done.Responses[n:])
			for _, kv := range done.Responses[n+2].GetResponseRange().Kvs {
				end.clock = kv.Lease
			}
			return end, nil
		}
		if over, err := t.ended(done); over || err != nil {
			return endOf(done.Responses[2:]), err
		}
	}
}

// successOps are the writes of a success. A roster that the node is the last of is closed with it, unless the group is
// to be watched: that takes a lease.
func (t *Turn) successOps(gate state.Gate) []clientv3.Op {
	s, q := t.store, t.req
	node, group, rollout := q.node(), q.Rules.Group, q.rollout()
	ops := append(t.freeOps(), s.RunningOps(q.Presence, q.Version.ID)...)
	ops = append(ops, s.StatusOps(node, state.Rollout, state.Success, q.status(""))...)
	if t.key == "" { // else it is rung for the claim
		ops = append(ops, s.RingOp())
	}
	if strike(&gate, node) { // success strikes the failure; a halt stays
		ops = append(ops, s.GateOp(rollout, group, gate))
	}
	if t.roster == nil || !t.roster.Has(node) {
		return ops
	}
	ops = append(ops, s.DoneOp(rollout, group, node, ""))
	if t.soak(group) > 0 {
		return ops
	}
	last := []clientv3.Cmp{
		clientv3.Compare(clientv3.CreateRevision(s.DoneKey(rollout, group, node)), "=", 0),
		clientv3.Compare(clientv3.Version(s.ThroughKey(rollout, group)), "=", int64(t.roster.Size-1)),
		clientv3.Compare(clientv3.CreateRevision(s.ClosedKey(rollout, group)), "=", 0),
	}
	return append(ops, clientv3.OpTxn(last, []clientv3.Op{t.closedOp(group)}, nil))
}

// endOps read how far the group is, for endOf.
func (t *Turn) endOps() []clientv3.Op {
	rollout, group := t.req.rollout(), t.req.Rules.Group
	return []clientv3.Op{
		clientv3.OpGet(t.store.ThroughKey(rollout, group), clientv3.WithKeysOnly()), clientv3.OpGet(t.store.ClosedKey(rollout, group), clientv3.WithCountOnly()),
	}
}

func endOf(answers []*pb.ResponseOp) ending {
	return ending{through: arrived(answers[0]), closed: answers[1].GetResponseRange().Count > 0}
}

// leftovers reads the group's gate, and finds a claim, of whatever group, that a run which was killed left behind, and
// this one did not need.
func (t *Turn) leftovers(ctx context.Context) (gate state.Gate, gateRev int64, err error) {
	if seen := t.seen; seen != nil &&
		t.key != "" { // this process made the claim: it left nothing since, and knows the gate
		t.seen = nil
		return *seen, t.seenRev, nil
	}
	s := t.store
	gate.State = "open"
	got, err := s.Client.Txn(ctx).Then(clientv3.OpGet(s.GateKey(t.req.rollout(), t.req.Rules.Group)),
		clientv3.OpGet(s.SlotPrefix(""), clientv3.WithPrefix()),
		clientv3.OpGet(s.TotalPrefix(), clientv3.WithPrefix())).
		Commit()
	if err != nil {
		return gate, 0, err
	}
	kvs := got.Responses[0].GetResponseRange().Kvs
	if len(kvs) > 0 {
		_, gate = s.ReadGate(kvs[0])
	}
	for i := range 2 {
		for _, kv := range got.Responses[1+i].GetResponseRange().Kvs {
			c := s.ReadClaim(kv)
			switch {
			case c.Node != t.req.node():
			case i == 0 && t.key == "":
				t.key, t.fence = string(kv.Key), kv.CreateRevision
			case i == 1 && t.key != "":
				t.total = string(kv.Key)
			}
		}
	}
	return gate, revisionOf(kvs), err
}

// lookBack reads whether the claim is still there, and whether an attempt whose answer was lost did it.
func (t *Turn) lookBack() []clientv3.Op {
	key := t.key
	if key == "" {
		key = t.req.Presence.Key
	}
	return []clientv3.Op{
		clientv3.OpGet(key, clientv3.WithKeysOnly()),
		clientv3.OpGet(t.store.RunningKey(t.req.Version.ID, t.req.node()), clientv3.WithKeysOnly()),
	}
}

// ended reports that it was done already; ErrFenced that the claim is gone; neither that the gate moved.
func (t *Turn) ended(done *clientv3.TxnResponse) (bool, error) {
	claim, running := done.Responses[0].GetResponseRange().Kvs, done.Responses[1].GetResponseRange().Kvs
	switch {
	case t.key == "" && len(claim) > 0 && claim[0].ModRevision == t.req.Presence.Revision:
		return false, nil
	case t.key != "" && len(claim) > 0 && claim[0].CreateRevision == t.fence:
		return false, nil
	case t.key != "" && len(running) > 0 && running[0].ModRevision > t.fence:
		return true, nil
	}
	return false, t.lost()
}

// Fail records that the upgrade failed and why. The claim stays, the node retries inside it. When the group has more
// failures than it survives, it is halted in the same transaction.
func (t *Turn) Fail(ctx context.Context, reason string, how Failure) error {
	return t.FailFor(ctx, "", reason, how)
}

// FailFor is Fail where the upgrade failed because nobody knows what came of a targeted step: what it halts goes on
// when the step is settled. "" is no such step.
func (t *Turn) FailFor(ctx context.Context, unsettled, reason string, how Failure) error {
	return again(ctx, t.req.node(), func() error { return t.fail(ctx, unsettled, reason, how) })
}

// lost is why a node may not write that held its claim, or lived where it has none.
func (t *Turn) lost() error {
	if t.key == "" {
		return state.ErrLeaseLost
	}
	return ErrFenced
}

// Failure is what a node's failure means for the others.
type Failure int

const (
	Halting Failure = iota // it counts against what the group survives
	Late                   // it stops nobody before all have run the step that failed: the claim is freed for them
	Broken                 // the version worked here before: it is the host's own matter
	Host                   // a fault of the host: it counts apart, against Rules.MaxHostFailures
)

func (t *Turn) fail(ctx context.Context, unsettled, reason string, how Failure) error {
	s, q := t.store, t.req
	if how == Host && t.roster == nil {
		if err := t.freeze(ctx, false); err != nil {
			return err
		}
	}
	told := false
	for attempt := 0; ; attempt++ {
		gate, gateRev, err := s.Gate(ctx, q.rollout(), q.Rules.Group)
		if err != nil {
			return err
		}
		st := q.status(reason)
		st.Host = how == Host
		if unsettled != "" {
			st.Unknown, st.Remedy = unsettled, state.Act(state.SettleHint(unsettled))
		}
		ops := append(s.StatusOps(q.node(), state.Rollout, state.Failed, st), s.RingOp())
		if how == Host && !slices.Contains(gate.Failed, q.node()) {
			ops = append(ops, t.freeTotal()...)
		}
		if counts := how == Halting || how == Host; counts && (gate.State == state.Halted || attempt > 0) &&
			!told { // it is on record at once, however many fail at the same moment
			if err := t.tell(ctx, ops); err != nil {
				return err
			}
			told = true
		}
		switch {
		case told && (counted(gate, q.node()) && (how == Host || slices.Contains(gate.Failed, q.node())) || attempt > listing && gate.State == state.Halted):
			return nil // the next failure tries to be listed again
		case how == Late:
			ops = append(s.StatusOps(q.node(), state.Rollout, state.Failed, st), t.freeOps()...)
		case how == Halting:
			if fails(&gate, q.node(), reason, q.Rules.MaxFailures) {
				gate.Unknown = unsettled
			}
			ops = append(ops, s.GateOp(q.rollout(), q.Rules.Group, gate))
		case how == Host:
			faults(&gate, q.node(), reason, q.Rules.hostFailures(t.size))
			ops = append(ops, s.GateOp(q.rollout(), q.Rules.Group, gate))
		}
		gateKey := s.GateKey(q.rollout(), q.Rules.Group)
		done, err := s.Client.Txn(ctx).
			If(append(t.holding(), clientv3.Compare(clientv3.ModRevision(gateKey), "=", gateRev))...).
			Then(ops...).
			Else(clientv3.OpGet(gateKey, clientv3.WithKeysOnly())).Commit()
		if err != nil {
			return err
		}
		if done.Succeeded {
			if how == Late {
				t.drop()
			}
			return nil
		}
		if how == Late && t.toldBefore(ctx) { // an attempt whose answer was lost did it
			t.drop()
			return nil
		}
		if revisionOf(done.Responses[0].GetResponseRange().Kvs) == gateRev { // the gate did not move: it was the claim
			return t.lost()
		}
		if !sleep(ctx, jitter(q.node(), attempt, min(2*time.Second, 40*time.Millisecond<<min(attempt, 6)))) {
			return ctx.Err()
		}
	}
}

// listing is how often a node tries to be among the failed ones of a gate that is halted already. All of a large group
// may want that at once; what they failed of is on record beside it.
const listing = 3

// tell records a failure by which nothing more stops.
func (t *Turn) tell(ctx context.Context, ops []clientv3.Op) error {
	done, err := t.store.Client.Txn(ctx).If(t.holding()...).Then(ops...).Commit()
	if err == nil && !done.Succeeded {
		err = t.lost()
	}
	return err
}

// toldBefore reports that this run's failure is on record.
func (t *Turn) toldBefore(ctx context.Context) bool {
	st, err := t.store.StatusOf(ctx, t.req.node(), state.Rollout, state.Failed)
	return err == nil && st.Run == t.req.Run && t.req.Run != ""
}
