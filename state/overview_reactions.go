package state

import clientv3 "go.etcd.io/etcd/client/v3"

// reacts ask whether something is on record of reactions: one key of each kind says so.
func (s *Views) reacts() (ops []clientv3.Op) {
	r := s.store.Reactions
	for _, prefix := range []string{s.store.Events.groupsPrefix(), r.givenPrefix(), r.pausedPrefix()} {
		ops = append(ops, clientv3.OpGet(prefix, clientv3.WithPrefix(), clientv3.WithKeysOnly(), clientv3.WithLimit(1)))
	}
	return ops
}
