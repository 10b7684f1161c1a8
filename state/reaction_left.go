package state

import (
	"context"
	"slices"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Through are the hosts that are through with a run: none of them comes to a step of it any more.
func (s *Reactions) Through(ctx context.Context, id string) (map[string]bool, error) {
	got, err := s.store.Client.Get(ctx, s.endedOf(id), clientv3.WithPrefix(), clientv3.WithKeysOnly())
	if err != nil {
		return nil, err
	}
	return s.lastNodes(got.Kvs), nil
}

// leaveRuns ends the part of a node that is given up in the runs that are not over: nobody waits for it.
func (s *Nodes) leaveRuns(ctx context.Context, node string, mark int64) error {
	reactions := s.store.Reactions
	pending, err := s.store.Client.Get(ctx, reactions.pendingPrefix(), clientv3.WithPrefix(), clientv3.WithKeysOnly())
	if err != nil {
		return err
	}
	for _, kv := range pending.Kvs {
		k, err := s.store.Key(kv)
		if err != nil {
			continue
		}
		run, _, err := get[ReactionRun](ctx, s.store, reactions.givenKey(k.Word))
		if unlessBad(err) != nil {
			return err
		}
		if !slices.Contains(run.Hosts, node) {
			continue
		}
		notOver := clientv3.Compare(clientv3.CreateRevision(reactions.endedOf(run.ID)+node), "=", 0)
		left := ReactionResult{Node: node, State: ReactionLeft, Reason: "the host was given up (pullet decommission)"}
		ops := append(reactions.EndOps(run.ID, left), s.store.Bells.RingOp())
		if _, err := s.whileGone(ctx, node, mark, notOver, ops...); err != nil {
			return err
		}
		if err := reactions.Ended(ctx, run); err != nil {
			return err
		}
	}
	return nil
}
