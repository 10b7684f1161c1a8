package lock

import (
	"context"
	"path"
	"strconv"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pullet/pullet/state"
)

// regroup moves a claim that the node made in a group to which a newer version does not count it any more: there it
// would be in the way of others for ever, and here it is as far from done. It may be above the limit. It counts on in
// the group that it left until it is given back, or the node is known to change nothing: see yield.
func (t *Turn) regroup(ctx context.Context, r *reading) error {
	old := r.others[0] // the next look finds the next one
	index := path.Base(old.Key)
	moved := old.Claim
	moved.Groups = append(without(without(moved.Groups, t.gate), old.Group), old.Group)
	conditions := []clientv3.Cmp{clientv3.Compare(clientv3.CreateRevision(old.Key), "=", old.Fence), t.lives()}
	ops := []clientv3.Op{
		clientv3.OpDelete(old.Key),
		clientv3.OpDelete(t.store.MarkPrefix(old.Group) + index),
		t.store.RingOp(),
	}
	if _, holds := r.view.own(r.view.Claims); !holds {
		place := strconv.Itoa(firstFree(r.view.Claims))
		conditions = append(conditions, clientv3.Compare(clientv3.CreateRevision(t.claims+place), "=", 0))
		ops = append(
			ops,
			state.Put(t.claims+place, moved),
			clientv3.OpPut(t.marks+place, t.req.node(), clientv3.WithLease(t.req.Presence.Lease)),
		)
	}
	_, err := t.store.Client.Txn(ctx).If(conditions...).Then(ops...).Commit()
	return err
}
