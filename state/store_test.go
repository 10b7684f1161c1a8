package state

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pullet/pullet/internal/patience"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

var ctx = context.Background()

// atOnce calls f n times at the same moment.
func atOnce(t *testing.T, n int, f func(i int) error) {
	t.Helper()
	var wait sync.WaitGroup
	start, errs := make(chan struct{}), make(chan error, n)
	for i := range n {
		wait.Go(func() {
			<-start
			errs <- f(i)
		})
	}
	close(start)
	wait.Wait()
	for range n {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
}

// history is every write to a key, by its revision.
func history(t *testing.T, s *Store, key string) []*clientv3.Event {
	t.Helper()
	done, err := s.Client.Put(ctx, s.key("marker"), "") // ends the reading
	if err != nil {
		t.Fatal(err)
	}
	watching, cancel := context.WithTimeout(ctx, patience.Stretch(10*time.Second))
	defer cancel()
	var out []*clientv3.Event
	for answer := range s.Client.Watch(watching, s.prefix, clientv3.WithPrefix(), clientv3.WithRev(1)) {
		if err := answer.Err(); err != nil {
			t.Fatal(err)
		}
		for _, e := range answer.Events {
			if e.Kv.ModRevision >= done.Header.Revision {
				return out
			}
			if strings.HasPrefix(string(e.Kv.Key), key) {
				out = append(out, e)
			}
		}
	}
	t.Fatal("the history could not be read")
	return nil
}

// TestCurrent: a new fleet has no version.
func TestCurrent(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir())
	if v, rev, err := s.Versions.Current(ctx); v != nil || rev != 0 || err != nil {
		t.Errorf("%v %d %v", v, rev, err)
	}
}

// TestStatus: at every revision a node is in at most one state of each category, and in exactly one when all is done.
func TestStatus(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir())
	atOnce(t, 8, func(i int) error {
		var errs []error
		for j := range 12 {
			category := Categories()[(i+j)%4]
			errs = append(errs, s.Statuses.Set(ctx, "n1", category, states[(i*7+j)%4], Status{Version: "v", Time: time.Now()}))
		}
		return errors.Join(errs...)
	})
	in := map[string]map[string]bool{}
	rev := int64(0)
	check := func() {
		for category, states := range in {
			if len(states) != 1 {
				t.Errorf("revision %d: %s is in %v", rev, category, states)
			}
		}
	}
	for _, e := range history(t, s, s.key("status")) {
		if e.Kv.ModRevision != rev {
			check()
			rev = e.Kv.ModRevision
		}
		parts := strings.Split(string(e.Kv.Key), "/")
		category, state := parts[len(parts)-3], parts[len(parts)-2]
		if in[category] == nil {
			in[category] = map[string]bool{}
		}
		if e.Type == clientv3.EventTypeDelete {
			delete(in[category], state)
		} else {
			in[category][state] = true
		}
	}
	check()
	if len(in) != 4 {
		t.Errorf("categories: %v", in)
	}
}

// TestOverview: it shows one revision: the leaf below running_version and the node's record never contradict each
// other.
func TestOverview(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir())
	p := register(t, s, "n1", "web", "x", time.Minute)
	must(t, func() error { _, err := s.Versions.Propose(ctx, Version{ID: "v"}, nil, 0); return err }())
	done := make(chan error, 1)
	go func() {
		var err error
		for i := range 100 {
			to := fmt.Sprint("v", i)
			ops := append(s.Statuses.RunningOps(p, to), s.Statuses.Ops("n1", Rollout, states[i%4], Status{Version: to})...)
			_, bad := s.Client.Txn(ctx).Then(append(ops, s.Rollouts.GateOp("v", "web", Gate{State: Halted, Reason: to}))...).Commit()
			p.Node.Running = to
			err = errors.Join(err, bad)
		}
		done <- err
	}()
	for reads := 0; ; reads++ {
		o, err := s.Views.Fleet(ctx, false)
		must(t, err)
		line := o.Statuses["n1"][Rollout]
		if o.Running["n1"] != o.Nodes["n1"].Running || line.Version != o.Running["n1"] || o.Gates["web"].Reason != line.Version || o.Current.ID != "v" {
			t.Fatalf("revision %d: leaf %q, node %q, status %q, gate %q", o.Revision, o.Running["n1"], o.Nodes["n1"].Running, line.Version, o.Gates["web"].Reason)
		}
		select {
		case err := <-done:
			if must(t, err); reads < 3 {
				t.Errorf("only %d reads", reads)
			}
			return
		default:
		}
	}
}

// TestUnreachable: the error names the endpoints and what to try.
func TestUnreachable(t *testing.T) {
	short, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
	defer cancel()
	_, err := Open(short, Config{Fleet: "f", Endpoints: []string{"http://127.0.0.1:1"}})
	var away *UnreachableError
	if !errors.As(err, &away) || !strings.Contains(err.Error(), "etcdctl --endpoints http://127.0.0.1:1 endpoint health") {
		t.Errorf("%v", err)
	}
}

// TestTooManyRequests: what etcd did not begin with is tried again; any other answer is one.
func TestTooManyRequests(t *testing.T) {
	conn := open(t, t.TempDir()).Client.ActiveConnection()
	for _, c := range []struct {
		answers []error
		tries   int
		want    error
	}{
		{[]error{rpctypes.ErrGRPCRequestTooManyRequests, rpctypes.ErrGRPCRequestTooManyRequests, nil}, 3, nil},
		{[]error{rpctypes.ErrGRPCRequestTooManyRequests, rpctypes.ErrGRPCNoSpace}, 2, rpctypes.ErrGRPCNoSpace},
		{[]error{rpctypes.ErrGRPCTimeout}, 1, rpctypes.ErrGRPCTimeout},
	} {
		tries := 0
		err := Bounded(ctx, "Txn", nil, nil, conn, func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error {
			tries++
			return c.answers[tries-1]
		})
		if tries != c.tries || !errors.Is(err, c.want) {
			t.Errorf("%v: %d tries, %v", c.answers, tries, err)
		}
	}
}

// TestExplainIsPlain: why etcd does not answer is said in words that people read, and the same each time; what else is
// said stays.
func TestExplainIsPlain(t *testing.T) {
	s := &Store{endpoints: []string{"http://etcd1:2379"}}
	for _, c := range []struct {
		code       codes.Code
		text, want string
	}{
		{codes.DeadlineExceeded, `latest balancer error: connection error: desc = "transport: Error while dialing: dial unix /x/client.sock:0: connect: connection refused"`, "connection refused"},
		{codes.Unavailable, `connection error: desc = "transport: Error while dialing: dial tcp: lookup etcd1: no such host"`, "dial tcp: lookup etcd1: no such host"},
		{codes.Unavailable, `connection error: desc = "transport: authentication handshake failed: EOF"`, "authentication handshake failed: EOF"},
		{codes.Unavailable, "etcdserver: no leader", "etcdserver: no leader"},
		{codes.Unavailable, "error reading from server: EOF", "the connection broke"},
		{codes.Unavailable, `closing transport due to: connection error: desc = "error reading from server: read tcp 127.0.0.1:4->127.0.0.1:2379: connection reset by peer", received prior goaway`, "the connection broke"},
		{codes.DeadlineExceeded, `latest balancer error: connection error: desc = "error reading server preface: raw-read tcp 127.0.0.1:45382->127.0.0.1:2379: use of closed network connection"`, "it accepts connections and does not answer"},
	} {
		err := s.Explain(fmt.Errorf("it was done, but not recorded: %w", status.Error(c.code, c.text)))
		want := "etcd is unreachable at http://etcd1:2379: it was done, but not recorded: " + c.want + "; try: etcdctl --endpoints http://etcd1:2379 endpoint health"
		if err.Error() != want || status.Code(err) != c.code || s.Explain(err) != err {
			t.Errorf("%v\nwant %s", err, want)
		}
	}
	for _, late := range []error{context.DeadlineExceeded, status.Error(codes.DeadlineExceeded, "context deadline exceeded")} {
		if err := s.Explain(late); !strings.Contains(err.Error(), ": no answer in time; try: ") {
			t.Error(err)
		}
	}
	if err := errors.New("no"); s.Explain(err) != err || s.Explain(nil) != nil {
		t.Error("other errors stay")
	}
}
