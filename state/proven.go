package state

import (
	"context"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// proven reports a version that every node of the fleet ran: each is of a group that was through with it.
func (s *Versions) proven(ctx context.Context, v Version) (bool, error) {
	if v.Proven {
		return true, nil
	}
	got, err := s.store.Client.Txn(ctx).Then(
		clientv3.OpGet(s.store.Rosters.Key(v.Rollout(), ""), clientv3.WithPrefix()),
		clientv3.OpGet(s.store.Rollouts.ClosedKey(v.Rollout(), ""), clientv3.WithPrefix(), clientv3.WithKeysOnly()),
	).Commit()
	if err != nil {
		return false, err
	}
	closed := map[string]bool{}
	for _, kv := range got.Responses[1].GetResponseRange().Kvs {
		if k, err := s.store.Key(kv); err == nil {
			closed[k.Group] = true
		}
	}
	listed, _, err := get[Listed](ctx, s.store, s.store.Nodes.ListedKey(v.ID))
	if unlessBad(err) != nil {
		return false, err
	}
	inventory := map[string]Member{}
	for node, role := range listed.roles() {
		inventory[node] = Member{Role: role}
	}
	left, err := s.store.Rosters.Members(ctx, inventory)
	if err != nil {
		return false, err
	}
	for _, kv := range got.Responses[0].GetResponseRange().Kvs {
		roster, err := s.store.Rosters.read(kv)
		k, bad := s.store.Key(kv)
		if err != nil || bad != nil || !closed[k.Group] {
			continue
		}
		for _, node := range roster.Nodes() {
			delete(left, node)
		}
	}
	return len(left) == 0, nil
}
