package lock

import (
	"context"
	"fmt"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pullet/pullet/state"
)

// Abandoned says why nobody will end a step that other nodes were chosen for: a node began it, its last attempt did not
// succeed, and it was given up since, or ended its run of the version as a node that the step is not for any more, or
// is the node that asks. Only an operator's word ends that. What came of a step that may not run again is on record as
// unknown then, and the group halts; one that may is waited for, with a *Wait. "" is nothing of that kind.
func (c *Candidate) Abandoned(ctx context.Context, step Step) (string, error) {
	s := c.steps
	got, err := s.store.Client.Txn(ctx).Then(
		clientv3.OpGet(s.resultKey(step, "started")+"/", clientv3.WithPrefix()),
		clientv3.OpGet(s.resultKey(step, "result")+"/", clientv3.WithPrefix()),
	).Commit()
	if err != nil {
		return "", err
	}
	results := map[string]*mvccpb.KeyValue{}
	for _, kv := range got.Responses[1].GetResponseRange().Kvs {
		if k, err := s.store.Key(kv); err == nil {
			results[k.Node] = kv
		}
	}
	for _, kv := range got.Responses[0].GetResponseRange().Kvs {
		k, err := s.store.Key(kv)
		if err != nil { // of those that began it also one that a lower limit leaves no place
			continue
		}
		if why, err := c.abandonedBy(ctx, step, k.Node, kv, results[k.Node]); why != "" || err != nil {
			return why, err
		}
	}
	return "", nil
}

// abandonedBy is Abandoned for a node that began the step; it has no result where that is nil.
func (c *Candidate) abandonedBy(
	ctx context.Context,
	step Step,
	node string,
	start, result *mvccpb.KeyValue,
) (string, error) {
	s := c.steps
	var r state.StepResult
	if result != nil {
		r = s.store.Steps.ReadResult(result)
	}
	ended := r.Attempt == s.store.Steps.ReadStart(start).Attempt
	own := node == s.req.node()
	if ended && (r.Result == "ok" || r.Result == Skipped || own && r.Result != Unknown) {
		return "", nil
	}
	how, seen, err := c.left(ctx, node)
	switch {
	case how == "" || err != nil:
		return "", err
	case r.Result == Unknown:
		return r.Reason, s.haltUnknown(ctx, step, node, r.Reason, result.ModRevision)
	case ended:
		return fmt.Sprintf("it failed on %s, which %s: %s", node, how, r.Reason), nil
	case step.Repeatable:
		return "", c.waitsFor(ctx, step)
	}
	reason := fmt.Sprintf("its result is unknown: %[1]s began it and %[2]s; look at %[1]s", node, how)
	return reason, c.leavesUnknown(ctx, step, node, reason, seen, start, result)
}

// left says how a chosen node left what it began: "" is that it may go on. It returns the revision of the node's
// record.
func (c *Candidate) left(ctx context.Context, node string) (string, int64, error) {
	s, e := c.steps, c.election
	got, err := s.store.Client.Txn(ctx).Then(
		clientv3.OpGet(s.store.Presences.AliveKey(node), clientv3.WithCountOnly()),
		clientv3.OpGet(s.store.Nodes.DecommissionedKey(node), clientv3.WithCountOnly()),
		clientv3.OpGet(s.store.Nodes.Key(node)),
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
		through := err == nil && known && n.Running == s.req.Version.ID && !e.Has(node, m)
		if through || node == s.req.node() { // which is not chosen
			return "does not take it any more", kv.ModRevision, nil
		}
	}
	return "", 0, nil
}

// waitsFor is the wait of who reads the results of a step; nil where they are there.
func (c *Candidate) waitsFor(ctx context.Context, step Step) error {
	q := &resultQuery{steps: c.steps, step: step, election: c.election}
	var err error
	if q.want, err = q.candidates(ctx); err != nil {
		return err
	}
	_, wait, _, err := q.look(ctx)
	if wait == nil || err != nil {
		return err
	}
	wait.Since = time.Now()
	return wait
}

// leavesUnknown records that nobody knows what came of a step that a node left, where nothing changed since that was
// read, and halts the group.
func (c *Candidate) leavesUnknown(
	ctx context.Context,
	step Step,
	node, reason string,
	seen int64,
	start, result *mvccpb.KeyValue,
) error {
	s := c.steps
	r := state.StepResult{Node: node, Step: step.ID, Result: Unknown, Reason: reason, At: time.Now().UTC()}
	key, at := s.resultKey(step, "result", node), int64(0)
	if result != nil {
		at = result.ModRevision
	}
	done, err := s.store.Client.Txn(ctx).If(
		clientv3.Compare(clientv3.ModRevision(s.store.Nodes.Key(node)), "=", seen),
		clientv3.Compare(clientv3.ModRevision(string(start.Key)), "=", start.ModRevision),
		clientv3.Compare(clientv3.ModRevision(key), "=", at),
	).Then(state.Put(key, r)).Commit()
	switch {
	case err != nil:
		return err
	case !done.Succeeded:
		return ErrMoved
	}
	return s.haltUnknown(ctx, step, node, reason, done.Header.Revision)
}
