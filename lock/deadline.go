package lock

import (
	"context"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pullet/pullet/state"
)

// Park releases the claim, if the node has one, and records what the run waits for. The progress deadline still runs: a
// group whose nodes all wait halts like one whose holders do not finish, and then does not hold a newer version back.
func (t *Turn) Park(ctx context.Context, st state.Status) error {
	st.Parked, t.req.Parked = true, true
	var says []clientv3.Op
	if !t.req.Apart {
		says = t.store.Statuses.Ops(t.req.node(), state.Rollout, state.Pending, st)
	}
	err := t.claim.release(ctx, says...)
	if err != nil || t.req.Rules.Deadline <= 0 || t.req.Stale {
		return err
	}
	ops := append(t.reader.switchOps(),
		clientv3.OpGet(t.store.Rollouts.GateKey(t.req.rollout(), ""), clientv3.WithPrefix()),
		clientv3.OpGet(t.store.Rollouts.ClockKey(t.req.rollout(), t.pool.group), clientv3.WithKeysOnly()))
	got, err := t.store.Client.Txn(ctx).Then(ops...).Commit()
	if err != nil {
		return err
	}
	r, a := &reading{now: state.IncarnationOf(got.Header)}, &answers{got.Responses}
	t.reader.readSwitches(r, a)
	t.reader.readGates(r, a.kvs())
	r.view.All = r.gates[state.AllGroups]
	r.view.Ticking, r.view.Closed = len(a.kvs()) > 0, t.reader.closed()
	_, err = t.gate.updateClock(ctx, r, r.view.decideParked(t.req.node()+" waits in mid-run for "+st.Reason))
	return err
}

// deadlinePassed reports that the progress deadline passed while nobody held a place.
func (v View) deadlinePassed() bool {
	return v.Timed && v.Gate.Clock && !v.Ticking && len(v.Claims) == 0
}

// decideParked is what a parked node does about the progress deadline, which stands still while nobody may go on.
func (v View) decideParked(why string) Decision {
	stands := v.Switch != nil || v.Unknown || !v.Grace.IsZero() || v.Closed != "" || v.All.State == state.Halted
	switch {
	case v.Gate.State == state.Halted:
		return Decision{}
	case stands:
		return Decision{StopClock: v.Gate.Clock}
	case !v.Gate.Clock:
		return Decision{StartClock: true}
	}
	return Decision{Stalled: !v.Ticking, StallReason: why}
}
