package state

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// stepRecord is what is on record of a targeted step, by node.
type stepRecord struct {
	scope, step string
	revision    int64
	starts      map[string]StepStart
	began       map[string]int64 // the revisions of the starts
	results     map[string]StepResult
	gone        []string            // nodes that are given up, of those that started it or are to run it again
	took        map[string][]string // node -> keys by which it keeps its place, because it started the step
	said        *Settlement         // what was said of it last; nil is nothing, or nothing that can be read
	settled     int64               // the revision of that record; 0 is none
	waiting     []string            // nodes on which it is to run again and has not begun
}

func (r *stepRecord) isGone(node string) bool { return slices.Contains(r.gone, node) }

func (r *stepRecord) nodes() []string {
	nodes := map[string]bool{}
	for n := range r.starts {
		nodes[n] = true
	}
	for n := range r.results {
		nodes[n] = true
	}
	return slices.Sorted(maps.Keys(nodes))
}

func (s *Steps) record(ctx context.Context, scope, step string) (*stepRecord, error) {
	r := &stepRecord{
		scope:   scope,
		step:    step,
		starts:  map[string]StepStart{},
		began:   map[string]int64{},
		results: map[string]StepResult{},
		took:    map[string][]string{},
	}
	got, err := s.store.Client.Txn(ctx).Then(append(s.beganOps(scope, step),
		clientv3.OpGet(s.SettledKey(scope, StepHash(step))),
		clientv3.OpGet(s.store.key("run", scope)+"/", clientv3.WithPrefix(), clientv3.WithKeysOnly()),
		clientv3.OpGet(s.store.Nodes.DecommissionedKey(""), clientv3.WithPrefix(), clientv3.WithKeysOnly()),
	)...).Commit()
	if err != nil {
		return nil, err
	}
	r.revision = got.Header.Revision
	kvs := func(i int) []*mvccpb.KeyValue { return got.Responses[i].GetResponseRange().Kvs }
	r.said = s.settled(kvs(2))
	for _, kv := range kvs(2) {
		r.settled = kv.ModRevision
	}
	for _, kv := range kvs(0) {
		if k, err := s.store.Key(kv); err == nil {
			r.starts[k.Node], r.began[k.Node] = s.ReadStart(kv), kv.ModRevision
		}
	}
	for _, kv := range kvs(1) {
		if k, err := s.store.Key(kv); err == nil {
			r.results[k.Node] = s.ReadResult(kv)
		}
	}
	for _, kv := range kvs(3) {
		if k, ok := s.tookKey(kv, step); ok {
			r.took[k.Node] = append(r.took[k.Node], string(kv.Key))
		}
	}
	gone := map[string]bool{}
	for _, kv := range kvs(4) {
		k, err := s.store.Key(kv)
		_, started := r.starts[k.Node]
		if gone[k.Node] = err == nil; gone[k.Node] &&
			(started || r.said != nil && slices.Contains(slices.Concat(r.said.Nodes, r.said.Waiting), k.Node)) {
			r.gone = append(r.gone, k.Node)
		}
	}
	if r.said != nil {
		r.waiting, err = s.waiting(ctx, r.said, scope, append(kvs(0), kvs(1)...), gone, r.revision)
	}
	return r, err
}

// succeededOn reports that the last attempt of a node succeeded. The result of an earlier attempt stays on record while
// a later one runs.
func (r *stepRecord) succeededOn(node string) bool {
	start, started := r.starts[node]
	result := r.results[node]
	return result.Result == "ok" && (!started || result.Attempt == start.Attempt)
}

// stands reports a step that succeeded on all nodes that took it, once and for all, and that nobody has run again.
func (r *stepRecord) stands() bool {
	nodes := r.nodes()
	fails := func(node string) bool { return !r.succeededOn(node) || r.starts[node].MaxAge > 0 }
	return len(nodes) > 0 && len(r.waiting) == 0 && !slices.ContainsFunc(nodes, fails)
}

// succeeded refuses to have a step run again that did its work, once in the fleet's life.
func (r *stepRecord) succeeded() error {
	for _, node := range slices.Sorted(maps.Keys(r.results)) {
		if !r.succeededOn(node) {
			continue
		}
		result := r.results[node]
		how := "succeeded on " + node + " at " + result.At.Local().Format(time.DateTime)
		if result.Reason != "" {
			how += " (" + result.Reason + ")"
		}
		return fmt.Errorf(
			"%s %s, and runs once in the fleet's life: it does not run again; to run it once more on %s: %s",
			r.step,
			how,
			Where(r.nodes(), r.isGone),
			SettleCommand(r.step, "--again --force"),
		)
	}
	return nil
}

// busy refuses to settle a step that runs now: what comes of it is about to be known. It does not run any more on a
// node that was through with the fleet's version after it began the step.
func (s *Steps) busy(ctx context.Context, r *stepRecord, version string) error {
	for _, node := range slices.Sorted(maps.Keys(r.starts)) {
		if result := r.results[node]; result.Result != "" &&
			(result.Attempt == r.starts[node].Attempt || result.Result == "unknown") {
			continue
		}
		got, err := s.store.Client.Txn(ctx).Then(
			clientv3.OpGet(s.store.Presences.AliveKey(node), clientv3.WithCountOnly()),
			clientv3.OpGet(s.store.Statuses.RunningKey(version, node), clientv3.WithKeysOnly()),
		).Commit()
		if err != nil {
			return err
		}
		alive, through := got.Responses[0].GetResponseRange().Count > 0, false
		for _, kv := range got.Responses[1].GetResponseRange().Kvs {
			through = kv.ModRevision > r.began[node]
		}
		if alive && !through {
			return fmt.Errorf(
				"%s runs %s since %s and has not said what came of it: wait for it, or stop pullet there and wait until its "+
					"lease ends (pullet status)",
				node,
				r.step,
				r.starts[node].At.Format(time.TimeOnly),
			)
		}
	}
	return nil
}
