package state

import (
	"context"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// proven reports a version that every node of the fleet ran: each is of a group that was through with it.
func (s *Store) proven(ctx context.Context, v Version) (bool, error) {
	if v.Proven {
		return true, nil
	}
	got, err := s.Client.Txn(ctx).Then(
		clientv3.OpGet(s.RosterKey(v.Rollout(), ""), clientv3.WithPrefix()),
		clientv3.OpGet(s.ClosedKey(v.Rollout(), ""), clientv3.WithPrefix(), clientv3.WithKeysOnly()),
	).Commit()
	if err != nil {
		return false, err
	}
	closed := map[string]bool{}
	for _, kv := range got.Responses[1].GetResponseRange().Kvs {
		if k, err := s.Key(kv); err == nil {
			closed[k.Group] = true
		}
	}
	listed, _, err := get[Listed](ctx, s, s.ListedKey(v.ID))
	if unlessBad(err) != nil {
		return false, err
	}
	inventory := map[string]Member{}
	for node, role := range listed.roles() {
		inventory[node] = Member{Role: role}
	}
	left, err := s.Members(ctx, inventory)
	if err != nil {
		return false, err
	}
	for _, kv := range got.Responses[0].GetResponseRange().Kvs {
		roster, err := s.readRoster(kv)
		k, bad := s.Key(kv)
		if err != nil || bad != nil || !closed[k.Group] {
			continue
		}
		for _, node := range roster.Nodes() {
			delete(left, node)
		}
	}
	return len(left) == 0, nil
}
