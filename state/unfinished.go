package state

import (
	"context"
	"slices"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// unfinished are the targeted steps that a node began for the fleet's version, or for the fleet, that must not run
// twice and whose end is not on record, with the revision at which the last of them began.
func unfinished(ctx context.Context, s *Store, node, version string) (steps []string, began int64, err error) {
	for _, scope := range []string{version, OnceScope} {
		got, err := s.Client.Get(ctx, s.key("run", scope)+"/", clientv3.WithPrefix())
		if err != nil {
			return nil, 0, err
		}
		attempts := map[string]string{} // of the results that are known, by the hash of their step
		var starts []*mvccpb.KeyValue
		for _, kv := range got.Kvs {
			k, err := s.Key(kv)
			switch {
			case err != nil || k.Node != node:
			case k.kind.shape == "run/ROLLOUT/HASH/started/NODE":
				starts = append(starts, kv)
			case k.kind.shape == "run/ROLLOUT/HASH/result/NODE":
				if r := s.Steps.ReadResult(kv); r.Result != "unknown" {
					attempts[k.Hash] = r.Attempt
				}
			}
		}
		for _, kv := range starts {
			k, _ := s.Key(kv)
			start := s.Steps.ReadStart(kv)
			if ended, known := attempts[k.Hash]; start.Step != "" && !start.Repeatable && (!known || ended != start.Attempt) {
				steps, began = append(steps, start.Step), max(began, kv.ModRevision)
			}
		}
	}
	slices.Sort(steps)
	return steps, began, nil
}

// haltUnfinished halts the groups in which a node that is given up holds a slot, where it began a targeted step under
// that slot and nobody will know what came of it, until an operator says so. Who resumes before the node is given up,
// at the revision mark, does not say so. It returns all such steps.
func haltUnfinished(ctx context.Context, s *Store, node string, mark int64) ([]string, error) {
	current, _, err := s.Versions.Current(ctx)
	if current == nil || err != nil {
		return nil, unlessBad(err)
	}
	steps, began, err := unfinished(ctx, s, node, current.ID)
	if len(steps) == 0 || err != nil {
		return nil, err
	}
	held, err := s.Client.Get(ctx, s.Rollouts.SlotPrefix(""), clientv3.WithPrefix())
	if err != nil {
		return nil, err
	}
	for _, kv := range held.Kvs {
		if k, err := s.Key(kv); err == nil && s.Rollouts.ReadClaim(kv).Node == node && began > kv.CreateRevision {
			why := "its result is unknown: " + node + " began it and was decommissioned; look at " + node
			if err := HaltGroup(ctx, s, current.Rollout(), k.Group, UnknownGate(node, steps[0], why), mark); err != nil {
				return nil, err
			}
		}
	}
	return steps, nil
}
