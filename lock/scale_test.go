package lock

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"

	"github.com/pullet/pullet/state"
)

// counter counts what clients ask of etcd: every attempt, by its kind.
type counter struct {
	mu    sync.Mutex
	kinds map[string]int
	lives map[int64]bool // the leases that say which nodes live
}

// living says that a lease is one of a node that lives.
func (c *counter) living(lease int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lives[lease] = true
}

func (c *counter) renewed(lease int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lives[lease] {
		c.kinds[renewal]++
	} else {
		c.kinds[deadline]++
	}
}

func (c *counter) add(kind string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.kinds[kind]++
}

// take are the counts since the last time.
func (c *counter) take() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := c.kinds
	c.kinds = map[string]int{}
	return out
}

const (
	renewal  = "renewal"  // what a living node sends whether it waits or not
	deadline = "deadline" // puts the progress deadline off
)

func requests(kinds map[string]int) (n int) {
	for kind, count := range kinds {
		if kind != renewal {
			n += count
		}
	}
	return n
}

func (c *counter) unary(ctx context.Context, method string, req, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	kind := method[strings.LastIndexByte(method, '/')+1:]
	if txn, ok := req.(*pb.TxnRequest); ok {
		kind = "txn " + firstWrite(txn)
	}
	c.add(kind)
	return invoke(ctx, method, req, reply, conn, opts...)
}

// firstWrite names a transaction: "read", or after the first key that it writes.
func firstWrite(txn *pb.TxnRequest) string {
	for _, op := range txn.Success {
		if put := op.GetRequestPut(); put != nil {
			parts := strings.Split(string(put.Key), "/")
			switch parts[3] {
			case "rollout":
				return "rollout/" + parts[5]
			case "run":
				return "run/" + parts[min(6, len(parts)-1)]
			}
			return parts[3]
		}
	}
	return "read"
}

func (c *counter) stream(ctx context.Context, desc *grpc.StreamDesc, conn *grpc.ClientConn, method string, streamer grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	s, err := streamer(ctx, desc, conn, method, opts...)
	return &countedStream{s, c}, err
}

type countedStream struct {
	grpc.ClientStream
	*counter
}

func (s *countedStream) SendMsg(m any) error {
	switch m := m.(type) {
	case *pb.WatchRequest:
		if m.GetCreateRequest() != nil {
			s.add("watch")
		}
	case *pb.LeaseKeepAliveRequest:
		s.renewed(m.ID)
	}
	return s.ClientStream.SendMsg(m)
}

// crowd is a fleet of many nodes with some connections to one etcd.
type crowd struct {
	testing.TB
	ctx     context.Context
	counter *counter
	clients []*clientv3.Client
	name    string
	fleet   *state.Store // whose requests are not counted
	nodes   []*agent
}

// agent is one node of a crowd.
type agent struct {
	store *state.Store
	req   Request
}

// newCrowd registers n nodes of one role, which may change so many at a time.
func newCrowd(t testing.TB, endpoints []string, n, places int) *crowd {
	t.Helper()
	began := time.Now()
	clock := func() time.Duration { return time.Since(began) }
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	c := &crowd{TB: t, ctx: ctx, counter: &counter{kinds: map[string]int{}, lives: map[int64]bool{}}, name: fmt.Sprint("crowd", fleets.Add(1))}
	c.fleet = state.Over(c.client(endpoints), c.name, clock)
	for range max(1, n/100) {
		c.clients = append(c.clients, c.client(endpoints, grpc.WithChainUnaryInterceptor(state.Bounded, c.counter.unary), grpc.WithChainStreamInterceptor(c.counter.stream)))
	}
	c.must(begin(ctx, c.fleet))
	_, err := c.fleet.Versions.Propose(ctx, state.Version{ID: "v1"}, nil, 0)
	c.must(err)
	version, rev, err := c.fleet.Versions.Current(ctx)
	c.must(err)
	c.nodes = make([]*agent, n)
	next := atomic.Int64{}
	c.each(min(n, 100), func(int) error {
		for i := next.Add(1) - 1; i < int64(n); i = next.Add(1) - 1 {
			s, node := state.Over(c.clients[i%int64(len(c.clients))], c.name, clock), fmt.Sprintf("web%05d", i)
			p, err := s.Presences.Register(ctx, state.Node{Name: node, Role: "web"}, state.Alive{Owner: node}, nil, 90*time.Second)
			if err != nil {
				return err
			}
			c.counter.living(int64(p.Lease))
			s.Presences.KeepAlive(ctx, p, func() bool { return true }, func(bool) {})
			c.nodes[i] = &agent{s, Request{Presence: p, Version: version, VersionRev: rev, Rules: Rules{
				Group: "web", Role: "web", Limit: limit(places), GroupOf: func(string, state.Member) string { return "web" }, Deadline: 30 * time.Minute,
			}}}
		}
		return nil
	})
	return c
}

func (c *crowd) client(endpoints []string, opts ...grpc.DialOption) *clientv3.Client {
	c.Helper()
	out, err := clientv3.New(clientv3.Config{Endpoints: endpoints, DialTimeout: 5 * time.Second, MaxUnaryRetries: 2, Logger: zap.NewNop(), DialOptions: opts})
	c.must(err)
	c.Cleanup(func() { _ = out.Close() })
	return out
}

func (c *crowd) must(err error) {
	c.Helper()
	if err != nil {
		c.Fatal(err)
	}
}

// each does something n times at once.
func (c *crowd) each(n int, do func(i int) error) {
	c.Helper()
	var wait sync.WaitGroup
	var bad atomic.Pointer[error]
	for i := range n {
		wait.Go(func() {
			if err := do(i); err != nil {
				bad.Store(&err)
			}
		})
	}
	wait.Wait()
	if err := bad.Load(); err != nil {
		c.Fatal(*err)
	}
}

// peak follows the claims of a group as etcd's history has them, until it is asked for the most at a time and how many
// were made.
func (c *crowd) peak(prefix string) func() (most, made int) {
	type count struct{ most, made int }
	end := strings.TrimSuffix(prefix, "/") + "-end" // no claim
	watch := c.fleet.Client.Watch(c.ctx, strings.TrimSuffix(prefix, "/"), clientv3.WithPrefix())
	result := make(chan count, 1)
	go func() {
		var n count
		held := map[string]bool{}
		for answer := range watch {
			for _, e := range answer.Events {
				switch key := string(e.Kv.Key); {
				case key == end:
					result <- n
					return
				case e.IsCreate():
					n.made++
					held[key] = true
				case e.Type == clientv3.EventTypeDelete:
					delete(held, key)
				}
			}
			n.most = max(n.most, len(held))
		}
		result <- n
	}()
	return func() (int, int) {
		_, err := c.fleet.Client.Put(c.ctx, end, "")
		c.must(err)
		n := <-result
		return n.most, n.made
	}
}

// rollout takes all nodes through: each asks as an agent does, waits, takes one step of the time hold, and is done.
func (c *crowd) rollout(hold time.Duration) {
	c.Helper()
	c.each(len(c.nodes), func(i int) error {
		a := c.nodes[i]
		turn := NewTurn(a.store, a.req)
		wait, err := turn.Try(c.ctx)
		for state.Unanswered(err) && state.Pause(c.ctx, time.Second) { // the next pull asks again
			wait, err = turn.Try(c.ctx)
		}
		if err == nil && wait != nil {
			err = turn.Acquire(c.ctx)
		}
		if err == nil {
			err = turn.Check(c.ctx, "web/step")
		}
		if err != nil {
			return err
		}
		time.Sleep(hold) // the step
		return turn.Succeed(c.ctx)
	})
}

// barrier brings all nodes to a barrier, and each waits until it is open.
func (c *crowd) barrier() {
	c.Helper()
	step := Step{ID: "web/join", Members: func(string, state.Member) (bool, string) { return true, "" }}
	opened := atomic.Int64{}
	c.each(len(c.nodes), func(i int) error {
		steps := NewSteps(c.nodes[i].store, c.nodes[i].req)
		open, err := steps.Arrive(c.ctx, step, Done)
		if open {
			opened.Add(1)
		}
		if err == nil && !open {
			err = steps.AwaitOpen(c.ctx, step, func(*Wait) {})
		}
		return err
	})
	if opened.Load() != 1 {
		c.Errorf("%d arrivals saw it open, and one was the last", opened.Load())
	}
}

// TestRolloutBudget: what a rollout asks of etcd does not grow with the fleet: at most ten requests and watches a node,
// whatever it waits for.
func TestRolloutBudget(t *testing.T) {
	const nodes, places = 300, 20
	c := newCrowd(t, member.Client.Endpoints(), nodes, places)
	peak := c.peak(c.fleet.Rollouts.SlotPrefix("web"))
	c.counter.take()
	c.rollout(20 * time.Millisecond)
	kinds := c.counter.take()
	if most, made := peak(); most > places || made != nodes {
		t.Errorf("at most %d at a time, %d claims", most, made)
	}
	if n := requests(kinds); n > 10*nodes {
		t.Errorf("%.1f requests a node: %v", float64(n)/nodes, kinds)
	}
	if kinds[deadline] != nodes { // each that finished put it off
		t.Errorf("%d times the progress deadline was put off: %v", kinds[deadline], kinds)
	}
}

// TestBarrierBudget: a barrier of many is one transaction for each, whoever is the last.
func TestBarrierBudget(t *testing.T) {
	const nodes = 300
	c := newCrowd(t, member.Client.Endpoints(), nodes, 1)
	c.counter.take()
	c.barrier()
	kinds := c.counter.take()
	if n := kinds["txn run/in"]; n != nodes {
		t.Errorf("%d transactions to arrive: %v", n, kinds)
	}
	if n := kinds["txn run/roster"]; n != 1 {
		t.Errorf("%d nodes made the roster: %v", n, kinds)
	}
	if n := requests(kinds); n > 10*nodes {
		t.Errorf("%.1f requests a node: %v", float64(n)/nodes, kinds)
	}
}
