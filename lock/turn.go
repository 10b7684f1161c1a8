package lock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pullet/pullet/state"
)

// Turn is a node's turn at a limited number of places: it queues, claims one, and gives it back. It is not safe for concurrent use.
type Turn struct {
	*pool
	store *state.Store
	req   *Request
	size  int // nodes in the roster of which the limit may be a share

	roster  *state.Roster
	ticket  string // the node's place in the queue
	queued  bool
	aside   bool             // it is out of the queue for its own reason
	session clientv3.LeaseID // of the ticket, where the node's own lease outlives the process
	renewed time.Time        // of the session
	said    string
	since   time.Time // when it began to wait

	key   string // of the claim; "" while it holds none
	fence int64
	total string // of the second claim, for the fleet's cap
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

// ticketNode is the node of a ticket's key.
func ticketNode(key string) string {
	_, node, _ := strings.Cut(key[strings.LastIndexByte(key, '/')+1:], "-")
	return node
}

// Holds reports that the node holds its claim, as far as it knows.
func (t *Turn) Holds() bool { return t.key != "" }

// Fence is the revision at which the claim was made, 0 without one. It grows with each claim and names the holder for good.
func (t *Turn) Fence() int64 { return t.fence }

// The times after which a node that waits looks for itself, whatever it was told.
const (
	headPoll  = 30 * time.Second // the first in the queue
	queuePoll = 90 * time.Second // the others
	session   = 60 * time.Second // how long a ticket outlives its process
)

// Try claims a place if the node is admitted now; else it says why not, and the node keeps its place in the queue.
func (t *Turn) Try(ctx context.Context) (*Wait, error) {
	for attempt := 0; ; attempt++ {
		wait, _, err := t.attempt(ctx, false)
		if !errors.Is(err, errMoved) {
			return t.told(wait), err
		}
		if !sleep(ctx, jitter(t.req.node(), attempt, 20*time.Millisecond)) {
			return nil, ctx.Err()
		}
	}
}

// errMoved says that something changed between a look and the claim: look again.
var errMoved = errors.New("something moved in between")

// Acquire waits until the node is admitted, and claims a place. A claim that the node holds already, also of an older version, is adopted.
// When ctx ends first it returns the *Wait that stood in the way, or ctx's error if it was not told one; and ErrSuperseded when the version
// changes. The node then has left the queue.
func (t *Turn) Acquire(ctx context.Context) error {
	err := t.acquire(ctx)
	if err != nil {
		after, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		if left := t.Leave(after); left != nil && ctx.Err() == nil {
			err = errors.Join(err, left)
		}
	}
	return err
}

func (t *Turn) acquire(ctx context.Context) error {
	var last *Wait
	polled := false // then it looks whether there is room whoever comes first: that one may be gone
	for attempt := 0; ; attempt++ {
		wait, r, err := t.attempt(ctx, polled)
		switch {
		case err == nil && wait == nil || errors.Is(err, ErrSuperseded):
			return err
		case ctx.Err() != nil && last != nil:
			return last // it ended while the store was asked: the last answer stands
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, errMoved):
			sleep(ctx, jitter(t.req.node(), attempt, 20*time.Millisecond))
			continue
		case err != nil:
			last = t.told(&Wait{Gate: "etcd", Reason: err.Error(), Clear: "no gated step is started without it"})
			sleep(ctx, jitter(t.req.node(), attempt, min(5*time.Second, 50*time.Millisecond<<min(attempt, 10))))
			continue
		}
		if r.alive != t.req.Presence.Revision { // waiting would not help
			return wait
		}
		if !polled || last == nil {
			last = t.told(wait)
		}
		attempt = 0
		if polled, err = t.await(ctx, r); err != nil {
			return last
		}
	}
}

// await waits for the one key that matters: the ticket ahead, or for the first in the queue the bell. It reports that it polled.
func (t *Turn) await(ctx context.Context, r *reading) (polled bool, err error) {
	key, poll, opts := t.watched(r)
	began := time.Now()
	poll = jitter(t.req.node(), int(r.revision), poll)
	for {
		step := poll - time.Since(began)
		if t.session != 0 {
			step = min(step, session/3)
		}
		if !t.store.Await(ctx, key, r.revision, step, opts...) {
			return false, ctx.Err()
		}
		if over := time.Since(began) >= poll; over || t.session == 0 || time.Since(began) < step {
			return over, nil
		}
		if _, err := t.store.Client.KeepAliveOnce(ctx, t.session); err != nil {
			t.queued, t.session = false, 0 // the ticket is gone with it: queue again
			return false, nil
		}
	}
}

// watched is the key that ends the wait when it changes. What ends by itself does not ring the bell: it goes with its lease.
func (t *Turn) watched(r *reading) (key string, poll time.Duration, opts []clientv3.OpOption) {
	if r.ahead != "" && !t.aside {
		return r.ahead, queuePoll, []clientv3.OpOption{clientv3.WithFilterPut()}
	}
	if w := r.view.Switch; w != nil && !w.Until.IsZero() {
		return r.switchKey, headPoll, nil
	}
	for _, d := range r.view.Depends {
		if d.Soaking {
			return t.store.SoakKey(t.req.rollout(), d.Group), headPoll, nil
		}
	}
	return t.store.BellKey(), headPoll, nil
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

// attempt looks, decides and claims. No wait and no error: the node holds its place.
func (t *Turn) attempt(ctx context.Context, overtake bool) (*Wait, *reading, error) {
	r, err := t.enter(ctx)
	if err != nil {
		return nil, r, err
	}
	if r.current != t.req.VersionRev && t.slots {
		return nil, r, ErrSuperseded
	}
	if r.alive != t.req.Presence.Revision {
		return leaseGone(t.req.node()), r, nil
	}
	if len(r.others) > 0 {
		t.queued = false // look for more
		return nil, r, cmp.Or(t.regroup(ctx, r), errMoved)
	}
	if overtake {
		r.view.Ahead = ""
	}
	d := Decide(r.view)
	if d.Aside != t.aside {
		if t.aside = d.Aside; !d.Aside { // now it queues
			return nil, r, errMoved
		}
		if err := t.Leave(ctx); err != nil {
			return nil, r, err
		}
	}
	if d.Wait == nil && t.slots {
		if _, holds := r.view.own(r.view.Claims); !holds { // only who would be admitted counts the others
			if r.view.Away, err = t.census(ctx, r.view); err != nil {
				return nil, r, err
			}
			d = Decide(r.view)
		}
	}
	if d.Wait != nil {
		if again, err := t.tidy(ctx, r, &d); again || err != nil {
			return nil, r, errors.Join(err, when(again, errMoved))
		}
	}
	if d.Wait != nil {
		return d.Wait, r, nil
	}
	return nil, r, t.claim(ctx, r, d)
}

// leaseGone is the wait of a node that counts as dead.
func leaseGone(node string) *Wait {
	return &Wait{Gate: "lease of " + node, Reason: "it ended, or another host took the name", Clear: "the next pull registers anew"}
}

func when(yes bool, err error) error {
	if yes {
		return err
	}
	return nil
}

// enter looks; the first time it takes a ticket in the same transaction.
func (t *Turn) enter(ctx context.Context) (*reading, error) {
	if t.roster == nil && t.slots {
		if err := t.freeze(ctx); err != nil {
			return nil, err
		}
	}
	if t.queued || t.aside {
		return t.look(ctx)
	}
	lease := t.req.Presence.Lease
	if t.req.Lasting {
		granted, err := t.store.Client.Grant(ctx, int64(session.Seconds()))
		if err != nil {
			return nil, err
		}
		lease, t.session = granted.ID, granted.ID
	}
	r, err := t.look(ctx, clientv3.OpPut(t.ticket, "", clientv3.WithLease(lease)))
	if errors.Is(err, rpctypes.ErrLeaseNotFound) && !t.req.Lasting {
		return &reading{current: t.req.VersionRev}, nil // the node does not live: that is what is wrong
	}
	t.queued = err == nil
	return r, err
}

// freeze reads the roster of the group, or makes it.
func (t *Turn) freeze(ctx context.Context) (err error) {
	t.roster, err = freezeGroup(ctx, t.store, t.req, t.req.Rules.Group)
	if err == nil {
		t.size = t.roster.Size
	}
	return err
}

func freezeGroup(ctx context.Context, s *state.Store, q *Request, group string) (*state.Roster, error) {
	return s.FreezeRoster(ctx, s.RosterKey(q.rollout(), group), q.Inventory, func(node string, m state.Member) (bool, string) {
		return q.Rules.GroupOf(node, m) == group, ""
	})
}

// Leave gives the place in the queue up.
func (t *Turn) Leave(ctx context.Context) error {
	if !t.queued {
		return nil
	}
	t.queued = false
	_, err := t.store.Client.Delete(ctx, t.ticket)
	return err
}

// census counts who of the group's roles was ever seen and does not live now, and names them.
func (t *Turn) census(ctx context.Context, v View) ([]string, error) {
	roles := t.roster.Roles
	if own := state.GroupOf(t.req.Rules.Role); !slices.Contains(roles, own) { // it joined later
		roles = append(slices.Clone(roles), own)
	}
	keys := func(opts ...clientv3.OpOption) (seen, live map[string]bool, n int64, err error) {
		var ops []clientv3.Op
		for _, role := range roles {
			ops = append(ops, clientv3.OpGet(t.store.SeenKey(role, ""), append(opts, clientv3.WithPrefix())...),
				clientv3.OpGet(t.store.LiveKey(role, ""), append(opts, clientv3.WithPrefix())...))
		}
		got, err := t.store.Client.Txn(ctx).Then(ops...).Commit()
		if err != nil {
			return nil, nil, 0, err
		}
		sets := []map[string]bool{{}, {}}
		for i, r := range got.Responses {
			n += r.GetResponseRange().Count * int64(1-2*(i%2))
			for _, kv := range r.GetResponseRange().Kvs {
				sets[i%2][state.LastPart(kv.Key)] = true
			}
		}
		return sets[0], sets[1], n, nil
	}
	_, _, gone, err := keys(clientv3.WithCountOnly())
	if err != nil || gone == 0 {
		return nil, err
	}
	seen, live, _, err := keys(clientv3.WithKeysOnly())
	if err != nil {
		return nil, err
	}
	holds := map[string]bool{v.Node: true}
	for _, c := range v.Claims {
		holds[c.Node] = true
	}
	var away []string
	for node := range seen {
		if !live[node] && !holds[node] {
			away = append(away, node)
		}
	}
	slices.Sort(away)
	return away, nil
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
