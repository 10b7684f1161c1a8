package lock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pullet/pullet/state"
)

// Results waits for the results of a step on the chosen nodes, all of which the node can open, and returns them by
// node; where opens is nil it does not ask that. When ctx ends first it returns the *Wait. A chosen node that started
// the step and does not answer has an unknown result where the step must not run twice: then the group is halted.
func (s *Steps) Results(
	ctx context.Context,
	step Step,
	e Election,
	maxAge time.Duration,
	opens Opens,
	notify func(*Wait),
) (found map[string]state.StepResult, err error) {
	q := &resultQuery{steps: s, step: step, election: e, maxAge: maxAge, opens: opens}
	if q.want, err = q.candidates(ctx); err != nil {
		return nil, err
	}
	if s.req.Stale { // nobody makes a result of a version that the fleet left
		return q.ofStale(ctx)
	}
	look := func(int) (wait *Wait, revision int64, err error) {
		found, wait, revision, err = q.look(ctx)
		return wait, revision, err
	}
	err = s.await(ctx, s.resultKey(step, "result")+"/", stepPoll, notify, look, clientv3.WithPrefix())
	return found, err
}

// resultQuery asks for the results of a step that chosen nodes take.
type resultQuery struct {
	steps    *Steps
	step     Step
	election Election
	want     int // how many results there will be
	maxAge   time.Duration
	opens    Opens
}

// ofStale returns the results of a version that the fleet left, as they are.
func (q *resultQuery) ofStale(ctx context.Context) (map[string]state.StepResult, error) {
	found, wait, _, err := q.look(ctx)
	if errors.Is(err, ErrMoved) {
		found, wait, _, err = q.look(ctx)
	}
	if wait == nil {
		return found, err
	}
	if wait.Since = time.Now(); len(wait.Holders) == 0 {
		wait.Reason = fmt.Sprintf("the fleet left version %s, and who was chosen for %s is not on record any more",
			state.Short(q.steps.req.Version.ID), q.election.ID)
		wait.Remedy = state.NoAction()
	}
	return nil, wait
}

// candidates finds how many results there will be.
func (q *resultQuery) candidates(ctx context.Context) (int, error) {
	if q.election.Limit <= 1 {
		return 1, nil
	}
	can, _, err := q.eligible(ctx)
	return max(1, min(q.election.Limit, len(can))), err
}

// eligible returns the nodes that may be chosen, and those that have the step and get to it only behind this node, or
// never; both by name.
func (q *resultQuery) eligible(ctx context.Context) (can, late []string, err error) {
	members, err := q.steps.store.Rosters.Members(ctx, q.steps.req.Inventory)
	if err != nil {
		return nil, nil, err
	}
	for _, node := range slices.Sorted(maps.Keys(members)) {
		switch m := members[node]; {
		case q.election.Candidates(node, m):
			can = append(can, node)
		case q.election.Has(node, m):
			late = append(late, node)
		}
	}
	return can, late, nil
}

// look reads the results once.
func (q *resultQuery) look(ctx context.Context) (map[string]state.StepResult, *Wait, int64, error) {
	s, e, step := q.steps, q.election, q.step
	prefix := []clientv3.OpOption{clientv3.WithPrefix()}
	got, err := s.store.Client.Txn(ctx).Then(
		clientv3.OpGet(s.resultKey(step, "result")+"/", prefix...),
		clientv3.OpGet(s.resultKey(step, "fresh")+"/", clientv3.WithPrefix(), clientv3.WithKeysOnly()),
		clientv3.OpGet(s.electionKey(e, "place")+"/", prefix...),
		clientv3.OpGet(s.resultKey(step, "started")+"/", clientv3.WithPrefix(), clientv3.WithKeysOnly()),
		clientv3.OpGet(s.store.Versions.CurrentKey(), clientv3.WithKeysOnly()),
		clientv3.OpGet(s.electionKey(e, "took")+"/", prefix...),
	).Commit()
	if err != nil {
		return nil, nil, 0, err
	}
	kvs := func(i int) []*mvccpb.KeyValue { return got.Responses[i].GetResponseRange().Kvs }
	fresh, started := lastParts(s.store, kvs(1)), lastParts(s.store, kvs(3))
	chosen := holders(s.store, e.within(s.store, kvs(2)))
	found := map[string]state.StepResult{}
	for _, kv := range kvs(0) {
		r, err := state.Read[state.StepResult](s.store, kv)
		if err != nil ||
			!slices.Contains(chosen, r.Node) { // the step waits for one that can be read, of a node that was chosen
			continue
		}
		switch {
		case q.maxAge == 0 || fresh[r.Node] || r.Result != "ok":
			found[r.Node] = r
		case r.Node == s.req.node(): // it would wait for itself: only its next run takes the step
			return nil, nil, 0, q.ownTooOld()
		}
	}
	if len(found) >= q.want {
		wait, err := q.closed(ctx, found)
		return found, wait, got.Header.Revision, err
	}
	if revisionOf(kvs(4)) != s.req.VersionRev && s.req.follows() {
		if _, err := superseded(ctx, s.store, s.req); err != nil {
			return nil, nil, 0, err
		}
	}
	var missing []state.Holder
	took := tookBy(s.store, kvs(5))
	for _, node := range chosen {
		if found[node].Node == "" && len(missing) < askedAtOnce {
			missing = append(
				missing,
				state.Holder{Node: node, Step: step.ID, Seen: true, Election: e.ID, Took: took[node]},
			)
		}
	}
	if err := fillConditions(ctx, s.store, s.req, missing); err != nil {
		return nil, nil, 0, err
	}
	for _, h := range missing {
		if !started[h.Node] {
			continue
		}
		if err := q.unended(ctx, h); err != nil {
			return nil, nil, 0, err
		}
	}
	wait := q.wait(missing)
	if len(chosen) == 0 {
		err = q.explain(ctx, wait)
	}
	return nil, wait, got.Header.Revision, err
}

// explain says who ends the wait for a choice that was not made yet, where no node makes it without an operator. For
// what its holders wait themselves is found by Follow.
func (q *resultQuery) explain(ctx context.Context, w *Wait) error {
	can, late, err := q.eligible(ctx)
	if err != nil || len(can) > askedAtOnce { // so many are not all stuck
		return err
	}
	names := append(can, late...)[:min(len(can)+len(late), askedAtOnce)]
	nodes := make([]state.Holder, len(names))
	for i, node := range names {
		nodes[i] = state.Holder{Node: node, Election: q.election.ID}
	}
	if err := fillConditions(ctx, q.steps.store, q.steps.req, nodes); err != nil {
		return err
	}
	waits, err := waitsOf(ctx, q.steps.store, q.steps.req.Version.ID, names)
	if err != nil {
		return err
	}
	stuck := func(h state.Holder) bool {
		own, ok := waits[h.Node]
		return !RemedyFor(h).Itself() || ok && own.Version == q.steps.req.Version.ID && own.Stays()
	}
	for _, h := range nodes[:len(can)] {
		if !stuck(h) {
			return nil
		}
	}
	switch {
	case len(nodes) == 0:
		w.Reason += ", and no host has the step"
		w.Remedy = state.Act("start a host that has it, or push a commit that gives it to one")
	case !slices.ContainsFunc(nodes, stuck):
		w.Reason += ": " + named(nodes) + ", which this host comes before in the rollout, or which are frozen"
		w.Remedy = state.Act("push a commit with another order, or raise rollout.rollingRules in pullet.yaml")
	default:
		w.Reason += ": " + named(nodes)
		w.Holders, w.Remedy = nodes, RemedyFor(nodes...)
	}
	return nil
}

// named are nodes with their conditions.
func named(nodes []state.Holder) string {
	var names []string
	for _, h := range nodes {
		names = append(names, h.Node+" ("+Condition(h)+")")
	}
	return strings.Join(names, ", ")
}

// closed is the wait for a result that the node cannot open; nil: it can open all.
func (q *resultQuery) closed(ctx context.Context, found map[string]state.StepResult) (*Wait, error) {
	if q.opens == nil {
		return nil, nil
	}
	for _, node := range slices.Sorted(maps.Keys(found)) {
		if found[node].Result != "ok" {
			continue
		}
		if opens, err := q.opens(ctx, found[node]); err != nil {
			return nil, err
		} else if !opens {
			return q.sealed(node), nil
		}
	}
	return nil, nil
}

// sealed is the wait for what a node returned, until a host that can read it encrypts it for this one.
func (q *resultQuery) sealed(node string) *Wait {
	return &Wait{
		Kind:   state.WaitSealed,
		Gate:   "result of " + q.step.ID,
		Reason: "what " + node + " returned is not encrypted for this host yet",
		Remedy: state.Itself("a host that can read it encrypts it for this one at its next pull; if none can: " +
			"pullet rollout settle " + q.step.ID + " --again --force"),
	}
}

// tookBy returns by node the steps of an election that it started, in their order.
func tookBy(s *state.Store, marks []*mvccpb.KeyValue) map[string][]string {
	slices.SortFunc(marks, func(a, b *mvccpb.KeyValue) int { return cmp.Compare(a.ModRevision, b.ModRevision) })
	out := map[string][]string{}
	for _, kv := range marks {
		if k, err := s.Key(kv); err == nil {
			step, _ := state.Read[state.Title](s, kv) // any text will do
			out[k.Node] = append(out[k.Node], string(step))
		}
	}
	return out
}

// holders are the nodes that have places. A place that cannot be read is taken.
func holders(s *state.Store, places []*mvccpb.KeyValue) (nodes []string) {
	for _, kv := range places {
		if node, err := state.Read[state.NodeName](s, kv); err == nil {
			nodes = append(nodes, string(node))
		}
	}
	return nodes
}

// askedAtOnce is of how many chosen nodes it is asked how they are: their results come, and then the next are asked.
const askedAtOnce = 20

// wait says which chosen nodes have no result.
func (q *resultQuery) wait(missing []state.Holder) *Wait {
	w := &Wait{
		Kind:    state.WaitResult,
		Gate:    "result of " + q.step.ID,
		Reason:  "no node was chosen yet for " + q.election.ID,
		Remedy:  RemedyFor(missing...),
		Holders: missing,
	}
	if len(missing) > 0 {
		w.Reason = fmt.Sprintf("no result yet of %s, chosen for it (%s)", named(missing), q.election.ID)
	}
	return w
}

// ownTooOld is the wait for a result of this node that became too old in the middle of its run.
func (q *resultQuery) ownTooOld() *Wait {
	return &Wait{
		Kind:   state.WaitResult,
		Gate:   "result of " + q.step.ID,
		Reason: "its own result became older than " + q.maxAge.String(),
		Remedy: state.Itself("its next pull makes it anew"),
		Since:  time.Now(),
	}
}

// unended records what became of a step whose end its node will not tell: it does not answer, or it is this node, which
// does not take the step any more and would wait for itself. ErrMoved: it is on record now.
func (q *resultQuery) unended(ctx context.Context, h state.Holder) error {
	s, step := q.steps, q.step
	r := state.StepResult{Node: h.Node, Step: step.ID, Result: Unknown, At: time.Now().UTC()}
	still := clientv3.Compare(clientv3.CreateRevision(s.store.Presences.AliveKey(h.Node)), "=", 0)
	switch {
	case q.left(h.Node):
		start, err := s.store.Client.Get(ctx, s.resultKey(step, "started", h.Node))
		if err != nil || len(start.Kvs) == 0 {
			return err
		}
		still = clientv3.Compare(clientv3.ModRevision(string(start.Kvs[0].Key)), "=", start.Kvs[0].ModRevision)
		r.Reason = fmt.Sprintf("its result is unknown: %[1]s began it and does not take it any more; look at %[1]s", h.Node)
		if q.step.Repeatable {
			r.Result, r.Attempt = Failed, s.store.Steps.ReadStart(start.Kvs[0]).Attempt
			r.Reason = "it was cut off, and " + h.Node + " does not take it any more; " + state.AgainHint(step.ID)
		}
	case h.Alive || q.step.Repeatable:
		return nil
	default:
		r.Reason = fmt.Sprintf(
			"its result is unknown: it was started on %[1]s, which does not answer, and it must not run twice (idempotent: "+
				"false); look at %[1]s",
			h.Node,
		)
	}
	return q.record(ctx, r, still)
}

// left reports that the node itself began the step under another role: it is not for the node any more.
func (q *resultQuery) left(node string) bool {
	own, listed := q.steps.req.Inventory[node]
	if me := q.steps.req.Presence.Node; !listed {
		own = state.Member{Role: me.Role, Labels: me.Labels}
	}
	return node == q.steps.req.node() && !q.election.Has(node, own)
}

// record records a result where there is none, as long as a condition holds, and is ErrMoved then. An unknown one halts
// the group.
func (q *resultQuery) record(ctx context.Context, r state.StepResult, still clientv3.Cmp) error {
	key := q.steps.resultKey(q.step, "result", r.Node)
	done, err := q.steps.store.Client.Txn(ctx).If(clientv3.Compare(clientv3.CreateRevision(key), "=", 0), still).
		Then(state.Put(key, r)).Commit()
	if err != nil || !done.Succeeded { // it is back, or another node was faster
		return err
	}
	if r.Result == Unknown {
		err = q.steps.haltUnknown(ctx, q.step, r.Node, r.Reason, done.Header.Revision)
	}
	return cmp.Or(err, ErrMoved)
}
