package state

import (
	"cmp"
	"context"
	"slices"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// keptRuns and keptHosts are how many runs are kept, with how many hosts in all.
const (
	keptRuns  = 1000
	keptHosts = 20_000
)

// Forget removes runs that are over and were given long ago by the fleet's clock, and the oldest of those that are over
// where there are too many, with what belongs to them.
func (s *Reactions) Forget(ctx context.Context, now time.Time) error {
	got, err := s.store.Client.Get(ctx, s.givenPrefix(), clientv3.WithPrefix())
	if err != nil {
		return err
	}
	slices.SortFunc(got.Kvs, func(a, b *mvccpb.KeyValue) int { // the newest first; ids have times by clocks of hosts
		return cmp.Compare(b.CreateRevision, a.CreateRevision)
	})
	runs, hosts := 0, 0
	for _, kv := range got.Kvs {
		k, err := s.store.Key(kv)
		if err != nil {
			continue
		}
		run, bad := Read[ReactionRun](s.store, kv)
		runs, hosts = runs+1, hosts+len(run.Hosts)
		old := bad != nil || !run.Clock.IsZero() && now.Sub(run.Clock) >= KeptEvents
		if !old && runs <= keptRuns && (hosts <= keptHosts || runs == 1) {
			continue
		}
		over, err := s.isOver(ctx, k.Word)
		if err != nil {
			return err
		}
		if !over {
			continue
		}
		if _, err := s.store.Client.Txn(ctx).Then(s.forgetOps(k.Word)...).Commit(); err != nil {
			return err
		}
	}
	return nil
}

// forgetOps remove a run and what belongs to it.
func (s *Reactions) forgetOps(id string) []clientv3.Op {
	ops := []clientv3.Op{clientv3.OpDelete(s.givenKey(id)), clientv3.OpDelete(s.pendingKey(id))}
	c := s.store.Commands
	for _, prefix := range []string{
		s.resultPrefix(id), s.endedOf(id), s.store.Rollouts.key(id), s.store.key("run", id) + "/",
		c.Prefix(id, "queue"), c.Prefix(id, "claim"), c.Prefix(id, "mark"),
	} {
		ops = append(ops, clientv3.OpDelete(prefix, clientv3.WithPrefix()))
	}
	return ops
}

// isOver reports whether no host does anything about a run any more: none may begin with it, and none that the fleet
// still has is at it or waits in it.
func (s *Reactions) isOver(ctx context.Context, id string) (bool, error) {
	got, err := s.store.Client.Txn(ctx).Then(
		clientv3.OpGet(s.pendingKey(id), clientv3.WithCountOnly()),
		clientv3.OpGet(s.resultPrefix(id), clientv3.WithPrefix()),
	).Commit()
	if err != nil || got.Responses[0].GetResponseRange().Count > 0 {
		return false, err
	}
	for _, kv := range got.Responses[1].GetResponseRange().Kvs {
		r, bad := Read[ReactionResult](s.store, kv)
		if bad != nil || r.Over() {
			continue
		}
		host, err := s.store.Client.Get(ctx, s.store.Nodes.Key(r.Node), clientv3.WithCountOnly())
		if err != nil || host.Count > 0 {
			return false, err
		}
	}
	return true, nil
}

// Forget removes pages that were written long ago by the fleet's clock.
func (s *EventLog) Forget(ctx context.Context, now time.Time) error {
	const some = 50
	old, last := 0, -1
	for {
		pages, err := s.After(ctx, last, some)
		if err != nil {
			return err
		}
		for _, p := range pages {
			stamped := !p.Clock.IsZero()
			if stamped && now.Sub(p.Clock) < KeptEvents {
				return s.forgetUpTo(ctx, old)
			}
			if last = p.Number; stamped {
				old = last
			}
		}
		if len(pages) < some {
			return s.forgetUpTo(ctx, old)
		}
	}
}

// forgetUpTo removes pages up to a number.
func (s *EventLog) forgetUpTo(ctx context.Context, last int) error {
	if last == 0 {
		return nil
	}
	_, err := s.store.Client.Delete(ctx, s.pageKey(0), clientv3.WithRange(s.pageKey(last+1)))
	return err
}
