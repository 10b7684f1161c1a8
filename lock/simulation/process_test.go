package simulation

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"

	"fmt"

	"github.com/pullet/pullet/internal/etcdmodel"
	"github.com/pullet/pullet/lock"
	"github.com/pullet/pullet/state"
)

// errKilled ends what a process does that is no more.
var errKilled = errors.New("killed")

// host is a node, and whoever starts its process again.
type host struct {
	fleet    *fleet
	name     string
	role     string
	class    int
	loop     bool // it runs the agent; else it pulls now and then
	interval time.Duration
	wait     time.Duration
	rng      *rand.Rand
	luck     *rand.Rand // which commands outlive pullet

	mu      sync.Mutex // guards what follows
	chance  *rand.Rand // of what its agent leaves to chance, and of its commands
	state   string     // its state directory: each process has its own, a copy of the one before as that was killed
	proc    *process   // nil: none runs
	gone    bool       // it never comes back
	arm     int        // calls until the next process is killed; 0 is never
	machine machine
	command *going        // that runs, maybe without pullet
	wrecks  []func(*host) // what happens to the disk before the next process
	backup  backup
	fitness []fit // when it was well, and when not
}

func newHost(f *fleet, name, role string, class int) *host {
	h := &host{fleet: f, name: name, role: role, class: class, rng: rand.New(rand.NewPCG(f.seed, uint64(100+class)))}
	h.loop = h.rng.IntN(3) > 0
	h.interval = time.Duration(1+h.rng.IntN(5)) * time.Minute
	h.wait = min(10*time.Minute, max(h.interval, time.Minute))
	h.luck = rand.New(rand.NewPCG(f.seed, uint64(600+class)))
	if h.luck.IntN(5) == 0 { // less than holders are given before they are asked how they are
		h.wait = lock.Patience - 5*time.Second
	}
	h.machine = machine{id: name, dir: uint64(1 + class), booted: f.began}
	h.chance = rand.New(rand.NewPCG(f.seed, uint64(700+class)))
	h.state = f.directory(fmt.Sprint(name, ".", class))
	return h
}

// process is one life of a host's pullet.
type process struct {
	*host
	ctx context.Context
	end context.CancelFunc

	since time.Time // when the last pull ended

	lines  []*etcdmodel.Conn // with mu of the host, as the following
	cut    bool              // from etcd
	killed bool
	paused chan struct{} // closed when it goes on; nil: it runs
	left   int           // arrows until it is killed; 0 is never
}

// run keeps the host's process alive until the fleet is over.
func (h *host) run(ctx context.Context) {
	h.nap(ctx, h.upTo(30*time.Second))
	for ctx.Err() == nil && !h.left() {
		p := h.boot(ctx)
		p.work()
		p.end()
		h.mu.Lock()
		h.proc = nil
		gone := h.gone
		h.wrecked()
		h.mu.Unlock()
		if gone {
			return
		}
		rest := h.upTo(20 * time.Second)
		if h.rng.IntN(3) == 0 && !h.fleet.isCalm() {
			rest = h.upTo(15 * time.Minute)
		}
		h.nap(ctx, rest)
	}
}

// left reports a host that does not come back.
func (h *host) left() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.gone && h.arm == 0
}

// upTo is a time of whole microseconds.
func (h *host) upTo(d time.Duration) time.Duration {
	return time.Duration(1+h.rng.Int64N(int64(d/time.Microsecond))) * time.Microsecond
}

// nap sleeps for a while, and to a nanosecond that is this host's alone.
func (h *host) nap(ctx context.Context, d time.Duration) {
	until := time.Now().Add(d).Truncate(time.Microsecond).Add(time.Microsecond + time.Duration(900+h.class))
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// boot starts the host's process.
func (h *host) boot(ctx context.Context) *process {
	p := &process{host: h}
	p.ctx, p.end = context.WithCancel(ctx)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.wrecked()
	h.proc, p.left, h.arm = p, h.arm, 0
	h.feels(true)
	return p
}

// kill is kill -9. What the process did not write is not written any more.
func (h *host) kill() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.proc != nil {
		h.proc.die()
	}
}

func (p *process) die() {
	if p.killed {
		return
	}
	p.killed = true
	p.feels(false)
	p.orphans()
	if p.paused != nil {
		close(p.paused)
		p.paused = nil
	}
	for _, n := range p.lines {
		n.Kill()
	}
	p.end()
	p.state = p.fleet.copied(p.state) // what is written there from now on was not
}

// pause is kill -STOP, and resume kill -CONT.
func (h *host) pause() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.proc != nil && h.proc.paused == nil && !h.proc.killed {
		h.proc.paused = make(chan struct{})
		h.feels(false)
	}
}

func (h *host) resume() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.proc != nil && h.proc.paused != nil {
		close(h.proc.paused)
		h.proc.paused = nil
		h.feels(true)
	}
}

// arrow is a point where a process may be killed or stands still.
func (p *process) arrow() error {
	p.mu.Lock()
	if p.left > 0 {
		if p.left--; p.left == 0 {
			p.die()
		}
	}
	p.copies()
	killed, paused := p.killed, p.paused
	p.mu.Unlock()
	if killed {
		return errKilled
	}
	if paused != nil {
		<-paused
		return p.arrow()
	}
	return nil
}

// sleep does something that takes a while.
func (p *process) sleep(ctx context.Context, d time.Duration) error {
	p.nap(ctx, d)
	if err := p.arrow(); err != nil {
		return err
	}
	return ctx.Err()
}

// around lets a call begin and end at arrows.
func around[T any](ctx context.Context, p *process, do func() (T, error)) (T, error) {
	var none T
	if p.arrow() != nil {
		return none, context.Canceled
	}
	out, err := do()
	if p.arrow() != nil {
		return none, context.Canceled
	}
	return out, err
}

// arrows is the server with an arrow at both ends of each call.
type arrows struct {
	pb.KVClient
	p     *process
	store *state.Store
}

func (a *arrows) Range(ctx context.Context, r *pb.RangeRequest, _ ...grpc.CallOption) (*pb.RangeResponse, error) {
	return asked(ctx, a, r, a.KVClient.Range)
}

func (a *arrows) Put(ctx context.Context, r *pb.PutRequest, _ ...grpc.CallOption) (*pb.PutResponse, error) {
	return asked(ctx, a, r, a.KVClient.Put)
}

func (a *arrows) DeleteRange(ctx context.Context, r *pb.DeleteRangeRequest, _ ...grpc.CallOption) (*pb.DeleteRangeResponse, error) {
	return asked(ctx, a, r, a.KVClient.DeleteRange)
}

func (a *arrows) Txn(ctx context.Context, r *pb.TxnRequest, _ ...grpc.CallOption) (*pb.TxnResponse, error) {
	answer, err := asked(ctx, a, r, a.KVClient.Txn)
	if err == nil {
		a.p.learns(r, answer)
	}
	return answer, err
}

// asked is a call as the product's client makes it: an answer that is older than what the process saw before is an
// error.
func asked[Q, A any](ctx context.Context, a *arrows, request Q, call func(context.Context, Q, ...grpc.CallOption) (*A, error)) (*A, error) {
	return around(ctx, a.p, func() (*A, error) {
		answer := new(A)
		invoke := func(ctx context.Context, _ string, _, _ any, _ *grpc.ClientConn, _ ...grpc.CallOption) error {
			got, err := call(ctx, request)
			if err == nil {
				*answer = *got
			}
			return err
		}
		err := a.store.Monotonic()(ctx, "/etcdserverpb.KV/", request, answer, nil, invoke)
		if err != nil {
			return nil, err
		}
		return answer, nil
	})
}

// leaseArrows is the same for leases.
type leaseArrows struct {
	clientv3.Lease
	p *process
}

func (a *leaseArrows) Grant(ctx context.Context, ttl int64) (*clientv3.LeaseGrantResponse, error) {
	return around(ctx, a.p, func() (*clientv3.LeaseGrantResponse, error) { return a.Lease.Grant(ctx, ttl) })
}

func (a *leaseArrows) KeepAliveOnce(ctx context.Context, id clientv3.LeaseID) (*clientv3.LeaseKeepAliveResponse, error) {
	return around(ctx, a.p, func() (*clientv3.LeaseKeepAliveResponse, error) { return a.Lease.KeepAliveOnce(ctx, id) })
}
