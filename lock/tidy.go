package lock

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pullet/pullet/state"
)

// tidy does what the first in the queue finds to be done while it waits: it takes claims back from lost nodes, halts a group that does
// not get on, closes groups that are through, and finds out who is missing there. It reports that another look is worth it.
func (t *Turn) tidy(ctx context.Context, r *reading, d *Decision) (again bool, err error) {
	for _, i := range d.Reclaim {
		taken, err := t.reclaim(ctx, r, lostClaim{t.claims + strconv.Itoa(i), r.fences[i], r.view.Claims[i], t.gate, t.name})
		if taken || err != nil {
			return taken, err
		}
		r.view.Dead[i] = false // it registered anew, or somebody was faster
	}
	if len(d.Reclaim) > 0 {
		*d = Decide(r.view)
	}
	if again, err := t.holders(ctx, r, d); again || err != nil {
		return again, err
	}
	if d.Stalled {
		return true, t.stall(ctx, r)
	}
	if d.Arm {
		clock, err := t.wind(ctx)
		if err != nil {
			return false, err
		}
		gate := r.view.Gate
		gate.Clock = true
		return true, t.setGate(ctx, r, gate, clock)
	}
	if d.Yield {
		return true, t.yield(ctx, r)
	}
	if d.Disarm {
		gate := r.view.Gate
		gate.Clock = false
		return true, t.setGate(ctx, r, gate, clientv3.OpDelete(t.store.ClockKey(t.req.rollout(), t.gate)))
	}
	for i := range r.view.Depends {
		dep := &r.view.Depends[i]
		if r.view.Ahead != "" || t.aside { // the first in the queue finds out
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

// holders finds out how those are who hold the places for which the node waits: not before it waited at the head of the queue for a while. Places
// in the whole fleet are taken back from lost nodes of any group: in theirs nobody may queue.
func (t *Turn) holders(ctx context.Context, r *reading, d *Decision) (again bool, err error) {
	if !d.Full {
		t.full = time.Time{}
		return false, nil
	}
	if t.full.IsZero() {
		t.full = time.Now()
	}
	if time.Since(t.full) < headPoll/2 && !t.req.Lasting {
		return false, nil
	}
	if err := trouble(ctx, t.store, t.req, d.Wait.Holders); err != nil {
		return false, err
	}
	r.view.Trouble = map[string]state.Holder{}
	for _, h := range d.Wait.Holders {
		r.view.Trouble[h.Node] = h
	}
	if d.Fleet && givesUp(t.req.Rules.OnLost) {
		if taken, err := t.reclaimFleet(ctx, r); taken || err != nil {
			return taken, err
		}
	}
	*d = Decide(r.view)
	return false, nil
}

// reclaimFleet takes slots of any group back whose holders do not answer, with their places in the whole fleet.
func (t *Turn) reclaimFleet(ctx context.Context, r *reading) (taken bool, err error) {
	got, err := t.store.Client.Get(ctx, t.store.SlotPrefix(""), clientv3.WithPrefix())
	if err != nil {
		return false, err
	}
	for _, kv := range got.Kvs {
		var c state.Claim
		if err := decode(kv, &c); err != nil {
			return false, err
		}
		if h, asked := r.view.Trouble[c.Node]; !asked || h.Alive {
			continue
		}
		group, _, _ := strings.Cut(strings.TrimPrefix(string(kv.Key), t.store.SlotPrefix("")), "/")
		one, err := t.reclaim(ctx, r, lostClaim{string(kv.Key), kv.CreateRevision, c, group, "slot " + group})
		if taken = taken || one; err != nil {
			return taken, err
		}
	}
	return taken, nil
}

// yield gives the node's place in the whole fleet back. It keeps that in its group, where it is half changed.
func (t *Turn) yield(ctx context.Context, r *reading) error {
	index, _ := r.view.own(r.view.Totals)
	key := t.store.TotalPrefix() + strconv.Itoa(index)
	_, err := t.store.Client.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision(key), "<", r.revision+1)).
		Then(clientv3.OpDelete(key), t.store.RingOp()).Commit()
	return err
}

// setGate writes the pool's own gate if it did not move.
func (t *Turn) setGate(ctx context.Context, r *reading, gate state.Gate, more ...clientv3.Op) error {
	_, err := t.store.Client.Txn(ctx).
		If(clientv3.Compare(clientv3.ModRevision(t.store.GateKey(t.req.rollout(), t.gate)), "=", r.gateRev)).
		Then(append(more, t.store.GateOp(t.req.rollout(), t.gate, gate), t.store.RingOp())...).Commit()
	return err
}

// stall halts the group because no holder finished within the progress deadline.
func (t *Turn) stall(ctx context.Context, r *reading) error {
	gate := r.view.Gate
	gate.State, gate.Clock, gate.Node = state.Halted, false, ""
	gate.Reason = fmt.Sprintf("no node finished within %s (rollout.progressDeadline); %s", t.req.Rules.Deadline, r.view.busy().Reason)
	return t.setGate(ctx, r, gate)
}

// lostClaim is a claim whose holder does not answer.
type lostClaim struct {
	key   string
	fence int64
	state.Claim
	gate, name string // of the group
}

// reclaim takes a claim back from a node that does not answer, and records it. The store itself says that the node's lease ended.
func (t *Turn) reclaim(ctx context.Context, r *reading, c lostClaim) (bool, error) {
	s, q := t.store, t.req
	gate, gateRev, err := s.Gate(ctx, q.rollout(), c.gate)
	if err != nil {
		return false, err
	}
	reason := fmt.Sprintf("it did not answer while it held %s: the slot was taken back (rollout.onLost: %s)", c.name, q.Rules.OnLost)
	conditions := []clientv3.Cmp{
		clientv3.Compare(clientv3.CreateRevision(c.key), "=", c.fence),
		clientv3.Compare(clientv3.CreateRevision(s.AliveKey(c.Node)), "=", 0),
		clientv3.Compare(clientv3.ModRevision(s.GateKey(q.rollout(), c.gate)), "=", gateRev),
	}
	record := map[string]any{"by": q.node(), "slot": c.key, "fence": c.fence, "claim": c.Claim, "onLost": q.Rules.OnLost, "time": time.Now().UTC()}
	ops := []clientv3.Op{clientv3.OpDelete(c.key), state.Put(s.LostKey(q.rollout(), c.Node), record), s.RingOp()}
	for i, other := range r.view.Totals {
		if other.Node == c.Node {
			ops = append(ops, clientv3.OpDelete(s.TotalPrefix()+strconv.Itoa(i)))
		}
	}
	st := q.status(reason)
	st.Version, st.Release, st.Clear = c.Version, c.Release, startAgain(c.Node)
	if t.slots {
		ops = append(ops, s.StatusOps(c.Node, state.Rollout, state.Failed, st)...)
	}
	if q.Rules.OnLost == Fail {
		fails(&gate, c.Node, reason, q.Rules.MaxFailures)
		ops = append(ops, s.GateOp(q.rollout(), c.gate, gate))
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
		sets[i] = map[string]bool{}
		for _, kv := range answer.GetResponseRange().Kvs {
			sets[i][state.LastPart(kv.Key)] = true
		}
	}
	dep.Missing, dep.More = missing(roster.Nodes(), sets[0], sets[1], sets[2], sets[3], t.req.Rules.OnLost)
	if len(dep.Missing) > 0 {
		return false, trouble(ctx, s, t.req, dep.Missing)
	}
	return true, t.closeAfter(ctx, dep.Group, len(sets[0]))
}

// shownMissing is how many missing nodes a reason names.
const shownMissing = 5

// missing are the nodes of a roster that are waited for. Where lost nodes are given up, those that were seen once are not.
func missing(roster []string, done, gone, known, alive map[string]bool, onLost string) (out []state.Holder, more int) {
	for _, node := range roster {
		lost := known[node] && !alive[node]
		if done[node] || gone[node] || lost && givesUp(onLost) {
			continue
		}
		h := state.Holder{Node: node, Alive: alive[node]}
		if known[node] {
			h.Since = time.Unix(0, 0) // it was seen
		}
		if out = append(out, h); len(out) > shownMissing {
			out, more = out[:shownMissing], more+1
		}
	}
	return out, more
}

// close records that all nodes of a group are through, of which this node was the last.
func (t *Turn) close(ctx context.Context, group string) error { return t.closeAfter(ctx, group, 1) }

// closeAfter records that all nodes of a group are through, and how long it is watched before others follow: where none of them changed
// there is nothing to watch.
func (t *Turn) closeAfter(ctx context.Context, group string, changed int) error {
	s, rollout := t.store, t.req.rollout()
	key := s.ClosedKey(rollout, group)
	ops := []clientv3.Op{state.Put(key, map[string]any{"by": t.req.node(), "time": time.Now().UTC()}), s.RingOp()}
	if changed > 0 && t.req.Rules.Soak != nil && t.req.Rules.Soak(group) > 0 {
		soak := t.req.Rules.Soak(group)
		lease, err := s.Client.Grant(ctx, int64(soak.Seconds()))
		if err != nil {
			return err
		}
		ops = append(ops, state.Put(s.SoakKey(rollout, group), time.Now().UTC().Add(soak), clientv3.WithLease(lease.ID)))
	}
	_, err := s.Client.Txn(ctx).If(clientv3.Compare(clientv3.CreateRevision(key), "=", 0)).Then(ops...).Commit()
	return err
}
