package lock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pullet/pullet/state"
)

// Turn is a node's turn at a limited number of places: it queues, claims one, and gives it back. It is not safe for
// concurrent use. Each of its parts has one job; they share the request, the ticket, the roster and the claim.
type Turn struct {
	store *state.Store
	req   *Request
	pool  *pool // the places

	ticket    *ticket       // the node's place in the queue
	roster    *groupRoster  // of which the limit may be a share
	claim     *ownClaim     // the claim that the node holds
	gate      *poolGate     // the pool's own gate
	groups    *dependencies // closes groups
	census    *census       // counts nodes that are away
	reader    *reader       // reads what a decision rests on
	admission *admission    // claims a place
	upkeep    *upkeep       // puts in order what keeps the node waiting
	bell      *listener     // waits for a change
	ending    *ending       // records a success
	failing   *failing      // records a failure
	waiting   *waiting      // tells why the node waits
	tried     *reading      // by Try, just now
}

// NewTurn returns a node's turn at the slots of its group. It makes no request.
func NewTurn(store *state.Store, req Request) *Turn {
	return newTurn(store, &req, slotPool(store, &req))
}

func newTurn(store *state.Store, req *Request, p *pool) *Turn {
	// Older nodes have higher keys: who is ahead is the next key in the natural order, which etcd finds at once.
	key := fmt.Sprintf("%s%019d-%s", p.queue, math.MaxInt64-req.order(), req.node())
	t := &Turn{
		store: store, req: req, pool: p,
		ticket:  &ticket{store: store, req: req, key: key},
		roster:  &groupRoster{store: store, req: req},
		claim:   &ownClaim{store: store, req: req, pool: p},
		gate:    &poolGate{store: store, req: req, pool: p},
		groups:  &dependencies{store: store, req: req},
		waiting: &waiting{req: req, pool: p},
	}
	t.census = &census{store: store, req: req, pool: p, roster: t.roster}
	t.reader = &reader{store: store, req: req, pool: p, ticket: t.ticket, roster: t.roster, census: t.census}
	t.admission = &admission{
		store: store, req: req, pool: p,
		ticket: t.ticket, gate: t.gate, claim: t.claim, reader: t.reader, waiting: t.waiting,
	}
	t.upkeep = &upkeep{store: store, req: req, pool: p, ticket: t.ticket, gate: t.gate, groups: t.groups}
	t.ending = &ending{store: store, req: req, pool: p, claim: t.claim, roster: t.roster, groups: t.groups}
	t.failing = &failing{store: store, req: req, pool: p, claim: t.claim, roster: t.roster, gate: t.gate}
	t.bell = &listener{store: store, req: req, ticket: t.ticket, roster: t.roster}
	return t
}

// Holds reports that the node holds its claim, as far as it knows.
func (t *Turn) Holds() bool { return t.claim.held.key != "" }

// Fence is the revision at which the claim was made, 0 without one. It grows with each claim and names the holder for
// good.
func (t *Turn) Fence() int64 { return t.claim.held.fence }

// Check reports whether the node may go on with a step under its claim: nil, ErrFenced, state.ErrLeaseLost,
// ErrSuperseded when the fleet moved on to another version, or why the store could not tell. The step is named for
// those that wait.
func (t *Turn) Check(ctx context.Context, step string) error { return t.claim.check(ctx, step) }

// Slot is the place that the node holds, for its own memory; nil where it holds none.
func (t *Turn) Slot() *state.HeldPlace { return t.claim.place() }

// Release releases the claim and records nothing else. It is no error that the claim was reclaimed.
func (t *Turn) Release(ctx context.Context) error { return t.claim.release(ctx) }

// HasLeftover reports that the record has a slot of the node that it does not know of: a killed run left it behind, or
// a restored record has it, maybe of another group or an older rollout.
func (t *Turn) HasLeftover(ctx context.Context) (bool, error) {
	got, err := t.store.Client.Get(ctx, t.store.Rollouts.SlotPrefix(""), clientv3.WithPrefix())
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(got.Kvs, func(kv *mvccpb.KeyValue) bool {
		return t.store.Rollouts.ReadClaim(kv).Node == t.req.node()
	}), nil
}

// Try claims a place if the node is admitted now. Otherwise it returns why not, and the node keeps its place in the
// queue.
func (t *Turn) Try(ctx context.Context) (*Wait, error) {
	for attempt := 0; ; attempt++ {
		wait, r, err := t.attempt(ctx, nil)
		if err == nil && wait != nil {
			r.wait, r.at, t.tried = wait, time.Now(), r
		}
		if !errors.Is(err, ErrMoved) {
			return t.waiting.notify(wait), t.orLeave(ctx, err)
		}
		if !state.Pause(ctx, jitter(t.req.node(), attempt, 20*time.Millisecond)) {
			return nil, t.orLeave(ctx, ctx.Err())
		}
	}
}

// ErrMoved says that the record changed between a look and a write, in every attempt until time ran out. The caller may
// try again.
var ErrMoved = errors.New("the fleet's record changed during every attempt")

// Acquire waits until the node is admitted, and claims a place. A claim that the node holds already, also of an older
// version, is adopted. When ctx ends first it returns the *Wait that stood in the way, or ctx's error if it was not
// told one; and ErrSuperseded when the version changes. The node then has left the queue.
func (t *Turn) Acquire(ctx context.Context) error {
	return t.orLeave(ctx, t.acquire(ctx))
}

// orLeave leaves the queue after an error. A node that cannot leave it, since etcd does not answer, says so instead of
// the last reason to wait.
func (t *Turn) orLeave(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	after, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	left := t.store.Explain(t.Leave(after))
	wait, waited := errors.AsType[*Wait](err)
	_, away := errors.AsType[*state.UnreachableError](left)
	switch {
	case waited && away && wait.Kind != state.WaitEtcd:
		return t.waiting.notify(etcdAway(left))
	case left != nil && ctx.Err() == nil:
		return errors.Join(err, left)
	}
	return err
}

// attempt looks, decides and claims. No wait and no error: the node holds its place. Where nothing moved since an
// earlier look, it does not matter who comes first. A record that cannot be read, and on which the decision rests, is
// waited for.
func (t *Turn) attempt(ctx context.Context, earlier *reading) (*Wait, *reading, error) {
	wait, r, err := t.tryOnce(ctx, earlier)
	if w := Unreadable(t.pool.name, err); w != nil {
		return w, &reading{fences: map[int]int64{-1: -1}}, nil // it is like no other look
	}
	return wait, r, err
}

func (t *Turn) tryOnce(ctx context.Context, earlier *reading) (*Wait, *reading, error) {
	r, err := t.enter(ctx)
	if err == nil {
		err = t.current(ctx, r)
	}
	if err != nil {
		return nil, r, err
	}
	if r.alive != t.req.Presence.Revision {
		return leaseGone(t.req.node()), r, nil
	}
	if own := r.view.Ahead; own != nil && own.Node == t.req.node() {
		return nil, r, cmp.Or(t.ticket.discard(ctx, r.ahead), ErrMoved)
	}
	if earlier != nil && maps.Equal(earlier.fences, r.fences) {
		r.view.Ahead = nil // whoever is ahead did not move: it is overtaken, and the roster is this node's to freeze
	}
	if err := t.ensureRoster(ctx, r); err != nil {
		return nil, r, err
	}
	d, err := t.decide(ctx, r)
	if err != nil || d.Wait != nil {
		return d.Wait, r, err
	}
	return nil, r, t.admission.commit(ctx, r, d)
}

// current returns ErrSuperseded when the fleet moved on to another version, and ErrMoved when only the record of the
// version changed, such as its release.
func (t *Turn) current(ctx context.Context, r *reading) error {
	if r.current == t.req.VersionRev || !t.pool.follows {
		return nil
	}
	rev, err := superseded(ctx, t.store, t.req)
	if err != nil {
		return err
	}
	t.req.VersionRev = rev
	return ErrMoved
}

// ensureRoster freezes the group's roster and moves the node's claims of other groups here. It returns ErrMoved when
// there was something to do.
func (t *Turn) ensureRoster(ctx context.Context, r *reading) error {
	switch {
	case len(r.others) > 0 && t.roster.frozen != nil: // no claim is made in a group without a roster
		return cmp.Or(t.upkeep.regroup(ctx, r), ErrMoved)
	case len(r.others) > 0 || t.reader.needsRoster(r):
		return cmp.Or(t.freeze(ctx), ErrMoved)
	}
	return nil
}

// freeze makes the roster of the group. The node that does is the first in the queue.
func (t *Turn) freeze(ctx context.Context) error {
	err := t.roster.freeze(ctx, true)
	if err == nil {
		t.ticket.first = true
	}
	return err
}

// decide decides, and puts in order what must be done first: then it returns ErrMoved. A node that waits for a reason
// of its own leaves the queue.
func (t *Turn) decide(ctx context.Context, r *reading) (Decision, error) {
	d := Decide(r.view)
	if d.LeaveQueue != t.ticket.outside {
		if t.ticket.outside = d.LeaveQueue; !d.LeaveQueue { // now it queues
			return Decision{}, ErrMoved
		}
		if err := t.Leave(ctx); err != nil {
			return Decision{}, err
		}
	}
	if d.Wait == nil && t.pool.slots {
		if err := t.census.complete(ctx, r); err != nil {
			return Decision{}, err
		}
		d = Decide(r.view)
	}
	if d.Wait == nil {
		return d, t.reader.checkIncarnation(ctx, r)
	}
	if again, err := t.upkeep.maintain(ctx, r, &d); again || err != nil {
		return Decision{}, cmp.Or(err, ErrMoved)
	}
	return d, nil
}

// leaseGone is the wait of a node whose lease ended.
func leaseGone(node string) *Wait {
	return &Wait{
		Kind:   state.WaitLease,
		Gate:   "lease of " + node,
		Reason: "it ended, or another host took the name",
		Remedy: state.Itself("the next pull registers anew"),
	}
}

// enter looks. The first time it takes a ticket in the same transaction.
func (t *Turn) enter(ctx context.Context) (*reading, error) {
	if t.ticket.queued || t.ticket.outside {
		return t.reader.look(ctx)
	}
	put, err := t.ticket.op(ctx)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	t.ticket.maybeQueued = true // it may be, also where no answer comes
	r, err := t.reader.look(ctx, put)
	if errors.Is(err, rpctypes.ErrLeaseNotFound) && !t.req.Lasting {
		return &reading{current: t.req.VersionRev}, nil // the node does not live: that is what is wrong
	}
	if took := time.Since(began); err == nil &&
		took > slowTicket { // who is ahead, and how many they are, is known when all of a herd have come
		state.Pause(ctx, jitter(t.req.node(), 0, min(6*took, 10*time.Second)))
		return t.reader.look(ctx)
	}
	return r, err
}

// Leave gives up the place in the queue.
func (t *Turn) Leave(ctx context.Context) error { return t.ticket.leave(ctx) }
