package lock

import (
	"context"
	"fmt"
	"strconv"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pullet/pullet/state"
)

// maintain does what the first in the queue finds to be done while it waits: it takes claims back from lost nodes,
// halts a group that does not get on, closes groups that are through, and finds out who is missing there. It reports
// that another look is worth it.
func (t *Turn) maintain(ctx context.Context, r *reading, d *Decision) (again bool, err error) {
	if d.Recognise && r.view.Ahead != nil { // the first in the queue does it
		return false, nil
	}
	if d.Recognise {
		return true, t.store.Recognise(ctx, t.req.node(), r.was, r.wasRev)
	}
	if taken, err := t.reclaims(ctx, r, d); taken || err != nil {
		return taken, err
	}
	if err := t.holders(ctx, r, d); err != nil {
		return false, err
	}
	if d.Yield {
		return true, t.yield(ctx, r)
	}
	if set, err := t.setClock(ctx, r, *d); set || err != nil {
		return set, err
	}
	for i := range r.view.Depends {
		dep := &r.view.Depends[i]
		if r.view.Ahead != nil || t.aside { // the first in the queue finds out
			break
		}
		if dep.Closed || dep.Gate.State == state.Halted {
			continue
		}
		closed, err := t.settle(ctx, dep)
		if closed || err != nil {
			return closed, err
		}
		*d = Decide(r.view) // now with who is missing
		return false, nil
	}
	return false, nil
}

// reclaims takes back what lost nodes hold for which the node waits. That they are lost is on record: etcd ended the
// leases of their marks.
func (t *Turn) reclaims(ctx context.Context, r *reading, d *Decision) (taken bool, err error) {
	lost := d.Expel
	for _, i := range d.Reclaim {
		lost = append(
			lost,
			Held{
				Key:   t.claims + strconv.Itoa(i),
				Fence: r.fences[i],
				Group: t.gate,
				Name:  t.name,
				Claim: r.view.Claims[i],
			},
		)
	}
	for _, h := range lost {
		if taken, err := t.reclaim(ctx, r, h); taken || err != nil {
			return taken, err
		}
		r.spare(h) // it registered anew, or somebody was faster
	}
	if len(lost) > 0 {
		*d = Decide(r.view)
	}
	return false, nil
}

// spare notes that a claim's holder is not lost.
func (r *reading) spare(h Held) {
	for i, fence := range r.fences {
		if fence == h.Fence {
			r.view.Dead[i] = false
		}
	}
	for _, list := range [][]Held{r.view.Guests, r.view.Slots} {
		for i := range list {
			list[i].Dead = list[i].Dead && list[i].Key != h.Key
		}
	}
}

// holders finds out how those are who hold the places for which the node waits: not before it waited at the head of the
// queue for a while, unless its pull waits no longer than that.
func (t *Turn) holders(ctx context.Context, r *reading, d *Decision) error {
	if !d.Full {
		t.full = time.Time{}
		return nil
	}
	if t.full.IsZero() {
		t.full = time.Now()
	}
	if time.Since(t.full) < Patience && !t.req.Lasting && !t.req.Brief {
		return nil
	}
	if err := trouble(ctx, t.store, t.req, d.Wait.Holders); err != nil {
		return err
	}
	r.view.Trouble = map[string]state.Holder{}
	for _, h := range d.Wait.Holders {
		r.view.Trouble[h.Node] = h
	}
	*d = Decide(r.view)
	return nil
}

// yield gives the node's place in the total back, and stops to count in groups that it left: those for whom it waits
// may need that. It keeps its place in its group, where it is half changed.
func (t *Turn) yield(ctx context.Context, r *reading) error {
	var unmoved []clientv3.Cmp
	var ops []clientv3.Op
	as := func(key string) {
		unmoved = append(unmoved, clientv3.Compare(clientv3.ModRevision(key), "<", r.revision+1))
	}
	if index, counts := r.view.own(r.view.Totals); counts {
		key := t.store.TotalPrefix() + strconv.Itoa(index)
		as(key)
		ops = append(ops, clientv3.OpDelete(key))
	}
	if index, holds := r.view.own(r.view.Claims); holds {
		key, idle := t.claims+strconv.Itoa(index), r.view.Claims[index]
		idle.Idle, idle.Groups = true, nil
		as(key)
		ops = append(ops, state.Put(key, idle))
	}
	_, err := t.store.Client.Txn(ctx).If(unmoved...).Then(append(ops, t.store.RingOp())...).Commit()
	return err
}

// setGate writes the pool's own gate if it did not move.
func (t *Turn) setGate(ctx context.Context, r *reading, gate state.Gate, more ...clientv3.Op) error {
	_, err := t.store.Client.Txn(ctx).
		If(clientv3.Compare(clientv3.ModRevision(t.store.GateKey(t.req.rollout(), t.gate)), "=", r.gateRev)).
		Then(append(more, t.gateOp(gate), t.store.RingOp())...).Commit()
	return err
}

// gateOp writes the pool's own gate, which says what it guards.
func (t *Turn) gateOp(gate state.Gate) clientv3.Op {
	gate.Step = t.step
	return t.store.GateOp(t.req.rollout(), t.gate, gate)
}

// reclaim takes a claim back from a node that does not answer, and records it. The store itself says that the node's
// lease ended.
func (t *Turn) reclaim(ctx context.Context, r *reading, c Held) (bool, error) {
	s, q := t.store, t.req
	gate, gateRev, err := s.Gate(ctx, q.rollout(), c.Group)
	if err != nil {
		return false, err
	}
	reason := fmt.Sprintf(
		"it did not answer while it held %s: the slot was taken back (rollout.onLost: %s)",
		c.Name,
		q.Rules.OnLost,
	)
	conditions := []clientv3.Cmp{
		clientv3.Compare(clientv3.CreateRevision(c.Key), "=", c.Fence),
		clientv3.Compare(clientv3.CreateRevision(s.AliveKey(c.Node)), "=", 0),
		clientv3.Compare(clientv3.ModRevision(s.GateKey(q.rollout(), c.Group)), "=", gateRev),
	}
	record := map[string]any{
		"by":     q.node(),
		"slot":   c.Key,
		"fence":  c.Fence,
		"claim":  c.Claim,
		"onLost": q.Rules.OnLost,
		"time":   time.Now().UTC(),
	}
	ops := []clientv3.Op{clientv3.OpDelete(c.Key), state.Put(s.LostKey(q.rollout(), c.Node), record), s.RingOp()}
	for i, other := range r.view.Totals {
		if other.Node == c.Node {
			ops = append(ops, clientv3.OpDelete(s.TotalPrefix()+strconv.Itoa(i)))
		}
	}
	st := q.status(reason)
	st.Version, st.Release, st.Remedy = c.Version, c.Release, state.Act(startAgain(c.Node))
	if t.slots {
		ops = append(ops, s.StatusOps(c.Node, state.Rollout, state.Failed, st)...)
	}
	if q.Rules.OnLost == Fail {
		survives := q.Rules.MaxFailures
		if !t.slots { // at a serialized step no failure is survived, see StopStep
			survives = 0
		}
		gate.Step = t.step
		fails(&gate, c.Node, reason, survives)
		ops = append(ops, s.GateOp(q.rollout(), c.Group, gate))
	}
	done, err := s.Client.Txn(ctx).If(conditions...).Then(ops...).Commit()
	return err == nil && done.Succeeded, err
}

// settle closes a group that is through; else it finds out who is missing.
func (t *Turn) settle(ctx context.Context, dep *Dependency) (closed bool, err error) {
	s, rollout := t.store, t.req.rollout()
	roster, err := s.FreezeRoster(ctx, s.RosterKey(rollout, dep.Group), t.req.Inventory, t.req.ofGroup(dep.Group))
	if err != nil {
		return false, err
	}
	keysOnly := []clientv3.OpOption{clientv3.WithPrefix(), clientv3.WithKeysOnly()}
	got, err := s.Client.Txn(ctx).Then(
		clientv3.OpGet(s.DoneKey(rollout, dep.Group, ""), keysOnly...),
		clientv3.OpGet(s.DecommissionedKey(""), keysOnly...),
		clientv3.OpGet(s.NodeKey(""), keysOnly...),
		clientv3.OpGet(s.AliveKey(""), keysOnly...),
	).Commit()
	if err != nil {
		return false, err
	}
	sets := make([]map[string]bool, len(got.Responses))
	for i, answer := range got.Responses {
		sets[i] = lastParts(s, answer.GetResponseRange().Kvs)
	}
	dep.Missing, dep.More = missing(roster.Nodes(), sets[0], sets[1], sets[2], sets[3], t.req.Rules.OnLost)
	if len(dep.Missing) > 0 {
		return false, trouble(ctx, s, t.req, dep.Missing)
	}
	return true, t.closeAfter(ctx, dep.Group, len(sets[0]))
}

// shownMissing is how many missing nodes a reason names.
const shownMissing = 5

// missing are the nodes of a roster that are waited for. Where lost nodes are given up, those that were seen once are
// not.
func missing(roster []string, done, gone, known, alive map[string]bool, onLost string) (out []state.Holder, more int) {
	for _, node := range roster {
		lost := known[node] && !alive[node]
		if done[node] || gone[node] || lost && givesUp(onLost) {
			continue
		}
		if out = append(out, state.Holder{Node: node, Alive: alive[node], Seen: known[node]}); len(out) > shownMissing {
			out, more = out[:shownMissing], more+1
		}
	}
	return out, more
}

// close records that all nodes of a group are through, of which this node was the last.
func (t *Turn) close(ctx context.Context, group string) error { return t.closeAfter(ctx, group, 1) }

// closeAfter records that all nodes of a group are through, and how long it is watched before others follow: where none
// of them changed there is nothing to watch.
func (t *Turn) closeAfter(ctx context.Context, group string, changed int) error {
	s, rollout := t.store, t.req.rollout()
	ops := []clientv3.Op{t.closedOp(group), s.RingOp()}
	if soak := t.soak(group); changed > 0 && soak > 0 {
		lease, err := s.Client.Grant(ctx, int64(soak.Seconds()))
		if err != nil {
			return err
		}
		ops = append(
			ops,
			state.Put(s.SoakKey(rollout, group), time.Now().UTC().Add(soak), clientv3.WithLease(lease.ID)),
		)
	}
	_, err := s.Client.Txn(ctx).
		If(clientv3.Compare(clientv3.CreateRevision(s.ClosedKey(rollout, group)), "=", 0)).
		Then(ops...).
		Commit()
	return err
}

func (t *Turn) closedOp(group string) clientv3.Op {
	return state.Put(
		t.store.ClosedKey(t.req.rollout(), group),
		map[string]any{"by": t.req.node(), "time": time.Now().UTC()},
	)
}

// soak is how long a group is watched before others follow.
func (t *Turn) soak(group string) time.Duration {
	if t.req.Rules.Soak == nil {
		return 0
	}
	return t.req.Rules.Soak(group)
}
