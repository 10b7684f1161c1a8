package lock

import (
	"context"
	"slices"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pullet/pullet/lock/arbiter"
	"github.com/pullet/pullet/state"
)

// reader reads what a decision rests on.
type reader struct {
	store  *state.Store
	req    *Request
	pool   *pool
	ticket *ticket
	roster *groupRoster
	census *census
}

// look reads what the decision rests on, after other operations in the same transaction. Only a node that is likely to
// be admitted also counts who is away: see census.complete.
func (l *reader) look(ctx context.Context, first ...clientv3.Op) (*reading, error) {
	rosterless, surveys := l.pool.slots && l.roster.frozen == nil, l.pool.slots && l.ticket.first
	ops := first
	if rosterless {
		ops = append(ops, l.store.Rosters.Op(l.store.Rosters.Key(l.req.rollout(), l.req.Rules.Group), l.req.node()))
	}
	ops = append(ops, l.placeOps()...)
	ops = append(ops, l.incarnationOps()...)
	if l.pool.switched {
		ops = append(ops, l.switchOps()...)
	}
	if l.pool.slots {
		ops = append(ops, l.rulesOps()...)
	}
	if surveys {
		ops = append(ops, l.census.ops()...)
	}
	got, err := l.store.Client.Txn(ctx).Then(ops...).Commit()
	if err != nil {
		return nil, err
	}
	l.ticket.queued = l.ticket.queued || len(first) > 0
	a := &answers{got.Responses[len(first):]}
	if rosterless {
		if err := l.roster.read(a.next()); err != nil {
			return nil, err
		}
	}
	r := &reading{revision: got.Header.Revision, fences: map[int]int64{}, now: state.IncarnationOf(got.Header)}
	l.readPlaces(r, a)
	l.readIncarnation(r, a)
	if l.pool.switched {
		l.readSwitches(r, a)
	}
	if l.pool.slots {
		l.readRules(r, a)
	}
	if len(a.left) > 0 && (!rosterless || l.census.oneRole()) { // else what it counted is not the group
		err = l.census.read(ctx, r, a.left)
	}
	if err == nil && len(r.open) > 0 {
		r.view.Before, err = arbiter.Before(ctx, l.store, l.req.node(), r.open)
	}
	return r, err
}

// placeOps read the version, the node's registration, its place in the queue, and all claims: slots of all groups,
// because a holder may count in several.
func (l *reader) placeOps() []clientv3.Op {
	claims, marks := l.pool.claims, l.pool.marks
	if l.pool.slots {
		claims, marks = l.store.Rollouts.SlotPrefix(""), l.store.Rollouts.MarkPrefix("")
	}
	return []clientv3.Op{
		clientv3.OpGet(l.store.Versions.CurrentKey(), clientv3.WithKeysOnly()),
		clientv3.OpGet(l.req.Presence.Key, clientv3.WithKeysOnly()),
		clientv3.OpGet(
			l.ticket.key+"\x00",
			clientv3.WithRange(clientv3.GetPrefixRangeEnd(l.pool.queue)),
			clientv3.WithLimit(1),
			clientv3.WithKeysOnly(),
		),
		clientv3.OpGet(claims, clientv3.WithPrefix()),
		clientv3.OpGet(marks, clientv3.WithPrefix(), clientv3.WithKeysOnly()),
		clientv3.OpGet(l.store.Rollouts.GateKey(l.req.rollout(), ""), clientv3.WithPrefix()),
	}
}

// readPlaces takes the answers to placeOps.
func (l *reader) readPlaces(r *reading, a *answers) {
	q := l.req
	r.view = View{
		Node:    q.node(),
		Kind:    l.pool.kind,
		Name:    l.pool.name,
		Scope:   l.pool.scope,
		Group:   l.pool.group,
		Rollout: q.rollout(),
		Limit:   l.pool.limit(max(1, l.roster.size)),
		OnLost:  q.Rules.OnLost,
		Raise:   q.Rules.Raise,
	}
	r.current, r.alive = revisionOf(a.kvs()), revisionOf(a.kvs())
	tickets := a.next().GetResponseRange()
	if next := tickets.Kvs; len(next) > 0 {
		r.ahead, r.older = string(next[0].Key), int(tickets.Count)
		r.view.Ahead = predecessorOf(l.store, next[0])
	}
	claims, marks := a.kvs(), a.kvs()
	if l.pool.slots {
		l.readSlots(r, claims, marks)
	} else {
		r.view.Claims = claimsOf(l.store, claims, r.fences)
		r.view.Dead = deadOf(l.store, r.view.Claims, marks)
	}
	l.readGates(r, a.kvs())
}

// switchOps read the pause, and the switches of the node, its role, and all.
func (l *reader) switchOps() []clientv3.Op {
	ops := []clientv3.Op{clientv3.OpGet(l.store.Switches.PauseKey())}
	for _, c := range l.scopes() {
		ops = append(ops, clientv3.OpGet(l.store.Switches.Key(c)))
	}
	return ops
}

// rulesOps read what matters to slots only.
func (l *reader) rulesOps() []clientv3.Op {
	s, q := l.store, l.req
	ops := []clientv3.Op{
		arbiter.Op(s),
		clientv3.OpGet(s.Rollouts.TotalPrefix(), clientv3.WithPrefix()),
		clientv3.OpGet(s.Rollouts.ClockKey(q.rollout(), q.Rules.Group), clientv3.WithKeysOnly()),
	}
	if len(q.Rules.Depends) > 0 {
		ops = append(ops,
			clientv3.OpGet(s.Rollouts.ClosedKey(q.rollout(), ""), clientv3.WithPrefix(), clientv3.WithKeysOnly()),
			clientv3.OpGet(s.Rollouts.SoakKey(q.rollout(), ""), clientv3.WithPrefix()))
	}
	return ops
}

// scopes are the scopes of the node's switches, the nearest first.
func (l *reader) scopes() []state.Scope {
	return []state.Scope{state.HostScope(l.req.node()), state.RoleScope(l.req.Rules.Role), state.GlobalScope()}
}

// readRules takes the answers to rulesOps.
func (l *reader) readRules(r *reading, a *answers) {
	q, v := l.req, &r.view
	if runs := a.kvs(); !q.Apart && !q.Parked {
		r.open, r.moved = arbiter.OpenIn(l.store, runs), append(r.moved, arbiter.NoneSince(l.store, r.revision))
	}
	v.RoleGroup = q.home()
	v.Canaries = q.Rules.Canaries != "" && v.RoleGroup == ""
	v.Totals = claimsOf(l.store, a.kvs(), nil)
	v.MaxHostFaults = q.Rules.hostFailures(l.roster.size)
	v.Total, v.Timed = q.Rules.Total, q.Rules.Deadline > 0
	v.Mixed = l.roster.frozen != nil && len(l.roster.frozen.Roles) > 1
	if v.Total > 0 {
		v.Slots = r.slots
	}
	v.Ticking = len(a.kvs()) > 0
	v.Closed = l.closed()
	v.All = r.gates[state.AllGroups]
	if len(q.Rules.Depends) > 0 {
		closed, soaks := lastParts(l.store, a.kvs()), a.kvs()
		for _, g := range q.Rules.Depends {
			d := Dependency{Group: g, Closed: closed[g], Gate: r.gates[g]}
			for _, kv := range soaks {
				if k, err := l.store.Key(kv); err == nil && k.Group == g {
					until, _ := state.Read[state.Moment](l.store, kv) // for people
					d.Soaking, d.Until = true, until.Time
				}
			}
			v.Depends = append(v.Depends, d)
		}
	}
}

// closed says when the group's maintenance window opens; "" is now.
func (l *reader) closed() string {
	if l.req.Rules.Closed == nil {
		return ""
	}
	return l.req.Rules.Closed(time.Now())
}

// readSwitches finds the switch that stops the node: host over role over global, and these over a doubt and a pause. No
// switch lifts a doubt or a pause.
func (l *reader) readSwitches(r *reading, a *answers) {
	s, pause := l.store, a.kvs()
	r.unmoved(s.Switches.PauseKey(), pause)
	r.stops(s, state.PauseScope, s.Switches.PauseKey(), pause)
	decided := false // by a nearer scope
	for _, c := range l.scopes() {
		kvs := a.kvs()
		r.unmoved(s.Switches.Key(c), kvs)
		if len(kvs) == 0 || decided {
			continue
		}
		decided = true
		w := newSwitched(c.String(), s.Switches.Read(kvs[0]))
		if enabled := w.Enabled && (w.Version == "" || !l.pool.slots || w.Version == l.req.Version.ID); !enabled {
			r.view.Switch, r.switchKey = w, s.Switches.Key(c)
		}
	}
}

// readGates reads the gates. A claim compares the pool's own, and that of all groups. Those of the groups on which it
// depends may be more than a transaction compares: where there are any, no gate of the rollout may be newer.
func (l *reader) readGates(r *reading, kvs []*mvccpb.KeyValue) {
	at := map[string][]*mvccpb.KeyValue{}
	r.gates = map[string]state.Gate{}
	for _, kv := range kvs {
		group, g := l.store.Rollouts.ReadGate(kv)
		r.gates[group], at[group] = g, []*mvccpb.KeyValue{kv}
	}
	counts := []string{l.pool.group}
	if l.pool.slots {
		counts = append(counts, state.AllGroups)
	}
	if l.pool.slots && len(l.req.Rules.Depends) > 0 {
		gates := l.store.Rollouts.GateKey(l.req.rollout(), "")
		r.moved = append(r.moved, clientv3.Compare(clientv3.ModRevision(gates), "<", r.revision+1).WithPrefix())
	}
	for _, group := range slices.Compact(slices.Sorted(slices.Values(counts))) {
		r.unmoved(l.store.Rollouts.GateKey(l.req.rollout(), group), at[group])
	}
	if r.view.Gate, r.gateRev = r.gates[l.pool.group], revisionOf(at[l.pool.group]); r.gateRev == 0 {
		r.view.Gate.State = "open"
	}
}

// needsRoster reports that the node freezes the roster now. Only the first in the queue does, so that nodes that come
// at once do not all make it.
func (l *reader) needsRoster(r *reading) bool {
	_, holds := r.view.own(r.view.Claims)
	return l.pool.slots && l.roster.frozen == nil && (holds || r.view.Ahead == nil)
}
