package state

import (
	"context"
	"slices"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// Settlement is what an operator said last of a targeted step.
type Settlement struct {
	Step    string    `json:"step"`
	By      string    `json:"by"`
	At      time.Time `json:"at"`      // by the clock of who said it
	Done    bool      `json:"done"`    // it did its work; else it runs again
	Nodes   []string  `json:"nodes"`   // on which that is so
	Version string    `json:"version"` // the fleet's at that moment
	Rollout string    `json:"rollout"` // and its move to that version: see Version.Rollout

	// Again changes each time that the step is to run again.
	Again string `json:"again,omitempty"`
	// Waiting are the nodes on which the step is to run again and has not begun: see Overview. Beside a Done they are
	// other nodes, of an earlier settlement, and Asked is who made that one.
	Waiting []string `json:"waiting,omitempty"`
	Asked   *Asked   `json:"asked,omitempty"`

	Revision int64 `json:"-"` // of etcd, at which it was written
}

// Asked is who had a step run again, and when by the clock of who did.
type Asked struct {
	By string    `json:"by"`
	At time.Time `json:"at"`
}

func (t *Settlement) check(Key) error {
	var c checks
	c.nodes(t.Nodes)
	c.nodes(t.Waiting)
	c.version(t.Version)
	c.version(t.Rollout)
	c.times(t.At)
	line(&t.Step, &t.By, &t.Again)
	if t.Asked != nil {
		c.times(t.Asked.At)
		line(&t.Asked.By)
	}
	return c.err
}

// Asker is who had the step run again where it has not begun.
func (t Settlement) Asker() Asked {
	if t.Asked != nil {
		return *t.Asked
	}
	return Asked{t.By, t.At}
}

// after is the settlement with what an earlier one leaves: nodes on which the step is still to run again.
func (t Settlement) after(r *stepRecord) Settlement {
	left := slices.DeleteFunc(slices.Clone(r.waiting), func(node string) bool { return slices.Contains(t.Nodes, node) })
	switch {
	case !t.Done:
		t.Again, t.Nodes = t.By+" "+t.At.Format(time.RFC3339Nano), append(t.Nodes, left...)
	case r.said != nil:
		if t.Again = r.said.Again; len(left) > 0 {
			asker := r.said.Asker()
			t.Waiting, t.Asked = left, &asker
		}
	}
	return t
}

// SettledKey is where the last settlement of a step is, in a version or, for a step that runs once in the fleet's life,
// in OnceScope.
func (s *Steps) SettledKey(scope, hash string) string { return s.store.key("settled", scope, hash) }

// settled reads the last settlement of a step; nil where there is none that can be read.
func (s *Steps) settled(kvs []*mvccpb.KeyValue) *Settlement {
	for _, kv := range kvs {
		if t, err := Read[Settlement](s.store, kv); err == nil {
			t.Revision = kv.ModRevision
			return &t
		}
	}
	return nil
}

// waiting are the nodes on which the step has not begun since it was to run again, by the keys of its starts and
// results. Another node that began in the place of one that is replaced stands for it.
func (s *Steps) waiting(
	ctx context.Context,
	t *Settlement,
	scope string,
	began []*mvccpb.KeyValue,
	gone map[string]bool,
	revision int64,
) ([]string, error) {
	left, others := t.left(s.store, began)
	if len(left) == 0 || others == 0 {
		return left, nil
	}
	replaced, err := s.replaced(ctx, scope, t.Step, gone, revision)
	return slices.DeleteFunc(left, func(node string) bool {
		if err != nil || others == 0 || !replaced(node) {
			return false
		}
		others--
		return true
	}), err
}

// left are the nodes that were to run the step again and have not begun, and others is how many began that were not
// asked.
func (t *Settlement) left(s *Store, began []*mvccpb.KeyValue) (left []string, others int) {
	asked := t.Nodes
	if t.Done {
		asked = t.Waiting
	}
	since := map[string]bool{}
	for _, kv := range began {
		if k, err := s.Key(kv); err == nil && kv.ModRevision > t.Revision {
			since[k.Node] = true
		}
	}
	left = slices.DeleteFunc(slices.Clone(asked), func(node string) bool {
		began := since[node]
		delete(since, node)
		return began
	})
	return left, len(since)
}

// Where is where a step that is to run again runs, of nodes of which some were given up.
func Where(nodes []string, gone func(node string) bool) string {
	there, left := []string{}, []string{}
	for _, node := range nodes {
		if gone(node) {
			left = append(left, node)
		} else {
			there = append(there, node)
		}
	}
	if len(left) > 0 {
		there = append(there, "the host that takes the place of "+strings.Join(left, ", ")+" (decommissioned)")
	}
	return strings.Join(there, ", ")
}

// Settlements are the last ones of all steps that are on record, in the order in which they were made.
func (s *Steps) Settlements(ctx context.Context) ([]Settlement, error) {
	got, err := s.store.Client.Get(ctx, s.store.key("settled")+"/", clientv3.WithPrefix())
	if err != nil {
		return nil, err
	}
	current, _, err := s.store.Versions.Current(ctx)
	if unlessBad(err) != nil {
		return nil, err
	}
	gone, err := s.store.Nodes.gone(ctx)
	if err != nil {
		return nil, err
	}
	var out []Settlement
	for _, kv := range got.Kvs {
		t, k := s.settled([]*mvccpb.KeyValue{kv}), Key{}
		if t == nil {
			continue
		}
		if k, err = s.store.Key(kv); err != nil {
			return nil, err
		}
		if k.Rollout != OnceScope && (current == nil || k.Rollout != current.ID) {
			t.Waiting = nil // in a version that the fleet left nothing runs again
		} else if err := s.stillWaiting(ctx, k.Rollout, t, gone, got.Header.Revision); err != nil {
			return nil, err
		}
		out = append(out, *t)
	}
	slices.SortFunc(out, func(a, b Settlement) int { return int(a.Revision - b.Revision) })
	return out, nil
}

// takeSettled files a settlement of the fleet's version, or of a step that runs once in the fleet's life: the later one
// where a step has both.
func (o *Overview) takeSettled(s *Store, k Key, kv *mvccpb.KeyValue) {
	t := s.Steps.settled([]*mvccpb.KeyValue{kv})
	if t == nil || k.Rollout != OnceScope && (o.Current == nil || k.Rollout != o.Current.ID) {
		return
	}
	if before, said := o.Settled[t.Step]; !said || before.Revision < t.Revision {
		o.Settled[t.Step], o.settledIn[t.Step] = *t, k.Rollout
	}
}

// rerun finds out where steps that are to run again have not begun, at the overview's revision.
func (s *Steps) rerun(ctx context.Context, o *Overview) error {
	for step, t := range o.Settled {
		if err := s.stillWaiting(ctx, o.settledIn[step], &t, o.Gone, o.Revision); err != nil {
			return err
		}
		o.Settled[step] = t
	}
	return nil
}

// replaced reports nodes that do not run a step again: they are given up, or have no place in the choice by which
// another node started it.
func (s *Steps) replaced(
	ctx context.Context,
	scope, step string,
	gone map[string]bool,
	revision int64,
) (func(node string) bool, error) {
	took, err := s.store.Client.Get(
		ctx,
		s.store.key("run", scope)+"/",
		clientv3.WithPrefix(),
		clientv3.WithKeysOnly(),
		clientv3.WithRev(revision),
	)
	if err != nil {
		return nil, err
	}
	var places []clientv3.Op
	for _, kv := range took.Kvs {
		if k, ok := s.tookKey(kv, step); ok {
			places = append(
				places,
				clientv3.OpGet(s.Key(scope, k.Hash, "place", ""), clientv3.WithPrefix(), clientv3.WithRev(revision)),
			)
		}
	}
	answers, _, err := s.store.ReadMany(ctx, places)
	if err != nil {
		return nil, err
	}
	chosen := map[string]bool{}
	for _, a := range answers {
		for _, kv := range a.GetResponseRange().Kvs {
			node, err := Read[NodeName](s.store, kv)
			chosen[string(node)] = err == nil
		}
	}
	return func(node string) bool { return gone[node] || len(places) > 0 && !chosen[node] }, nil
}

// tookKey reads a key by which a node keeps its place because it started the step.
func (s *Steps) tookKey(kv *mvccpb.KeyValue, step string) (Key, bool) {
	k, err := s.store.Key(kv)
	return k, err == nil && k.kind.shape == "run/ROLLOUT/HASH/took/NODE/WORD" && k.Word == StepHash(step)
}

// stillWaiting finds out on which nodes a step that is to run again has not begun, at a revision.
func (s *Steps) stillWaiting(
	ctx context.Context,
	scope string,
	t *Settlement,
	gone map[string]bool,
	revision int64,
) error {
	if t.Done && len(t.Waiting) == 0 {
		return nil
	}
	got, err := s.store.Client.Txn(ctx).
		Then(s.beganOps(scope, t.Step, clientv3.WithRev(revision), clientv3.WithKeysOnly())...).
		Commit()
	if err != nil {
		return err
	}
	began := append(got.Responses[0].GetResponseRange().Kvs, got.Responses[1].GetResponseRange().Kvs...)
	t.Waiting, err = s.waiting(ctx, t, scope, began, gone, revision)
	return err
}

// gone are the nodes that operators gave up.
func (s *Nodes) gone(ctx context.Context) (map[string]bool, error) {
	got, err := s.store.Client.Get(ctx, s.DecommissionedKey(""), clientv3.WithPrefix(), clientv3.WithKeysOnly())
	if err != nil {
		return nil, err
	}
	gone := map[string]bool{}
	for _, kv := range got.Kvs {
		if k, err := s.store.Key(kv); err == nil {
			gone[k.Node] = true
		}
	}
	return gone, nil
}

// beganOps read the starts of a step, and its results.
func (s *Steps) beganOps(scope, step string, opts ...clientv3.OpOption) []clientv3.Op {
	opts = append(opts, clientv3.WithPrefix())
	return []clientv3.Op{
		clientv3.OpGet(
			s.Key(scope, StepHash(step), "started", ""),
			opts...), clientv3.OpGet(s.Key(scope, StepHash(step), "result", ""), opts...),
	}
}
