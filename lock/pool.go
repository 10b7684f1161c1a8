package lock

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pullet/pullet/state"
)

// pool is a number of places that nodes claim: the slots of a group, or those of a serialized step.
type pool struct {
	name, scope string // "slot web", "role web"
	step        string // that a claim is for; "" where it is for a run
	gate        string // the group of its gate
	queue       string // prefixes of keys
	claims      string
	marks       string
	limit       func(roster int) int
	slots       bool // of a group: all the rules of a rollout hold
	switched    bool // the operator's switches hold
	follows     bool // nobody is admitted for another version than the fleet's
}

func slotPool(s *state.Store, q *Request) *pool {
	g := q.Rules.Group
	return &pool{
		name: "slot " + g, scope: "role " + g, gate: g, queue: s.QueuePrefix(q.rollout(), g),
		claims: s.SlotPrefix(g), marks: s.MarkPrefix(g), limit: q.Rules.Limit, slots: true, switched: true, follows: true,
	}
}

// reading is what a look at the store found, at one revision.
type reading struct {
	view     View
	revision int64
	fences   map[int]int64 // create revisions of the claims
	moved    []clientv3.Cmp
	current  int64              // revision of the fleet's version
	alive    int64              // revision of the node's registration; 0: its lease ended
	surveyed bool               // it was counted who is away
	ahead    string             // the key of the ticket before the node's own
	others   []*mvccpb.KeyValue // own claims in other groups
	gateRev  int64

	switchKey string // of the switch that keeps the node where it is

	wait *Wait     // what Try made of it
	at   time.Time // and when
}

// look reads what the decision rests on. Only the first in the queue, which heard the bell, counts in the same request who is away: see survey.
func (t *Turn) look(ctx context.Context) (*reading, error) {
	s, q := t.store, t.req
	ops := []clientv3.Op{
		clientv3.OpGet(s.CurrentKey(), clientv3.WithKeysOnly()),
		clientv3.OpGet(q.Presence.Key, clientv3.WithKeysOnly()),
		clientv3.OpGet(t.ticket+"\x00", clientv3.WithRange(clientv3.GetPrefixRangeEnd(t.queue)), clientv3.WithLimit(1), clientv3.WithKeysOnly()),
		clientv3.OpGet(t.claims, clientv3.WithPrefix()),
		clientv3.OpGet(t.marks, clientv3.WithPrefix(), clientv3.WithKeysOnly()),
		clientv3.OpGet(s.GateKey(q.rollout(), ""), clientv3.WithPrefix()),
	}
	plain := len(ops)
	if t.switched {
		ops = append(ops, t.switchOps()...)
	}
	if t.slots {
		ops = append(ops, t.rulesOps()...)
	}
	ruled := len(ops)
	switch {
	case t.slots && t.roster == nil:
		ops = append(ops, s.RosterOp(s.RosterKey(q.rollout(), q.Rules.Group), q.node()))
	case t.slots && t.bell != nil:
		ops = append(ops, t.surveyOps()...)
	}
	got, err := s.Client.Txn(ctx).Then(ops...).Commit()
	if err != nil {
		return nil, err
	}
	kvs := func(i int) []*mvccpb.KeyValue { return got.Responses[i].GetResponseRange().Kvs }
	r := &reading{revision: got.Header.Revision, fences: map[int]int64{}}
	more := got.Responses[ruled:]
	if t.slots && t.roster == nil {
		if err := t.takeRoster(more[0]); err != nil {
			return nil, err
		}
		more = nil
	}
	r.view = View{Node: q.node(), Name: t.name, Scope: t.scope, Rollout: q.rollout(), Limit: t.limit(max(1, t.size)), OnLost: q.Rules.OnLost}
	r.current, r.alive = revisionOf(kvs(0)), revisionOf(kvs(1))
	if next := kvs(2); len(next) > 0 {
		r.ahead = string(next[0].Key)
		r.view.Ahead = ticketNode(r.ahead)
	}
	if r.view.Claims, err = claimsOf(kvs(3), r.fences); err != nil {
		return nil, err
	}
	r.view.Dead = deadOf(r.view.Claims, kvs(4))
	gates, err := t.gates(r, kvs(5))
	if err != nil {
		return nil, err
	}
	after := func(i int) []*mvccpb.KeyValue { return kvs(plain + i) }
	if t.switched {
		if err := t.switches(r, after); err != nil {
			return nil, err
		}
	}
	if !t.slots {
		return r, nil
	}
	if err := t.rules(r, gates, func(i int) []*mvccpb.KeyValue { return after(4 + i) }); err != nil || len(more) == 0 {
		return r, err
	}
	return r, t.surveyOf(ctx, r, more)
}

// switchOps read the pause, and the switches of the node, its role, and all.
func (t *Turn) switchOps() []clientv3.Op {
	ops := []clientv3.Op{clientv3.OpGet(t.store.PauseKey())}
	for _, c := range t.scopes() {
		ops = append(ops, clientv3.OpGet(t.store.SwitchKey(c)))
	}
	return ops
}

// rulesOps read what holds for slots alone.
func (t *Turn) rulesOps() []clientv3.Op {
	s, q := t.store, t.req
	ops := []clientv3.Op{clientv3.OpGet(s.TotalPrefix(), clientv3.WithPrefix()), clientv3.OpGet(s.ClockKey(q.rollout(), q.Rules.Group), clientv3.WithKeysOnly())}
	for _, g := range q.Rules.Depends {
		ops = append(ops, clientv3.OpGet(s.ClosedKey(q.rollout(), g), clientv3.WithKeysOnly()), clientv3.OpGet(s.SoakKey(q.rollout(), g), clientv3.WithKeysOnly()))
	}
	if !t.alone { // once is enough
		ops = append(ops, clientv3.OpGet(s.SlotPrefix(""), clientv3.WithPrefix()))
	}
	return ops
}

// scopes are those of the switches that hold for the node, the nearest first.
func (t *Turn) scopes() []state.Scope {
	return []state.Scope{state.HostScope(t.req.node()), state.RoleScope(t.req.Rules.Role), state.GlobalScope()}
}

// rules files what rulesOps read.
func (t *Turn) rules(r *reading, gates map[string]state.Gate, kvs func(i int) []*mvccpb.KeyValue) error {
	q, v := t.req, &r.view
	var err error
	if v.Totals, err = claimsOf(kvs(0), nil); err != nil {
		return err
	}
	v.Total, v.Timed = q.Rules.Total, q.Rules.Deadline > 0
	v.Ticking = len(kvs(1)) > 0
	if q.Rules.Closed != nil {
		v.Closed = q.Rules.Closed(time.Now())
	}
	v.All = gates[state.AllGroups]
	for i, g := range q.Rules.Depends {
		v.Depends = append(v.Depends, Dependency{
			Group: g, Closed: len(kvs(2+2*i)) > 0, Soaking: len(kvs(3+2*i)) > 0, Gate: gates[g],
		})
	}
	if t.alone {
		return nil
	}
	r.others, err = t.elsewhere(kvs(2 + 2*len(q.Rules.Depends)))
	t.alone = err == nil && len(r.others) == 0
	return err
}

// switches finds the operator's word that holds: host over role over global; nothing lifts a pause.
func (t *Turn) switches(r *reading, kvs func(i int) []*mvccpb.KeyValue) error {
	s := t.store
	r.unmoved(s.PauseKey(), kvs(0))
	enabled := false // by a nearer scope
	for i, c := range t.scopes() {
		r.unmoved(s.SwitchKey(c), kvs(1+i))
		if len(kvs(1+i)) == 0 || enabled || r.view.Switch != nil {
			continue
		}
		w := &Switched{What: c.String(), Clear: "pullet enable --" + c.String()}
		if err := decode(kvs(1 + i)[0], &w.Switch); err != nil {
			return err
		}
		if enabled = w.Enabled && (w.Version == "" || w.Version == t.req.Version.ID); !enabled {
			r.view.Switch, r.switchKey = w, s.SwitchKey(c)
		}
	}
	if pause := kvs(0); len(pause) > 0 && r.view.Switch == nil {
		w := &Switched{What: "pause", Clear: "pullet rollout resume"}
		if err := decode(pause[0], &w.Switch); err != nil {
			return err
		}
		r.view.Switch, r.switchKey = w, s.PauseKey()
	}
	return nil
}

// gates reads the gates, of which the pool's own and those of what it depends on are compared when the claim is made.
func (t *Turn) gates(r *reading, kvs []*mvccpb.KeyValue) (map[string]state.Gate, error) {
	out, at := map[string]state.Gate{}, map[string][]*mvccpb.KeyValue{}
	for _, kv := range kvs {
		var g state.Gate
		if err := decode(kv, &g); err != nil {
			return nil, err
		}
		group := state.LastPart(kv.Key)
		out[group], at[group] = g, []*mvccpb.KeyValue{kv}
	}
	counts := []string{t.gate}
	if t.slots {
		counts = append(counts, state.AllGroups)
		counts = append(counts, t.req.Rules.Depends...)
	}
	for _, group := range slices.Compact(slices.Sorted(slices.Values(counts))) {
		r.unmoved(t.store.GateKey(t.req.rollout(), group), at[group])
	}
	if r.view.Gate, r.gateRev = out[t.gate], revisionOf(at[t.gate]); r.gateRev == 0 {
		r.view.Gate.State = "open"
	}
	return out, nil
}

// unmoved adds a key to those that must be as they were read.
func (r *reading) unmoved(key string, kvs []*mvccpb.KeyValue) {
	r.moved = append(r.moved, clientv3.Compare(clientv3.ModRevision(key), "=", revisionOf(kvs)))
}

func revisionOf(kvs []*mvccpb.KeyValue) int64 {
	if len(kvs) == 0 {
		return 0
	}
	return kvs[0].ModRevision
}

func decode(kv *mvccpb.KeyValue, v any) error {
	if err := json.Unmarshal(kv.Value, v); err != nil {
		return fmt.Errorf("etcd key %s: %w", kv.Key, err)
	}
	return nil
}

// claimsOf are the claims by place, and their fences where those are wanted.
func claimsOf(kvs []*mvccpb.KeyValue, fences map[int]int64) (map[int]state.Claim, error) {
	out := map[int]state.Claim{}
	for _, kv := range kvs {
		var c state.Claim
		if err := decode(kv, &c); err != nil {
			return nil, err
		}
		index, err := strconv.Atoi(state.LastPart(kv.Key))
		if err != nil {
			return nil, fmt.Errorf("etcd key %s: %w", kv.Key, err)
		}
		out[index] = c
		if fences != nil {
			fences[index] = kv.CreateRevision
		}
	}
	return out, nil
}

// deadOf are the claims whose holders left no mark that lives.
func deadOf(claims map[int]state.Claim, marks []*mvccpb.KeyValue) map[int]bool {
	dead := map[int]bool{}
	for i := range claims {
		dead[i] = !slices.ContainsFunc(marks, func(kv *mvccpb.KeyValue) bool { return state.LastPart(kv.Key) == strconv.Itoa(i) })
	}
	return dead
}
