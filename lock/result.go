package lock

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pullet/pullet/state"
)

// Results waits for what the chosen nodes' step returned, by node. When ctx ends first it returns the *Wait. A chosen
// node that started the step and does not answer has an unknown result where the step must not run twice: then the
// group is halted.
func (s *Steps) Results(
	ctx context.Context,
	step Step,
	e Election,
	maxAge time.Duration,
	repeatable bool,
	told func(*Wait),
) (found map[string]state.StepResult, err error) {
	want, err := s.candidates(ctx, e)
	if err != nil {
		return nil, err
	}
	if s.req.Stale { // nobody makes a result of a version that the fleet left
		found, wait, _, err := s.results(ctx, step, e, want, maxAge, repeatable)
		if wait == nil {
			return found, err
		}
		if wait.Since = time.Now(); len(wait.Holders) == 0 {
			wait.Reason, wait.Remedy = fmt.Sprintf("the fleet left version %s, and who was chosen for %s is not on record any more", state.Short(s.req.Version.ID), e.ID), state.NoAction()
		}
		return nil, wait
	}
	err = s.await(
		ctx,
		s.resultKey(step, "result")+"/",
		stepPoll,
		told,
		func(int) (wait *Wait, revision int64, err error) {
			found, wait, revision, err = s.results(ctx, step, e, want, maxAge, repeatable)
			return wait, revision, err
		},
		clientv3.WithPrefix(),
	)
	return found, err
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
func (s *Steps) results(
	ctx context.Context,
	step Step,
	e Election,
	want int,
	maxAge time.Duration,
	repeatable bool,
) (map[string]state.StepResult, *Wait, int64, error) {
	prefix := []clientv3.OpOption{clientv3.WithPrefix()}
	got, err := s.store.Client.Txn(ctx).Then(
		clientv3.OpGet(s.resultKey(step, "result")+"/", prefix...),
		clientv3.OpGet(s.resultKey(step, "fresh")+"/", clientv3.WithPrefix(), clientv3.WithKeysOnly()),
		clientv3.OpGet(s.electionKey(e, "place")+"/", prefix...),
		clientv3.OpGet(s.resultKey(step, "started")+"/", clientv3.WithPrefix(), clientv3.WithKeysOnly()),
		clientv3.OpGet(s.store.CurrentKey(), clientv3.WithKeysOnly()),
		clientv3.OpGet(s.electionKey(e, "took")+"/", prefix...),
	).Commit()
	if err != nil {
		return nil, nil, 0, err
	}
	kvs := func(i int) []*mvccpb.KeyValue { return got.Responses[i].GetResponseRange().Kvs }
	fresh, started := lastParts(s.store, kvs(1)), lastParts(s.store, kvs(3))
	chosen := s.holders(kvs(2))
	found := map[string]state.StepResult{}
	for _, kv := range kvs(0) {
		r, err := state.Read[state.StepResult](s.store, kv)
		if err != nil ||
			!slices.Contains(chosen, r.Node) { // the step waits for one that can be read, of a node that was chosen
			continue
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
	var missing []state.Holder
	took := s.took(kvs(5))
	for _, node := range chosen {
		if found[node].Node == "" && len(missing) < askedAtOnce {
			missing = append(
				missing,
				state.Holder{Node: node, Step: step.ID, Seen: true, Election: e.ID, Took: took[node]},
			)
		}
	}
	if err := trouble(ctx, s.store, s.req, missing); err != nil {
		return nil, nil, 0, err
	}
	for _, h := range missing {
		if !h.Alive && started[h.Node] && !repeatable {
			if err := s.unknown(ctx, step, h.Node); err != nil {
				return nil, nil, 0, err
			}
		}
	}
	return nil, resultWait(step, e, missing), got.Header.Revision, nil
}

// took are the steps of an election that nodes started, and that stand, in the order in which they started them.
func (s *Steps) took(marks []*mvccpb.KeyValue) map[string][]string {
	slices.SortFunc(marks, func(a, b *mvccpb.KeyValue) int { return cmp.Compare(a.ModRevision, b.ModRevision) })
	out := map[string][]string{}
	for _, kv := range marks {
		if k, err := s.store.Key(kv); err == nil {
			step, _ := state.Read[state.Title](s.store, kv) // any text will do
			out[k.Node] = append(out[k.Node], string(step))
		}
	}
	return out
}

// holders are the nodes that have places. A place that cannot be read is taken, and nobody's.
func (s *Steps) holders(places []*mvccpb.KeyValue) (nodes []string) {
	for _, kv := range places {
		if node, err := state.Read[state.NodeName](s.store, kv); err == nil {
			nodes = append(nodes, string(node))
		}
	}
	return nodes
}

// askedAtOnce is of how many chosen nodes it is asked how they are: their results come, and then the next are asked.
const askedAtOnce = 20

// resultWait says which chosen nodes have no result.
func resultWait(step Step, e Election, missing []state.Holder) *Wait {
	w := &Wait{
		Kind:    state.WaitResult,
		Gate:    "result of " + step.ID,
		Reason:  "no node was chosen yet for " + e.ID,
		Remedy:  remedyFor(missing),
		Holders: missing,
	}
	var names []string
	for _, h := range missing {
		names = append(names, h.Node+" ("+life(h)+")")
	}
	if len(names) > 0 {
		w.Reason = fmt.Sprintf("no result yet of %s, chosen for it (%s)", strings.Join(names, ", "), e.ID)
	}
	return w
}

// unknown records that nobody knows what came of a step on a node that does not answer, and halts the group.
func (s *Steps) unknown(ctx context.Context, step Step, node string) error {
	reason := fmt.Sprintf(
		"its result is unknown: it was started on %[1]s, which does not answer, and it must not run twice (idempotent: false); look at %[1]s",
		node,
	)
	r := state.StepResult{Node: node, Step: step.ID, Result: Unknown, Reason: reason, At: time.Now().UTC()}
	key := s.resultKey(step, "result", node)
	done, err := s.store.Client.Txn(ctx).
		If(clientv3.Compare(clientv3.CreateRevision(key), "=", 0), clientv3.Compare(clientv3.CreateRevision(s.store.AliveKey(node)), "=", 0)).
		Then(state.Put(key, r)).Commit()
	if err != nil || !done.Succeeded { // it is back, or another node was faster
		return err
	}
	return s.haltUnknown(ctx, step, node, reason, done.Header.Revision)
}

// haltUnknown halts the group for a step whose result nobody knows.
func (s *Steps) haltUnknown(ctx context.Context, step Step, node, reason string, revision int64) error {
	return s.halt(
		ctx,
		state.Gate{Node: node, Reason: "step " + step.ID + ": " + reason, Failed: []string{node}, Unknown: step.ID},
		revision,
	)
}

// Value is the content of a shared result.
func (s *Steps) Value(ctx context.Context, r state.StepResult, into any) error {
	return s.store.Shared(ctx, r, into)
}

// lastParts are the nodes, or else the groups, that end keys.
func lastParts(s *state.Store, kvs []*mvccpb.KeyValue) map[string]bool {
	out := map[string]bool{}
	for _, kv := range kvs {
		if k, err := s.Key(kv); err == nil {
			out[cmp.Or(k.Node, k.Group)] = true
		}
	}
	return out
}
