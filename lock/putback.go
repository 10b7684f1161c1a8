package lock

import (
	"context"
	"strconv"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pullet/pullet/state"
)

// Slot is the slot that the node holds, for its own disk; nil where it holds none.
func (t *Turn) Slot() *state.HeldSlot {
	if t.key == "" {
		return nil
	}
	return &state.HeldSlot{Group: t.gate, Claim: t.claimed(t.at)}
}

// PutBack claims a slot again that its node held before the fleet's record went back in time: whoever looks sees who is in the middle of an
// upgrade, and it counts, also above the limit. A node that holds a slot there keeps that one. Nothing is claimed any more when the condition fails: the
// node's next pull judges anew.
func PutBack(ctx context.Context, s *state.Store, held *state.HeldSlot, while clientv3.Cmp) error {
	for {
		got, err := s.Client.Get(ctx, s.SlotPrefix(""), clientv3.WithPrefix())
		if err != nil {
			return err
		}
		taken := map[string]bool{}
		for _, kv := range got.Kvs {
			h := slotOf(s, kv, nil)
			if h.Node == held.Claim.Node {
				return nil
			}
			taken[h.Key] = true
		}
		free := 0
		for taken[s.SlotPrefix(held.Group)+strconv.Itoa(free)] {
			free++
		}
		key := s.SlotPrefix(held.Group) + strconv.Itoa(free)
		done, err := s.Client.Txn(ctx).If(clientv3.Compare(clientv3.CreateRevision(key), "=", 0), while).Then(state.Put(key, held.Claim), s.RingOp()).
			Else(clientv3.OpGet(key, clientv3.WithCountOnly())).Commit()
		if err != nil || done.Succeeded || done.Responses[0].GetResponseRange().Count == 0 {
			return err
		}
	}
}
