package lock

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pullet/pullet/state"
)

// Results waits for what the chosen nodes' step returned, by node. When ctx ends first it returns the *Wait. A chosen node that started the
// step and does not answer has an unknown result where the step must not run twice: then the group is halted.
func (s *Steps) Results(ctx context.Context, step Step, e Election, maxAge time.Duration, repeatable bool, told func(*Wait)) (map[string]state.StepResult, error) {
	want, err := s.candidates(ctx, e)
	if err != nil {
		return nil, err
	}
	began, last := time.Now(), (*Wait)(nil)
	for poll := 0; ; poll++ {
		found, wait, revision, err := s.results(ctx, step, e, want, maxAge, repeatable)
		switch {
		case err == nil && wait == nil:
			return found, nil
		case ctx.Err() != nil && last != nil:
			return nil, last
		case errors.Is(err, ErrSuperseded) || ctx.Err() != nil:
			return nil, err
		case err != nil:
			wait = &Wait{Gate: "etcd", Reason: s.store.Explain(err).Error(), Clear: goesOn}
			sleep(ctx, jitter(s.req.node(), poll, 2*time.Second))
		}
		wait.Since = began
		if last == nil || last.Error() != wait.Error() {
			told(wait)
		}
		if last = wait; revision > 0 && !s.store.Await(ctx, s.resultKey(step, "result")+"/", revision, jitter(s.req.node(), poll, stepPoll), clientv3.WithPrefix()) {
			return nil, last
		}
	}
}

// candidates is how many results there will be.
func (s *Steps) candidates(ctx context.Context, e Election) (int, error) {
	if e.Limit <= 1 {
		return 1, nil
	}
	members, err := s.store.Members(ctx, s.req.Inventory)
	if err != nil {
		return 0, err
	}
	n := 0
	for node, m := range members {
		if e.Candidates(node, m) {
			n++
		}
	}
	return max(1, min(e.Limit, n)), nil
}

// results looks once.
func (s *Steps) results(ctx context.Context, step Step, e Election, want int, maxAge time.Duration, repeatable bool) (map[string]state.StepResult, *Wait, int64, error) {
	prefix := []clientv3.OpOption{clientv3.WithPrefix()}
	got, err := s.store.Client.Txn(ctx).Then(
		clientv3.OpGet(s.resultKey(step, "result")+"/", prefix...),
		clientv3.OpGet(s.resultKey(step, "fresh")+"/", clientv3.WithPrefix(), clientv3.WithKeysOnly()),
		clientv3.OpGet(s.electionKey(e, "place")+"/", prefix...),
		clientv3.OpGet(s.resultKey(step, "started")+"/", clientv3.WithPrefix(), clientv3.WithKeysOnly()),
		clientv3.OpGet(s.store.CurrentKey(), clientv3.WithKeysOnly()),
	).Commit()
	if err != nil {
		return nil, nil, 0, err
	}
	kvs := func(i int) []*mvccpb.KeyValue { return got.Responses[i].GetResponseRange().Kvs }
	fresh, started := lastParts(kvs(1)), lastParts(kvs(3))
	found := map[string]state.StepResult{}
	for _, kv := range kvs(0) {
		var r state.StepResult
		if err := decode(kv, &r); err != nil {
			return nil, nil, 0, err
		}
		if maxAge == 0 || fresh[r.Node] || r.Result != "ok" {
			found[r.Node] = r
		}
	}
	if len(found) >= want {
		return found, nil, 0, nil
	}
	if revisionOf(kvs(4)) != s.req.VersionRev && !s.req.Stale {
		if _, err := superseded(ctx, s.store, s.req); err != nil {
			return nil, nil, 0, err
		}
	}
	wait := &Wait{Gate: "result of " + step.ID, Reason: "no node was chosen yet for " + e.ID, Clear: goesOn}
	for _, kv := range kvs(2) {
		node := string(kv.Value)
		if _, there := found[node]; there {
			continue
		}
		if err := s.chosen(ctx, step, e, node, started[node] && !repeatable, wait); err != nil {
			return nil, nil, 0, err
		}
	}
	return nil, wait, got.Header.Revision, nil
}

// chosen says how a chosen node is whose result is not there. One that is gone in the middle of a step that must not run twice leaves an
// unknown result.
func (s *Steps) chosen(ctx context.Context, step Step, e Election, node string, unrepeatable bool, wait *Wait) error {
	got, err := s.store.Client.Get(ctx, s.store.AliveKey(node), clientv3.WithCountOnly())
	if err != nil {
		return err
	}
	h := []state.Holder{{Node: node, Step: step.ID, Since: time.Unix(0, 0), Alive: got.Count > 0}}
	if err := trouble(ctx, s.store, s.req, nil, h); err != nil {
		return err
	}
	wait.Holders = append(wait.Holders, h...)
	wait.Reason = fmt.Sprintf("%s was chosen (%s) and has no result yet (%s)", node, e.ID, life(h[0]))
	wait.Clear = clearOf(wait.Holders)
	if h[0].Alive || !unrepeatable {
		return nil
	}
	return s.unknown(ctx, step, node)
}

// unknown records that nobody knows what came of a step on a node that does not answer, and halts the group.
func (s *Steps) unknown(ctx context.Context, step Step, node string) error {
	reason := fmt.Sprintf("it was started on %s, which does not answer, and it must not run twice (idempotent: false): look at %s; it is done anew with the next commit, and not by resuming", node, node)
	r := state.StepResult{Node: node, Step: step.ID, Result: "unknown", Reason: reason, At: time.Now().UTC()}
	key := s.resultKey(step, "result", node)
	done, err := s.store.Client.Txn(ctx).
		If(clientv3.Compare(clientv3.CreateRevision(key), "=", 0), clientv3.Compare(clientv3.CreateRevision(s.store.AliveKey(node)), "=", 0)).
		Then(state.Put(key, r)).Commit()
	if err != nil || !done.Succeeded { // it is back, or another node was faster
		return err
	}
	return s.halt(ctx, node, "the result of step "+step.ID+" is unknown: "+reason, done.Header.Revision)
}

// Value is the content of a shared result.
func (s *Steps) Value(ctx context.Context, r state.StepResult, into any) error {
	data, err := s.store.Shared(ctx, r)
	if err != nil || len(data) == 0 {
		return err
	}
	return json.Unmarshal(data, into)
}

func lastParts(kvs []*mvccpb.KeyValue) map[string]bool {
	out := map[string]bool{}
	for _, kv := range kvs {
		out[state.LastPart(kv.Key)] = true
	}
	return out
}
