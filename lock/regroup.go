package lock

import (
	"context"
	"path"
	"strconv"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pullet/pullet/state"
)

// regroup moves a claim that the node made in a group to which it does not belong in a newer version. There it would
// block others for ever. Here it may be above the limit. It also counts in the old group until it is released, or until
// the node is known to change nothing: see yield.
func (u *upkeep) regroup(ctx context.Context, r *reading) error {
	old := r.others[0] // the next look finds the next one
	index := path.Base(old.Key)
	moved := old.Claim
	moved.Groups = append(without(without(moved.Groups, u.pool.group), old.Group), old.Group)
	still := clientv3.Compare(clientv3.CreateRevision(old.Key), "=", old.Fence)
	conditions := []clientv3.Cmp{still, u.req.Presence.Lives()}
	ops := []clientv3.Op{
		clientv3.OpDelete(old.Key),
		clientv3.OpDelete(u.store.Rollouts.MarkPrefix(old.Group) + index),
		u.store.Bells.RingOp(),
	}
	if _, holds := r.view.own(r.view.Claims); !holds {
		place := strconv.Itoa(firstFree(r.view.Claims))
		conditions = append(conditions, clientv3.Compare(clientv3.CreateRevision(u.pool.claims+place), "=", 0))
		ops = append(
			ops,
			state.Put(u.pool.claims+place, moved),
			clientv3.OpPut(u.pool.marks+place, u.req.node(), clientv3.WithLease(u.req.Presence.Lease)),
		)
	}
	_, err := u.store.Client.Txn(ctx).If(conditions...).Then(ops...).Commit()
	return err
}
