package state

import (
	"context"
	"slices"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Through are the hosts that come to no step of a run any more: they are through with it, or may not begin any more.
func (s *Reactions) Through(ctx context.Context, id string) (map[string]bool, error) {
	got, err := s.store.Client.Txn(ctx).Then(
		clientv3.OpGet(s.endedOf(id), clientv3.WithPrefix(), clientv3.WithKeysOnly()),
		clientv3.OpGet(s.pendingKey(id), clientv3.WithCountOnly()),
	).Commit()
	if err != nil {
		return nil, err
	}
	through := s.lastNodes(got.Responses[0].GetResponseRange().Kvs)
	if got.Responses[1].GetResponseRange().Count > 0 {
		return through, nil
	}
	runs, err := s.list(ctx, clientv3.OpGet(s.givenKey(id)))
	for _, run := range runs {
		for _, host := range run.Hosts {
			if !slices.ContainsFunc(run.Results, func(r ReactionResult) bool { return r.Node == host && r.State == Running }) {
				through[host] = true
			}
		}
	}
	return through, err
}

// halfDone halts a run that a host began with and does not end. What the host did is unknown: no further host begins
// with the run, and no host waits for its results.
func (s *Reactions) halfDone(ctx context.Context, run ReactionRun, left ReactionResult) error {
	was, _, err := get[ReactionResult](ctx, s.store, s.resultPrefix(run.ID)+left.Node)
	if unlessBad(err) != nil || err == nil && was.State != Running {
		return unlessBad(err)
	}
	return s.Halt(ctx, run.ID, left.Node, "it was given up in the middle of the run: what it did is unknown")
}

// leaveRuns ends the part of a node that is given up in the runs that are not over: nobody waits for it.
func (s *Nodes) leaveRuns(ctx context.Context, node string, mark int64) error {
	reactions := s.store.Reactions
	pending, err := s.store.Client.Get(ctx, reactions.PendingPrefix(), clientv3.WithPrefix(), clientv3.WithKeysOnly())
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
		if err := reactions.halfDone(ctx, run, left); err != nil {
			return err
		}
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
