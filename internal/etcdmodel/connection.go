package etcdmodel

import (
	"context"
	"math/rand/v2"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Conn is the connection of one process to a Cluster.
type Conn struct {
	cluster  *Cluster
	name     string
	api      *clientv3.Client
	rng      *rand.Rand
	faults   Faults
	instants instants
	dead     chan struct{} // closed when the process is
	healed   chan struct{} // closed when what is cut is whole again; nil: it is whole
	adrift   []adrift
}

// adrift is a request in a cut line whose sender has given up on it. It may still arrive.
type adrift struct {
	since time.Time
	do    func()
}

// How long things take. Limits are not a multiple of the whole seconds that callers give: which of two that end at one
// instant is seen first would depend on the machine.
const (
	latencyLeast    = 300 * time.Microsecond
	latencyMost     = 12 * time.Millisecond
	operationLimit  = 10*time.Second + 11*time.Microsecond // as the product has it for a read or a write
	streamLimit     = 15*time.Second + 37*time.Microsecond // until the client notices that nothing comes any more
	serverLimit     = 7 * time.Second                      // until etcd says "request timed out"
	retransmitLimit = time.Minute
)

// Name returns the name that the process connected with.
func (n *Conn) Name() string { return n.name }

// Client returns the etcd client of the process. Closing it ends the connection.
func (n *Conn) Client() *clientv3.Client { return n.api }

// KV returns the key-value service of the server at the other end of the connection. A test that has to see requests
// and answers wraps it and sets the client's KV to the result.
func (n *Conn) KV() pb.KVClient { return &kvClient{n: n} }

// Inflict sets the faults of this connection, in addition to the cluster's. Inflict(Faults{}) heals the connection.
func (n *Conn) Inflict(f Faults) {
	n.cluster.mu.Lock()
	defer n.cluster.mu.Unlock()
	n.faults = f
	n.link()
}

// Kill ends the process as kill -9 does: no call has any effect or succeeds any more; they return context.Canceled at
// once, and watches are closed. What was on its way may or may not arrive. Right behind it, at the same instant, end
// the context of the process's code: code that tries again while its context lives would do so for ever, and no time
// would pass. The other order is not exact: what the code does between the two would depend on the machine.
func (n *Conn) Kill() {
	n.cluster.mu.Lock()
	defer n.cluster.mu.Unlock()
	n.end()
}

func (n *Conn) end() {
	n.adrift = nil
	if !n.isDead() {
		close(n.dead)
	}
}

func (n *Conn) isDead() bool {
	select {
	case <-n.dead:
		return true
	default:
		return false
	}
}

// link cuts or heals the line after faults were set.
func (n *Conn) link() {
	cut := n.wrong().Cut
	switch {
	case cut && n.healed == nil:
		n.healed = make(chan struct{})
	case !cut && n.healed != nil:
		close(n.healed)
		n.healed = nil
		for _, a := range n.adrift {
			if time.Since(a.since) < retransmitLimit {
				n.later(n.latency(), a.do)
			}
		}
		n.adrift = nil
	}
}

// wrong are the faults that the connection has.
func (n *Conn) wrong() Faults { return n.faults.and(n.cluster.faults) }

func (n *Conn) chance(p float64) bool { return n.rng.Float64() < p }

// latency is how long one way takes: mostly little, sometimes much.
func (n *Conn) latency() time.Duration {
	d := latencyLeast + time.Duration(n.rng.Int64N(int64(latencyMost)))
	if n.chance(0.02) {
		d *= 20
	}
	return time.Duration(float64(d) * max(n.wrong().Slow, 1))
}

// later does something after a while, with the cluster locked.
func (n *Conn) later(after time.Duration, do func()) {
	time.AfterFunc(time.Until(n.instants.at(after)), func() {
		n.cluster.mu.Lock()
		defer n.cluster.mu.Unlock()
		if !n.cluster.closed && n.healed == nil {
			n.cluster.by = n.name
			do()
		}
	})
}

// luck is what will become of a call. It is drawn when the call begins, so that it does not depend on what happens
// meanwhile.
type luck struct {
	limit                              time.Time // zero: none
	there, back, afterThere, afterBack time.Duration
	lostRequest, lostAnswer, busy      bool
	arrives                            bool // although its sender has given up
	coin                               bool
}

func (n *Conn) luck(limit time.Duration) *luck {
	f := n.wrong()
	l := &luck{
		there: n.latency(), back: n.latency(), afterThere: n.latency(), afterBack: n.latency(),
		lostRequest: n.chance(f.LostRequest), lostAnswer: n.chance(f.LostAnswer), busy: n.chance(f.Busy),
		arrives: n.chance(0.5),
		coin:    n.chance(0.5) && limit != streamLimit, // a stream breaks, and that is seen at once
	}
	if limit > 0 {
		l.limit = time.Now().Add(limit)
	}
	return l
}

// late is the error of a call that takes too long.
func (l *luck) late() error {
	if l.coin {
		return status.Error(codes.DeadlineExceeded, "context deadline exceeded")
	}
	return status.Error(codes.Unavailable, "error reading from server: connection timed out")
}

// lost is the error of a call whose request or answer was lost, and how long it takes until the caller has it.
func (l *luck) lost() (time.Duration, error) {
	if l.coin {
		return serverLimit, rpctypes.ErrGRPCTimeout
	}
	return l.back, status.Error(codes.Unavailable, "error reading from server: EOF")
}

// call sends a request, does it, and brings the answer. What it does runs with the cluster locked.
func call[T any](ctx context.Context, n *Conn, limit time.Duration, write bool, do func() (T, error)) (T, error) {
	var none, out T
	c := n.cluster
	c.mu.Lock()
	if n.isDead() || ctx.Err() != nil {
		c.mu.Unlock()
		return none, n.gone(ctx)
	}
	l := n.luck(limit)
	c.mu.Unlock()
	stray := func() {
		_, _ = do() // nobody waits for the answer
		c.notify(c.commit())
	}
	if err := n.travel(ctx, l, l.there, l.afterThere, stray); err != nil {
		return none, err
	}
	var err error
	c.by = n.name
	back := l.back
	switch {
	case l.lostRequest:
		back, err = l.lost()
	case write && l.busy:
		err = rpctypes.ErrGRPCRequestTooManyRequests
	default:
		out, err = do()
		c.notify(c.commit())
	}
	c.mu.Unlock()
	if l.lostAnswer && !l.lostRequest {
		back, err = l.lost()
	}
	if err := n.travel(ctx, l, back, l.afterBack, nil); err != nil {
		return none, err
	}
	c.mu.Unlock()
	if err != nil {
		return none, err
	}
	return out, nil
}

// gone is the error of a call of which the process or the caller is gone.
func (n *Conn) gone(ctx context.Context) error {
	if n.isDead() {
		return context.Canceled
	}
	return status.FromContextError(ctx.Err()).Err()
}

// travel takes a request or an answer to the other end, and locks the cluster there. In a cut line it waits until that
// is healed. When the sender gives up on a request, it may arrive nevertheless: then stray is done.
func (n *Conn) travel(ctx context.Context, l *luck, way, again time.Duration, stray func()) error {
	for {
		n.cluster.mu.Lock()
		arrival := n.instants.at(way)
		n.cluster.mu.Unlock()
		if err := n.wait(ctx, l, arrival, nil); err != nil {
			if stray != nil && l.arrives && !l.lostRequest {
				n.cluster.mu.Lock()
				n.later(time.Until(arrival), stray)
				n.cluster.mu.Unlock()
			}
			return err
		}
		n.cluster.mu.Lock()
		healed := n.healed
		switch {
		case n.isDead():
			n.cluster.mu.Unlock()
			return context.Canceled
		case healed == nil:
			return nil
		}
		n.cluster.mu.Unlock()
		if err := n.wait(ctx, l, time.Time{}, healed); err != nil {
			n.cluster.mu.Lock()
			if stray != nil && l.arrives && !l.lostRequest && !n.isDead() {
				n.adrift = append(n.adrift, adrift{time.Now(), stray})
			}
			n.cluster.mu.Unlock()
			return err
		}
		way = again
	}
}

// wait returns nil at an instant, or when a channel is closed; or why the caller does not wait that long.
func (n *Conn) wait(ctx context.Context, l *luck, until time.Time, event <-chan struct{}) error {
	var late <-chan time.Time
	ends, bounded := ctx.Deadline()
	// Also where both end at the same instant: else chance would choose between them.
	callersFirst := bounded && !ends.After(l.limit)
	if !l.limit.IsZero() && !callersFirst && (until.IsZero() || until.After(l.limit)) {
		timer := time.NewTimer(time.Until(l.limit))
		defer timer.Stop()
		late = timer.C
	}
	var there <-chan time.Time
	if !until.IsZero() {
		timer := time.NewTimer(time.Until(until))
		defer timer.Stop()
		there = timer.C
	}
	select {
	case <-there:
		return nil
	case <-event:
		return nil
	case <-late:
		return l.late()
	case <-ctx.Done():
		return n.gone(ctx)
	case <-n.dead:
		return context.Canceled
	}
}
