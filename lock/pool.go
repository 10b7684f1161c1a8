package lock

import (
	"context"
	"slices"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pullet/pullet/state"
)

// pool is a number of places that nodes claim: the slots of a group, or those of a serialized step.
type pool struct {
	kind        state.WaitKind // of who waits for a place
	name, scope string         // "slot web", "role web"
	step        string         // that a claim is for; "" where it is for a run
	gate        string         // the group of its gate
	queue       string         // prefixes of keys
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
		kind: state.WaitSlot, name: "slot " + g, scope: "role " + g, gate: g, queue: s.QueuePrefix(q.rollout(), g),
		claims: s.SlotPrefix(g), marks: s.MarkPrefix(g), limit: q.Rules.Limit, slots: true, switched: true, follows: true,
	}
}

// reading is what a look at the store found, at one revision.
type reading struct {
	view     View
	revision int64
	fences   map[int]int64 // create revisions of the claims
	moved    []clientv3.Cmp
	current  int64                 // revision of the fleet's version
	alive    int64                 // revision of the node's registration; 0: its lease ended
	surveyed bool                  // it was counted who is away
	ahead    string                // the key of the ticket before the node's own
	older    int                   // tickets that come first
	slots    []Held                // all slots of the fleet
	others   []Held                // own claims in other groups
	unlisted []Held                // older claims whose nodes no inventory lists: their records say where they belong
	gates    map[string]state.Gate // of all groups
	gateRev  int64                 // of the pool's own
	now      state.Incarnation     // of etcd, which answered
	was      state.Incarnation     // on record
	wasRev   int64                 // 0: none is, or it cannot be read

	switchKey string // of the switch that keeps the node where it is

	wait *Wait     // what Try made of it
	at   time.Time // and when
}

// answers are what a request found, in the order in which it was asked.
type answers struct{ left []*pb.ResponseOp }

func (a *answers) next() *pb.ResponseOp {
	one := a.left[0]
	a.left = a.left[1:]
	return one
}

func (a *answers) kvs() []*mvccpb.KeyValue { return a.next().GetResponseRange().Kvs }

// look reads what the decision rests on, behind what else is to be done first. Only a node that is likely to be
// admitted counts in the same request who is away: see survey.
func (t *Turn) look(ctx context.Context, first ...clientv3.Op) (*reading, error) {
	rosterless, surveys := t.slots && t.roster == nil, t.slots && t.head
	ops := first
	if rosterless {
		ops = append(ops, t.store.RosterOp(t.store.RosterKey(t.req.rollout(), t.req.Rules.Group), t.req.node()))
	}
	ops = append(ops, t.placeOps()...)
	if t.switched {
		ops = append(ops, t.switchOps()...)
	} else {
		ops = append(ops, t.incarnationOps()...)
	}
	if t.slots {
		ops = append(ops, t.rulesOps()...)
	}
	if surveys {
		ops = append(ops, t.surveyOps()...)
	}
	got, err := t.store.Client.Txn(ctx).Then(ops...).Commit()
	if err != nil {
		return nil, err
	}
	t.queued = t.queued || len(first) > 0
	a := &answers{got.Responses[len(first):]}
	if rosterless {
		if err := t.takeRoster(a.next()); err != nil {
			return nil, err
		}
	}
	r := &reading{revision: got.Header.Revision, fences: map[int]int64{}, now: state.IncarnationOf(got.Header)}
	t.place(r, a)
	if t.switched {
		t.switches(r, a)
	} else {
		t.incarnation(r, a)
	}
	if t.slots {
		t.rules(r, a)
	}
	if len(a.left) > 0 && (!rosterless || t.oneRole()) { // else what it counted is not the group
		err = t.surveyOf(ctx, r, a.left)
	}
	return r, err
}

// placeOps read the version, the node's own registration, its place in the queue, and who holds what: slots of all
// groups, because a holder may count in several.
func (t *Turn) placeOps() []clientv3.Op {
	claims, marks := t.claims, t.marks
	if t.slots {
		claims, marks = t.store.SlotPrefix(""), t.store.MarkPrefix("")
	}
	return []clientv3.Op{
		clientv3.OpGet(t.store.CurrentKey(), clientv3.WithKeysOnly()),
		clientv3.OpGet(t.req.Presence.Key, clientv3.WithKeysOnly()),
		clientv3.OpGet(
			t.ticket+"\x00",
			clientv3.WithRange(clientv3.GetPrefixRangeEnd(t.queue)),
			clientv3.WithLimit(1),
			clientv3.WithKeysOnly(),
		),
		clientv3.OpGet(claims, clientv3.WithPrefix()),
		clientv3.OpGet(marks, clientv3.WithPrefix(), clientv3.WithKeysOnly()),
		clientv3.OpGet(t.store.GateKey(t.req.rollout(), ""), clientv3.WithPrefix()),
	}
}

// place files what placeOps read.
func (t *Turn) place(r *reading, a *answers) {
	q := t.req
	r.view = View{
		Node:    q.node(),
		Kind:    t.kind,
		Name:    t.name,
		Scope:   t.scope,
		Group:   t.gate,
		Rollout: q.rollout(),
		Limit:   t.limit(max(1, t.size)),
		OnLost:  q.Rules.OnLost,
		Raise:   q.Rules.Raise,
	}
	r.current, r.alive = revisionOf(a.kvs()), revisionOf(a.kvs())
	tickets := a.next().GetResponseRange()
	if next := tickets.Kvs; len(next) > 0 {
		r.ahead, r.older = string(next[0].Key), int(tickets.Count)
		r.view.Ahead = before(t.store, next[0])
	}
	claims, marks := a.kvs(), a.kvs()
	if t.slots {
		t.holdings(r, claims, marks)
	} else {
		r.view.Claims = claimsOf(t.store, claims, r.fences)
		r.view.Dead = deadOf(t.store, r.view.Claims, marks)
	}
	t.gates(r, a.kvs())
}

// switchOps read whether the store is doubted, etcd's incarnation, the pause, and the switches of the node, its role,
// and all.
func (t *Turn) switchOps() []clientv3.Op {
	ops := append(t.incarnationOps(), clientv3.OpGet(t.store.DoubtKey()), clientv3.OpGet(t.store.PauseKey()))
	for _, c := range t.scopes() {
		ops = append(ops, clientv3.OpGet(t.store.SwitchKey(c)))
	}
	return ops
}

// rulesOps read what holds for slots alone.
func (t *Turn) rulesOps() []clientv3.Op {
	s, q := t.store, t.req
	ops := []clientv3.Op{
		clientv3.OpGet(s.TotalPrefix(), clientv3.WithPrefix()),
		clientv3.OpGet(s.ClockKey(q.rollout(), q.Rules.Group), clientv3.WithKeysOnly()),
	}
	if len(q.Rules.Depends) > 0 {
		ops = append(ops, clientv3.OpGet(s.ClosedKey(q.rollout(), ""), clientv3.WithPrefix(), clientv3.WithKeysOnly()),
			clientv3.OpGet(s.SoakKey(q.rollout(), ""), clientv3.WithPrefix()))
	}
	return ops
}

// scopes are those of the switches that hold for the node, the nearest first.
func (t *Turn) scopes() []state.Scope {
	return []state.Scope{state.HostScope(t.req.node()), state.RoleScope(t.req.Rules.Role), state.GlobalScope()}
}

// rules files what rulesOps read.
func (t *Turn) rules(r *reading, a *answers) {
	q, v := t.req, &r.view
	v.Totals = claimsOf(t.store, a.kvs(), nil)
	v.Spares = q.Rules.hostFailures(t.size)
	v.Total, v.Timed, v.Mixed = q.Rules.Total, q.Rules.Deadline > 0, t.roster != nil && len(t.roster.Roles) > 1
	if v.Total > 0 {
		v.Slots = r.slots
	}
	v.Ticking = len(a.kvs()) > 0
	v.Closed = t.closed()
	v.All = r.gates[state.AllGroups]
	if len(q.Rules.Depends) > 0 {
		closed, soaks := lastParts(t.store, a.kvs()), a.kvs()
		for _, g := range q.Rules.Depends {
			d := Dependency{Group: g, Closed: closed[g], Gate: r.gates[g]}
			for _, kv := range soaks {
				if k, err := t.store.Key(kv); err == nil && k.Group == g {
					until, _ := state.Read[state.Moment](t.store, kv) // for people
					d.Soaking, d.Until = true, until.Time
				}
			}
			v.Depends = append(v.Depends, d)
		}
	}
}

// closed is when the maintenance window of the group opens; "" is now.
func (t *Turn) closed() string {
	if t.req.Rules.Closed == nil {
		return ""
	}
	return t.req.Rules.Closed(time.Now())
}

// switches finds the operator's word that holds: host over role over global; nothing lifts a pause.
func (t *Turn) switches(r *reading, a *answers) {
	t.incarnation(r, a)
	s, doubt, pause := t.store, a.kvs(), a.kvs()
	r.unmoved(s.DoubtKey(), doubt)
	r.unmoved(s.PauseKey(), pause)
	enabled := false // by a nearer scope
	for _, c := range t.scopes() {
		kvs := a.kvs()
		r.unmoved(s.SwitchKey(c), kvs)
		if len(kvs) == 0 || enabled || r.view.Switch != nil {
			continue
		}
		w := newSwitched(c.String(), s.ReadSwitch(kvs[0]))
		if enabled = w.Enabled && (w.Version == "" || !t.slots || w.Version == t.req.Version.ID); !enabled {
			r.view.Switch, r.switchKey = w, s.SwitchKey(c)
		}
	}
	for _, all := range []struct {
		set       []*mvccpb.KeyValue
		key, what string
	}{{doubt, s.DoubtKey(), state.StoreScope}, {pause, s.PauseKey(), state.PauseScope}} {
		if len(all.set) == 0 || r.view.Switch != nil {
			continue
		}
		r.view.Switch, r.switchKey = newSwitched(all.what, s.ReadSwitch(all.set[0])), all.key
	}
}

// gates reads the gates, of which the pool's own and those of what it depends on are compared when the claim is made.
func (t *Turn) gates(r *reading, kvs []*mvccpb.KeyValue) {
	at := map[string][]*mvccpb.KeyValue{}
	r.gates = map[string]state.Gate{}
	for _, kv := range kvs {
		group, g := t.store.ReadGate(kv)
		r.gates[group], at[group] = g, []*mvccpb.KeyValue{kv}
	}
	counts := []string{t.gate}
	if t.slots {
		counts = append(counts, state.AllGroups)
		counts = append(counts, t.req.Rules.Depends...)
	}
	for _, group := range slices.Compact(slices.Sorted(slices.Values(counts))) {
		r.unmoved(t.store.GateKey(t.req.rollout(), group), at[group])
	}
	if r.view.Gate, r.gateRev = r.gates[t.gate], revisionOf(at[t.gate]); r.gateRev == 0 {
		r.view.Gate.State = "open"
	}
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

// claimsOf are the claims by place, and their fences where those are wanted. One of which the place cannot be read has
// one that nobody asks for.
func claimsOf(s *state.Store, kvs []*mvccpb.KeyValue, fences map[int]int64) map[int]state.Claim {
	out := map[int]state.Claim{}
	for i, kv := range kvs {
		place := placeOf(s, kv, i)
		if out[place] = s.ReadClaim(kv); fences != nil {
			fences[place] = kv.CreateRevision
		}
	}
	return out
}

// placeOf is the place of a claim. One that cannot be read is a place of its own.
func placeOf(s *state.Store, kv *mvccpb.KeyValue, i int) int {
	k, err := s.Key(kv)
	if err != nil {
		return -1 - i
	}
	return k.Place
}

// deadOf are the claims whose holders left no mark that lives. Who holds one that cannot be read may well live.
func deadOf(s *state.Store, claims map[int]state.Claim, marks []*mvccpb.KeyValue) map[int]bool {
	marked := map[int]bool{}
	for _, kv := range marks {
		if k, err := s.Key(kv); err == nil {
			marked[k.Place] = true
		}
	}
	dead := map[int]bool{}
	for i, c := range claims {
		dead[i] = !marked[i] && c.Unread == nil
	}
	return dead
}
