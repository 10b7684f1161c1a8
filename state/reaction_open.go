package state

import (
	"context"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// OpenRun is the value of the pending record of a run that package lock/arbiter opened.
const OpenRun Word = "open"

// IsOpen reports whether a pending record is that of an open run.
func (s *Reactions) IsOpen(kv *mvccpb.KeyValue) bool {
	value, err := Read[Word](s.store, kv)
	return err == nil && value == OpenRun
}

// PendingPrefix is where the runs of reactions are with which a host may begin.
func (s *Reactions) PendingPrefix() string { return s.store.key("reaction_pending") + "/" }

// Halt halts a run, because of a host or of none for "", and writes what belongs to that.
func (s *Reactions) Halt(ctx context.Context, id, node, reason string, more ...clientv3.Op) error {
	return s.changeGate(ctx, id, func(gate *Gate) bool {
		gate.Halt(node, reason)
		return true
	}, more...)
}

// changeGate changes the gate of a run, and writes more with it. Nothing is written if change returns false.
func (s *Reactions) changeGate(ctx context.Context, id string, change func(*Gate) bool, more ...clientv3.Op) error {
	key := s.store.Rollouts.GateKey(id, AllGroups)
	for {
		gate, rev, err := s.store.Rollouts.Gate(ctx, id, AllGroups)
		if err != nil || !change(&gate) {
			return err
		}
		done, err := s.store.Client.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision(key), "=", rev)).
			Then(append(more, Put(key, gate), s.store.Bells.RingOp())...).Commit()
		if err != nil || done.Succeeded {
			return err
		}
	}
}
