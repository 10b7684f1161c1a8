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
// concurrent use.
type Turn struct {
	*pool
	store *state.Store
	req   *Request
	size  int // nodes in the roster of which the limit may be a share

	roster   *state.Roster
	ticket   string           // the node's place in the queue
	ticketed bool             // it may be there
	queued   bool             // it is
	aside    bool             // it is out of the queue for its own reason
	session  clientv3.LeaseID // of the ticket, where the node's own lease outlives the process
	renewed  time.Time        // of the session
	said     string
	tried    *reading        // by Try, just now
	since    time.Time       // when it began to wait
	bell     *state.Listener // while it is the first in the queue
	full     time.Time       // since when it waits there for those who hold places
	head     bool            // it is most likely the first in the queue now

	taken

	seen    *state.Gate // as it was when the claim was made, at revision seenRev
	seenRev int64
}

// taken is the claim that a turn holds. It is taken and given back as a whole.
type taken struct {
	key    string // "" while there is none
	fence  int64
	total  string   // of the second claim, for the fleet's cap
	groups []string // that the node left since it made the claim
	at     string   // the step that it started last under it
}

// NewTurn is a node's turn at the slots of its group. Nothing is asked yet.
func NewTurn(store *state.Store, req Request) *Turn {
	return newTurn(store, &req, slotPool(store, &req))
}

func newTurn(store *state.Store, req *Request, p *pool) *Turn {
	// Older nodes have higher keys: who is ahead is the next key in the natural order, which etcd finds at once.
	ticket := fmt.Sprintf("%s%019d-%s", p.queue, math.MaxInt64-req.order(), req.node())
	return &Turn{pool: p, store: store, req: req, ticket: ticket}
}

// Holds reports that the node holds its claim, as far as it knows.
func (t *Turn) Holds() bool { return t.key != "" }

// Fence is the revision at which the claim was made, 0 without one. It grows with each claim and names the holder for
// good.
func (t *Turn) Fence() int64 { return t.fence }

// Left reports that the node has a slot that it gave back, as far as it knows: a run that was killed left it behind, or
// a restored record has it, then maybe of another group or an older rollout.
func (t *Turn) Left(ctx context.Context) (bool, error) {
	got, err := t.store.Client.Get(ctx, t.store.SlotPrefix(""), clientv3.WithPrefix())
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(got.Kvs, func(kv *mvccpb.KeyValue) bool { return t.store.ReadClaim(kv).Node == t.req.node() }), nil
}

// Try claims a place if the node is admitted now; else it says why not, and the node keeps its place in the queue.
func (t *Turn) Try(ctx context.Context) (*Wait, error) {
	for attempt := 0; ; attempt++ {
		wait, r, err := t.attempt(ctx, nil)
		if err == nil && wait != nil {
			r.wait, r.at, t.tried = wait, time.Now(), r
		}
		if !errors.Is(err, ErrMoved) {
			return t.told(wait), t.orLeave(ctx, err)
		}
		if !sleep(ctx, jitter(t.req.node(), attempt, 20*time.Millisecond)) {
			return nil, t.orLeave(ctx, ctx.Err())
		}
	}
}

// ErrMoved says that something changed between a look and a write, each time until no time was left: it is to be tried
// again.
var ErrMoved = errors.New("the fleet's record moved in between each time")

// Acquire waits until the node is admitted, and claims a place. A claim that the node holds already, also of an older
// version, is adopted. When ctx ends first it returns the *Wait that stood in the way, or ctx's error if it was not
// told one; and ErrSuperseded when the version changes. The node then has left the queue.
func (t *Turn) Acquire(ctx context.Context) error {
	return t.orLeave(ctx, t.acquire(ctx))
}

// orLeave gives the place in the queue up when the node does not go on.
func (t *Turn) orLeave(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	after, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if left := t.Leave(after); left != nil && ctx.Err() == nil {
		err = errors.Join(err, left)
	}
	return err
}

// told tells a new reason to whoever wants to know.
func (t *Turn) told(w *Wait) *Wait {
	if w == nil {
		return nil
	}
	if t.since.IsZero() {
		t.since = time.Now()
	}
	w.Since = t.since
	if t.req.Waiting != nil && w.Error() != t.said {
		t.said = w.Error()
		t.req.Waiting(w)
	}
	return w
}

// attempt looks, decides and claims. No wait and no error: the node holds its place. Where nothing moved since an
// earlier look, it does not matter who comes first. A record that cannot be read, and on which the decision rests, is
// waited for.
func (t *Turn) attempt(ctx context.Context, earlier *reading) (*Wait, *reading, error) {
	wait, r, err := t.tryOnce(ctx, earlier)
	if w := Unreadable(t.name, err); w != nil {
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
	if earlier != nil && maps.Equal(earlier.fences, r.fences) {
		r.view.Ahead = nil // whoever is ahead did not move: it is overtaken, and the roster is this node's to freeze
	}
	if err := t.frozen(ctx, r); err != nil {
		return nil, r, err
	}
	d, err := t.decide(ctx, r)
	if err != nil || d.Wait != nil {
		return d.Wait, r, err
	}
	return nil, r, t.claim(ctx, r, d)
}

// current reports a version that is not the fleet's any more: ErrSuperseded; ErrMoved where only what is said of it is
// new, such as its release.
func (t *Turn) current(ctx context.Context, r *reading) error {
	if r.current == t.req.VersionRev || !t.follows {
		return nil
	}
	rev, err := superseded(ctx, t.store, t.req)
	if err != nil {
		return err
	}
	t.req.VersionRev = rev
	return ErrMoved
}

// frozen sees to it that the group has a roster, and the node no claim in another group: ErrMoved when there was
// something to do.
func (t *Turn) frozen(ctx context.Context, r *reading) error {
	switch {
	case len(r.others) > 0 && t.roster != nil: // no claim is made in a group without a roster
		return cmp.Or(t.regroup(ctx, r), ErrMoved)
	case len(r.others) > 0 || t.rosterless(r):
		return cmp.Or(t.freeze(ctx, true), ErrMoved)
	}
	return nil
}

// decide decides, and does what is to be put in order first: ErrMoved when it did something. Where it keeps the node
// waiting for a reason of its own, the node leaves the queue.
func (t *Turn) decide(ctx context.Context, r *reading) (Decision, error) {
	d := Decide(r.view)
	if d.Aside != t.aside {
		if t.aside = d.Aside; !d.Aside { // now it queues
			return Decision{}, ErrMoved
		}
		if err := t.Leave(ctx); err != nil {
			return Decision{}, err
		}
	}
	if d.Wait == nil && t.slots {
		if err := t.survey(ctx, r); err != nil {
			return Decision{}, err
		}
		d = Decide(r.view)
	}
	if d.Wait == nil {
		return d, t.vouch(ctx, r)
	}
	if again, err := t.maintain(ctx, r, &d); again || err != nil {
		return Decision{}, cmp.Or(err, ErrMoved)
	}
	return d, nil
}

// leaseGone is the wait of a node that counts as dead.
func leaseGone(node string) *Wait {
	return &Wait{
		Kind:   state.WaitLease,
		Gate:   "lease of " + node,
		Reason: "it ended, or another host took the name",
		Remedy: state.Itself("the next pull registers anew"),
	}
}

// enter looks; the first time it takes a ticket in the same transaction.
func (t *Turn) enter(ctx context.Context) (*reading, error) {
	if t.queued || t.aside {
		return t.look(ctx)
	}
	ticket, err := t.ticketOp(ctx)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	t.ticketed = true // it may be, also where no answer comes
	r, err := t.look(ctx, ticket)
	if errors.Is(err, rpctypes.ErrLeaseNotFound) && !t.req.Lasting {
		return &reading{current: t.req.VersionRev}, nil // the node does not live: that is what is wrong
	}
	if took := time.Since(began); err == nil &&
		took > herd { // who is ahead, and how many they are, is known when all of a herd have come
		sleep(ctx, jitter(t.req.node(), 0, min(6*took, 10*time.Second)))
		return t.look(ctx)
	}
	return r, err
}

// ticketOp takes a ticket.
func (t *Turn) ticketOp(ctx context.Context) (clientv3.Op, error) {
	lease := t.req.Presence.Lease
	if t.req.Lasting {
		granted, err := t.store.Client.Grant(ctx, int64(session.Seconds()))
		if err != nil {
			return clientv3.Op{}, err
		}
		lease, t.session, t.renewed = granted.ID, granted.ID, time.Now()
	}
	return clientv3.OpPut(t.ticket, "", clientv3.WithLease(lease)), nil
}

// Leave gives the place in the queue up.
func (t *Turn) Leave(ctx context.Context) error {
	if !t.ticketed {
		return nil
	}
	t.queued, t.ticketed = false, false
	_, err := t.store.Client.Delete(ctx, t.ticket)
	return err
}

// sleep waits unless ctx ends first.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
