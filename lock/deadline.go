package lock

import (
	"context"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pullet/pullet/state"
)

// setClock stops the progress deadline, starts it, or halts the group that did not keep it, as a decision says. It
// reports whether there was something to do.
func (t *Turn) setClock(ctx context.Context, r *reading, d Decision) (bool, error) {
	gate := r.view.Gate
	switch {
	case d.Stalled:
		gate.Clock = false
		gate.Halt(
			"",
			fmt.Sprintf("no node finished within %s (rollout.progressDeadline); %s", t.req.Rules.Deadline, d.Late),
		)
		return true, t.setGate(ctx, r, gate)
	case d.Arm:
		clock, err := t.wind(ctx)
		if err != nil {
			return false, err
		}
		gate.Clock = true
		return true, t.setGate(ctx, r, gate, clock)
	case d.Disarm:
		gate.Clock = false
		return true, t.setGate(ctx, r, gate, clientv3.OpDelete(t.store.ClockKey(t.req.rollout(), t.gate)))
	}
	return false, nil
}

// Park gives the claim back, if the node has one, and records what it waits for in mid-run. The progress deadline goes
// on: a group whose nodes only wait halts like one whose holders do not finish, and then holds no newer version back.
func (t *Turn) Park(ctx context.Context, st state.Status) error {
	st.Parked, t.req.Parked = true, true
	err := t.free(ctx, t.store.StatusOps(t.req.node(), state.Rollout, state.Pending, st)...)
	if err != nil || t.req.Rules.Deadline <= 0 || t.req.Stale {
		return err
	}
	ops := append(t.switchOps(), clientv3.OpGet(t.store.GateKey(t.req.rollout(), ""), clientv3.WithPrefix()),
		clientv3.OpGet(t.store.ClockKey(t.req.rollout(), t.gate), clientv3.WithKeysOnly()))
	got, err := t.store.Client.Txn(ctx).Then(ops...).Commit()
	if err != nil {
		return err
	}
	r, a := &reading{now: state.IncarnationOf(got.Header)}, &answers{got.Responses}
	t.switches(r, a)
	t.gates(r, a.kvs())
	r.view.All = r.gates[state.AllGroups]
	r.view.Ticking, r.view.Closed = len(a.kvs()) > 0, t.closed()
	_, err = t.setClock(ctx, r, r.view.parked(t.req.node()+" waits in mid-run for "+st.Reason))
	return err
}

// late reports that the progress deadline passed, and nobody holds a place.
func (v View) late() bool { return v.Timed && v.Gate.Clock && !v.Ticking && len(v.Claims) == 0 }

// parked is what a node that waits in mid-run does about the progress deadline, which does not count while nobody may
// go on.
func (v View) parked(why string) Decision {
	stands := v.Switch != nil || v.Unknown || !v.Grace.IsZero() || v.Closed != "" || v.All.State == state.Halted
	switch {
	case v.Gate.State == state.Halted:
		return Decision{}
	case stands:
		return Decision{Disarm: v.Gate.Clock}
	case !v.Gate.Clock:
		return Decision{Arm: true}
	}
	return Decision{Stalled: !v.Ticking, Late: why}
}
