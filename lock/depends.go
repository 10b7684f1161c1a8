package lock

import (
	"context"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pullet/pullet/state"
)

// dependencies closes the groups that are through, so that those that depend on them start.
type dependencies struct {
	store *state.Store
	req   *Request
}

// closeOrFindMissing closes a group that is through. Otherwise it finds out who is missing.
func (d *dependencies) closeOrFindMissing(ctx context.Context, dep *Dependency) (closed bool, err error) {
	s, rollout := d.store, d.req.rollout()
	roster, err := s.Rosters.Freeze(ctx, s.Rosters.Key(rollout, dep.Group), d.req.Inventory, d.req.ofGroup(dep.Group))
	if err != nil {
		return false, err
	}
	doneKeys := clientv3.OpGet(s.Rollouts.DoneKey(rollout, dep.Group, ""), clientv3.WithPrefix(), clientv3.WithKeysOnly())
	got, err := s.Client.Txn(ctx).Then(append([]clientv3.Op{doneKeys}, populationOps(s)...)...).Commit()
	if err != nil {
		return false, err
	}
	done := lastParts(s, got.Responses[0].GetResponseRange().Kvs)
	nodes := populationOf(s, got.Responses[1:])
	dep.Missing, dep.More = nodes.missing(roster.Nodes(), done, d.req.Rules.OnLost)
	if len(dep.Missing) > 0 {
		return false, fillConditions(ctx, s, d.req, dep.Missing)
	}
	return true, d.closeAfter(ctx, dep.Group, len(done))
}

// close records that a group is through. This node was the last.
func (d *dependencies) close(ctx context.Context, group string) error {
	return d.closeAfter(ctx, group, 1)
}

// closeAfter records that a group is through, and starts its soak time unless none of its nodes changed.
func (d *dependencies) closeAfter(ctx context.Context, group string, changed int) error {
	s, rollout := d.store, d.req.rollout()
	ops := []clientv3.Op{d.closedOp(group), s.Bells.RingOp()}
	if soak := d.soak(group); changed > 0 && soak > 0 {
		lease, err := s.Client.Grant(ctx, int64(soak.Seconds()))
		if err != nil {
			return err
		}
		ops = append(
			ops,
			state.Put(s.Rollouts.SoakKey(rollout, group), time.Now().UTC().Add(soak), clientv3.WithLease(lease.ID)),
		)
	}
	_, err := s.Client.Txn(ctx).
		If(clientv3.Compare(clientv3.CreateRevision(s.Rollouts.ClosedKey(rollout, group)), "=", 0)).
		Then(ops...).
		Commit()
	return err
}

func (d *dependencies) closedOp(group string) clientv3.Op {
	return state.Put(
		d.store.Rollouts.ClosedKey(d.req.rollout(), group),
		map[string]any{"by": d.req.node(), "time": time.Now().UTC()},
	)
}

// soak is how long a group is watched before others follow.
func (d *dependencies) soak(group string) time.Duration {
	if d.req.Rules.Soak == nil {
		return 0
	}
	return d.req.Rules.Soak(group)
}
