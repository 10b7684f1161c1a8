package lock

import (
	"context"
	"strconv"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pullet/pullet/state"
)

// PutBack claims a place again that its node held before the fleet's record went back in time. It counts, also above
// the limit, and other nodes see who is in the middle of an upgrade or of a step. A node that holds a slot, or a place
// at the step, keeps that one. PutBack claims nothing when the condition fails: the node's next pull decides anew. It
// returns the revision of the claim, 0 without one.
func PutBack(
	ctx context.Context,
	s *state.Store,
	held *state.HeldPlace,
	while clientv3.Cmp,
) (claimed int64, err error) {
	beside, all := held.Prefixes(s)
	for {
		got, err := s.Client.Get(ctx, all, clientv3.WithPrefix())
		if err != nil {
			return 0, err
		}
		taken := map[int]bool{}
		for _, kv := range got.Kvs {
			if s.Rollouts.ReadClaim(kv).Node == held.Claim.Node {
				return 0, nil
			}
			if place, err := strconv.Atoi(strings.TrimPrefix(string(kv.Key), beside)); err == nil {
				taken[place] = true
			}
		}
		key := beside + strconv.Itoa(firstFree(taken))
		done, err := s.Client.Txn(ctx).If(clientv3.Compare(clientv3.CreateRevision(key), "=", 0), while).
			Then(putBackOps(s, key, held)...).
			Else(clientv3.OpGet(key, clientv3.WithCountOnly())).Commit()
		switch {
		case err != nil:
			return 0, err
		case done.Succeeded:
			return done.Header.Revision, nil
		case done.Responses[0].GetResponseRange().Count == 0: // the condition failed
			return 0, nil
		}
	}
}

// putBackOps claim the place at a key. The node counts again, also where the record has it as given up or never knew
// it. Its own record stays as it is until it registers: by its revision the node knows that the store went back.
func putBackOps(s *state.Store, key string, held *state.HeldPlace) []clientv3.Op {
	claim := held.Claim
	claim.Member = held.Member
	return []clientv3.Op{
		state.Put(key, claim),
		clientv3.OpPut(s.Doubts.ClaimedKey(claim.Node), ""),
		clientv3.OpDelete(s.Nodes.DecommissionedKey(claim.Node)),
		s.Bells.RingOp(),
	}
}

// ReleaseSlot releases a slot of any group that the record has and the node does not know of: a restored record has it,
// or the node was killed before it began. Only a node with nothing to change may call it.
func ReleaseSlot(ctx context.Context, s *state.Store, req Request) error {
	t := NewTurn(s, req)
	if _, _, err := t.claim.adopt(ctx); err != nil {
		return err
	}
	return t.claim.release(ctx)
}
