package state

import (
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// Found is what a node finds on record as it registers, at the revision of its registration.
type Found struct {
	Version    *Version // the fleet's; nil: there is none
	VersionRev int64    // the revision at which that was set
	VersionErr error    // the version cannot be read: a *BadRecordError
	Waits      Status   // for what it waited last in a rollout; zero where it did not
	Skipped    *Skipped // the newest commit that the fleet does not take; nil: there is none
	SkippedRev int64    // the revision at which that was recorded
	InStep     bool     // it holds a place at a serialized step
	Role       string   // that it registers with
	Orders     Orders   // of operators, for that role

	Authority Authority // of the fleet; zero where it has none of its own
	Handed    *Handed   // what the node needs as a member of the datastore; nil: it is to be none
}

// foundOps read what found files.
func (s *Statuses) foundOps(node, role string) []clientv3.Op {
	return append(
		s.store.Switches.ordersOps(node, role),
		clientv3.OpGet(s.store.Versions.CurrentKey()),
		clientv3.OpGet(s.key(Rollout, Pending, node)),
		clientv3.OpGet(s.store.Steps.SemaphorePrefix(""), clientv3.WithPrefix()),
		clientv3.OpGet(s.store.Versions.skippedKey()),
		clientv3.OpGet(s.store.Identities.authorityKey()),
		clientv3.OpGet(s.store.Datastores.HandedKey(node)),
	)
}

func (s *Statuses) found(node, role string, answers []*pb.ResponseOp) (f Found) {
	f.Role, f.Orders = role, s.store.Switches.ordersOf(node, role, answers)
	answers = answers[len(s.store.Switches.ordersOps(node, role)):]
	for _, kv := range answers[0].GetResponseRange().Kvs {
		v, err := Read[Version](s.store, kv)
		if f.VersionRev, f.VersionErr = kv.ModRevision, err; err == nil {
			f.Version = &v
		}
	}
	for _, kv := range answers[1].GetResponseRange().Kvs {
		f.Waits, _ = Read[Status](s.store, kv) // for people: one that cannot be read says nothing
	}
	for _, kv := range answers[2].GetResponseRange().Kvs {
		f.InStep = f.InStep || s.store.Rollouts.ReadClaim(kv).Node == node
	}
	for _, kv := range answers[3].GetResponseRange().Kvs {
		f.SkippedRev = kv.ModRevision
		if one, err := Read[Skipped](s.store, kv); err == nil {
			f.Skipped = &one
		}
	}
	for _, kv := range answers[4].GetResponseRange().Kvs {
		f.Authority, _ = Read[Authority](s.store, kv) // hosts keep what they believe where it cannot be read
	}
	for _, kv := range answers[5].GetResponseRange().Kvs {
		if h, err := Read[Handed](s.store, kv); err == nil {
			f.Handed = &h
		}
	}
	return f
}
