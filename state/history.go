package state

import (
	"context"
	"fmt"
	"slices"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// keptVersions is how many of the fleet's last versions keep their rollouts, results and shared content.
const keptVersions = 10

// Proposed is what came of a proposal.
type Proposed struct {
	Done    bool     // the version that was proposed is the fleet's
	Version *Version // that the fleet has now, whoever set it; nil: none
	Rev     int64    // the revision at which that was set
}

// Propose sets the fleet's version if it is still the one that was read at a revision. Where another node was faster,
// it returns that node's; one that cannot be read is a *BadRecordError. The queues of the older rollout end with it. A
// version that the fleet had before gets an epoch of its own.
func (s *Versions) Propose(ctx context.Context, v Version, current *Version, seen int64) (Proposed, error) {
	got, err := s.store.Client.Txn(ctx).
		Then(s.historyOp(), clientv3.OpGet(s.CurrentKey()),
			clientv3.OpGet(s.store.Doubts.IncarnationKey(), clientv3.WithCountOnly())).
		Commit()
	if err != nil {
		return Proposed{}, err
	}
	if now := got.Responses[1].GetResponseRange().Kvs; len(now) > 0 && now[0].ModRevision != seen {
		return s.proposedBefore(now) // of many nodes that see a commit at once most come too late
	}
	history := s.historyOf(got.Responses[0].GetResponseRange().Kvs)
	ops, err := s.store.Doubts.firstOps(ctx, seen != 0 || got.Responses[2].GetResponseRange().Count > 0)
	if err != nil {
		return Proposed{}, err
	}
	ops = append(ops, s.store.Bells.RingOp(), s.store.Bells.wakeOp())
	stays := v.Same(current) // only what is said of it changes
	switch {
	case stays:
		v.Seq, v.Epoch = current.Seq, current.Epoch
	case current != nil:
		v.Seq, v.Epoch = current.Seq+1, 0
		ops = append(ops, clientv3.OpDelete(s.store.Rollouts.QueuesPrefix(current.Rollout()), clientv3.WithPrefix()))
	case len(history) > 0: // what the fleet had last was removed, or cannot be read
		v.Seq, v.Epoch = history[len(history)-1].Seq+1, 0
	}
	v.Bad = v.Bad[max(0, len(v.Bad)-maxBad):]
	for _, h := range history {
		if !stays && h.Same(&v) && h.Seq != v.Seq {
			v.Epoch = v.Seq
		}
	}
	ops = append(ops, Put(s.CurrentKey(), v), Put(s.historyKey(v.Seq), v))
	ops = append(ops, s.store.Nodes.listOps(v)...)
	done, err := s.store.Client.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision(s.CurrentKey()), "=", seen)).
		Then(ops...).Else(clientv3.OpGet(s.CurrentKey())).Commit()
	if err != nil {
		return Proposed{}, err
	}
	if !done.Succeeded {
		return s.proposedBefore(done.Responses[0].GetResponseRange().Kvs)
	}
	if !stays {
		err = s.retire(ctx, append(history, v))
	}
	return Proposed{true, &v, done.Header.Revision}, err
}

// proposedBefore is the version of a node that was faster.
func (s *Versions) proposedBefore(now []*mvccpb.KeyValue) (Proposed, error) {
	if len(now) == 0 {
		return Proposed{}, nil
	}
	v, err := Read[Version](s.store, now[0])
	if err != nil {
		return Proposed{Rev: now[0].ModRevision}, err
	}
	return Proposed{Version: &v, Rev: now[0].ModRevision}, nil
}

func (s *Versions) historyKey(seq int) string {
	return s.store.key("history", fmt.Sprintf("%010d", seq))
}

// History are the fleet's last versions, the oldest first.
func (s *Versions) History(ctx context.Context) ([]Version, error) {
	got, err := s.store.Client.Do(ctx, s.historyOp())
	if err != nil {
		return nil, err
	}
	return s.historyOf(got.Get().Kvs), nil
}

func (s *Versions) historyOp() clientv3.Op {
	return clientv3.OpGet(s.store.key("history")+"/", clientv3.WithPrefix())
}

func (s *Versions) historyOf(kvs []*mvccpb.KeyValue) (out []Version) {
	for _, kv := range kvs {
		if v, err := Read[Version](s.store, kv); err == nil {
			out = append(out, v)
		}
	}
	return out
}

// retire forgets what belongs to versions that the fleet left long ago and that no node runs. A node that still runs
// one corrects its drift by that record: without it the steps that one node takes for all would run again.
func (s *Versions) retire(ctx context.Context, history []Version) error {
	if len(history) <= keptVersions {
		return nil
	}
	for i := 0; i < len(history)-keptVersions; {
		old, rest := history[i], slices.Delete(slices.Clone(history), i, i+1)
		var unused []clientv3.Cmp
		if !slices.ContainsFunc(rest, func(v Version) bool { return v.ID == old.ID }) { // else its record stays anyhow
			unused = append(
				unused,
				clientv3.Compare(clientv3.CreateRevision(s.store.Statuses.RunningKey(old.ID, "")), "=", 0).WithPrefix(),
			)
		}
		done, err := s.store.Client.Txn(ctx).If(unused...).Then(s.retireOps(old, rest)...).Commit()
		switch {
		case err != nil:
			return err
		case done.Succeeded:
			history = rest
		default:
			i++
		}
	}
	return s.store.Results.sweep(ctx, history[len(history)-keptVersions])
}

// retireOps remove what belongs to a version and to none of the rest.
func (s *Versions) retireOps(old Version, rest []Version) []clientv3.Op {
	ops := []clientv3.Op{clientv3.OpDelete(s.historyKey(old.Seq))}
	named := func(name string) bool { // results are the version's, the rest is the rollout's
		return slices.ContainsFunc(rest, func(v Version) bool { return v.Rollout() == name || v.ID == name })
	}
	if !slices.ContainsFunc(rest, func(v Version) bool { return v.Rollout() == old.Rollout() }) {
		ops = append(ops, clientv3.OpDelete(s.store.key("rollout", old.Rollout())+"/", clientv3.WithPrefix()))
	}
	if !named(old.Rollout()) {
		ops = append(ops, clientv3.OpDelete(s.store.key("run", old.Rollout())+"/", clientv3.WithPrefix()))
	}
	if old.Epoch != 0 && !named(old.ID) {
		ops = append(ops, clientv3.OpDelete(s.store.key("run", old.ID)+"/", clientv3.WithPrefix()))
	}
	if !slices.ContainsFunc(rest, func(v Version) bool { return v.ID == old.ID }) {
		ops = append(
			ops,
			clientv3.OpDelete(s.store.Nodes.ListedKey(old.ID)),
			clientv3.OpDelete(s.store.Steps.SettledKey(old.ID, ""), clientv3.WithPrefix()),
		)
	}
	return ops
}
