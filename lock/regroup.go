package lock

import (
	"context"
	"strconv"
	"strings"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pullet/pullet/state"
)

// elsewhere are the node's own claims in other groups than the one to which it belongs now.
func (t *Turn) elsewhere(kvs []*mvccpb.KeyValue) ([]*mvccpb.KeyValue, error) {
	for _, kv := range kvs {
		var c state.Claim
		if err := decode(kv, &c); err != nil {
			return nil, err
		}
		if c.Node != t.req.node() || strings.HasPrefix(string(kv.Key), t.claims) {
			continue
		}
		return []*mvccpb.KeyValue{kv}, nil // the next look finds the next one
	}
	return nil, nil
}

// regroup moves a claim that the node made in a group to which a newer version does not count it any more: there it would be in the way of
// others for ever, and here it is as far from done. It may be above the limit.
func (t *Turn) regroup(ctx context.Context, r *reading) error {
	old := r.others[0]
	key, index := string(old.Key), state.LastPart(old.Key)
	group := strings.TrimSuffix(strings.TrimPrefix(key, t.store.SlotPrefix("")), "/"+index)
	conditions := []clientv3.Cmp{clientv3.Compare(clientv3.CreateRevision(key), "=", old.CreateRevision), t.lives()}
	ops := []clientv3.Op{clientv3.OpDelete(key), clientv3.OpDelete(t.store.MarkPrefix(group) + index), t.store.RingOp()}
	if _, holds := r.view.own(r.view.Claims); !holds {
		free := 0
		for _, taken := r.view.Claims[free]; taken; _, taken = r.view.Claims[free] {
			free++
		}
		place := strconv.Itoa(free)
		conditions = append(conditions, clientv3.Compare(clientv3.CreateRevision(t.claims+place), "=", 0))
		ops = append(ops, clientv3.OpPut(t.claims+place, string(old.Value)), clientv3.OpPut(t.marks+place, t.req.node(), clientv3.WithLease(t.req.Presence.Lease)))
	}
	_, err := t.store.Client.Txn(ctx).If(conditions...).Then(ops...).Commit()
	return err
}
