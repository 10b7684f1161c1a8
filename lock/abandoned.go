package lock

import (
	"context"
	"fmt"
	"slices"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pullet/pullet/state"
)

// Abandoned says why nobody will end a step that other nodes were chosen for: one of them began it, its last attempt
// did not succeed, and it was given up since, or ended its run of the version as a node that the step is not for any
// more. Only an operator's word ends that. What came of a step that may not run again is on record as unknown then. ""
// is nothing of that kind.
func (c *Candidate) Abandoned(ctx context.Context, step Step) (string, error) {
	s := c.steps
	got, err := s.store.Client.Txn(ctx).Then(
		clientv3.OpGet(s.resultKey(step, "started")+"/", clientv3.WithPrefix()),
		clientv3.OpGet(s.resultKey(step, "result")+"/", clientv3.WithPrefix()),
	).Commit()
	if err != nil {
		return "", err
	}
	last, at := map[string]state.StepResult{}, map[string]int64{}
	for _, kv := range got.Responses[1].GetResponseRange().Kvs {
		r := s.store.ReadResult(kv)
		last[r.Node], at[r.Node] = r, kv.ModRevision
	}
	for _, kv := range got.Responses[0].GetResponseRange().Kvs {
		k, err := s.store.Key(kv)
		if err != nil || !slices.Contains(c.chosen, k.Node) {
			continue
		}
		r := last[k.Node]
		ended := r.Attempt == s.store.ReadStart(kv).Attempt
		if ended && (r.Result == "ok" || r.Result == Skipped) {
			continue
		}
		how, seen, err := c.left(ctx, k.Node)
		if err != nil {
			return "", err
		}
		switch {
		case how == "":
		case r.Result == Unknown:
			return r.Reason, nil
		case ended:
			return fmt.Sprintf("it failed on %s, which %s: %s", k.Node, how, r.Reason), nil
		case step.Repeatable:
			return k.Node + " began it and " + how, nil
		default:
			return c.leavesUnknown(ctx, step, k.Node, how, seen, at[k.Node])
		}
	}
	return "", nil
}

// left says how a chosen node left what it began: "" is that it may go on. It returns the revision of the node's
// record.
func (c *Candidate) left(ctx context.Context, node string) (string, int64, error) {
	s, e := c.steps, c.election
	got, err := s.store.Client.Txn(ctx).Then(
		clientv3.OpGet(s.store.AliveKey(node), clientv3.WithCountOnly()),
		clientv3.OpGet(s.store.DecommissionedKey(node), clientv3.WithCountOnly()),
		clientv3.OpGet(s.store.NodeKey(node)),
	).Commit()
	if err != nil {
		return "", 0, err
	}
	record := got.Responses[2].GetResponseRange().Kvs
	if got.Responses[0].GetResponseRange().Count == 0 && got.Responses[1].GetResponseRange().Count > 0 {
		return "was decommissioned", revisionOf(record), nil
	}
	for _, kv := range record {
		n, err := state.Read[state.Node](s.store, kv)
		m, known := c.member(node, record)
		if err == nil && known && n.Running == s.req.Version.ID && !e.Has(node, m) {
			return "does not take it any more", kv.ModRevision, nil
		}
	}
	return "", 0, nil
}

// leavesUnknown records that nobody knows what came of a step that a node left, where its record and the result are as
// they were read.
func (c *Candidate) leavesUnknown(
	ctx context.Context,
	step Step,
	node, how string,
	seen, result int64,
) (string, error) {
	s := c.steps
	reason := fmt.Sprintf("its result is unknown: %[1]s began it and %[2]s; look at %[1]s", node, how)
	r := state.StepResult{Node: node, Step: step.ID, Result: Unknown, Reason: reason, At: time.Now().UTC()}
	key := s.resultKey(step, "result", node)
	same := []clientv3.Cmp{
		clientv3.Compare(clientv3.ModRevision(s.store.NodeKey(node)), "=", seen),
		clientv3.Compare(clientv3.ModRevision(key), "=", result),
	}
	done, err := s.store.Client.Txn(ctx).If(same...).Then(state.Put(key, r)).Commit()
	if err == nil && !done.Succeeded {
		err = ErrMoved
	}
	return reason, err
}
