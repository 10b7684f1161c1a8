package lock

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pullet/pullet/internal/patience"
	"github.com/pullet/pullet/state"
)

// member is the etcd of all tests: each has a fleet of its own there.
var member *state.Store

func TestMain(m *testing.M) {
	if dir := os.Getenv(etcdDir); dir != "" { // the etcd of a benchmark
		if err := beEtcd(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(withMember(m))
}

func withMember(m *testing.M) (code int) {
	dir, err := os.MkdirTemp("", "lock")
	if err == nil {
		defer os.RemoveAll(dir)
		member, err = state.Open(context.Background(), state.Config{Fleet: "none", Dir: dir})
	}
	if err != nil {
		fmt.Println(err)
		return 1
	}
	defer func() {
		if err := member.Close(); err != nil {
			fmt.Println(err)
			code = 1
		}
	}()
	return m.Run()
}

// fleet is a store with a version that is current.
type fleet struct {
	*state.Store
	t       *testing.T
	ctx     context.Context // of all that must be answered
	version *state.Version
	rev     int64
	begin   int64
}

var fleets atomic.Int64

func newFleet(t *testing.T) *fleet {
	t.Helper()
	began := time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), patience.Stretch(25*time.Second))
	t.Cleanup(cancel)
	f := &fleet{t: t, ctx: ctx, Store: state.Over(member.Client, fmt.Sprint("f", fleets.Add(1)), func() time.Duration { return time.Since(began) })}
	f.must(begin(ctx, f.Store))
	f.propose("v1")
	f.begin = f.rev
	return f
}

// begin records the incarnation of etcd, as the first registration of a fleet does.
func begin(ctx context.Context, s *state.Store) error {
	is, err := s.Doubts.Incarnation(ctx)
	if err != nil {
		return err
	}
	_, err = s.Client.Do(ctx, state.Put(s.Doubts.IncarnationKey(), is))
	return err
}

// propose makes a version the current one.
func (f *fleet) propose(id string) {
	f.t.Helper()
	current, rev, err := f.Versions.Current(f.ctx)
	f.must(err)
	is, err := f.Versions.Propose(f.ctx, state.Version{ID: id}, current, rev)
	f.must(err)
	if !is.Done {
		f.t.Fatalf("%s was not accepted", id)
	}
	f.version, f.rev, err = f.Versions.Current(f.ctx)
	f.must(err)
}

func (f *fleet) must(err error) {
	f.t.Helper()
	if err != nil {
		f.t.Fatal(err)
	}
}

// request registers a node and makes its wish for the current version, one at a time.
func (f *fleet) request(node, role string) Request {
	f.t.Helper()
	p, err := f.Presences.Register(f.ctx, state.Node{Name: node, Role: role}, state.Alive{Owner: node}, nil, time.Minute)
	f.must(err)
	return Request{
		Presence: p, Version: f.version, VersionRev: f.rev, Rules: Rules{
			Group: role, Role: role, Limit: func(int) int { return 1 },
			GroupOf: func(_ string, m state.Member) string { return state.GroupOf(m.Role) },
		},
	}
}

// die ends a node's lease, as its silence does.
func (f *fleet) die(q Request) {
	f.t.Helper()
	_, err := f.Client.Revoke(f.ctx, q.Presence.Lease)
	f.must(err)
}

// try is one attempt that must be answered.
func (f *fleet) try(q Request) (*Turn, *Wait) {
	f.t.Helper()
	turn := NewTurn(f.Store, q)
	wait, err := turn.Try(f.ctx)
	f.must(err)
	return turn, wait
}

func (f *fleet) mustTry(q Request) *Turn {
	f.t.Helper()
	turn, wait := f.try(q)
	if wait != nil || !turn.Holds() {
		f.t.Fatalf("not admitted: %v", wait)
	}
	return turn
}

// waits says why a node is not admitted. Its place in the queue is given up.
func (f *fleet) waits(q Request) string {
	f.t.Helper()
	turn, wait := f.try(q)
	if wait == nil {
		f.t.Fatalf("%s was admitted", q.node())
	}
	f.must(turn.Leave(f.ctx))
	return wait.Error()
}

// mustWait holds a node's reason to wait against parts, divided by |.
func (f *fleet) mustWait(q Request, want string) {
	f.t.Helper()
	f.contains(f.waits(q), want)
}

func (f *fleet) contains(got, want string) {
	f.t.Helper()
	for part := range strings.SplitSeq(want, "|") {
		if !strings.Contains(got, part) {
			f.t.Errorf("got  %s\nwant %s", got, part)
		}
	}
}

// atOnce does something for each of n at the same time.
func (f *fleet) atOnce(n int, do func(i int) error) {
	f.t.Helper()
	var wait sync.WaitGroup
	start := make(chan struct{})
	for i := range n {
		wait.Go(func() {
			<-start
			if err := do(i); err != nil {
				f.t.Errorf("%d: %v", i, err)
			}
		})
	}
	close(start)
	wait.Wait()
}

// meet lets the first n who come wait until they are n: so many places can be taken at once.
func (f *fleet) meet(n int) func() {
	var came atomic.Int64
	all := make(chan struct{})
	return func() {
		if came.Add(1) == int64(n) {
			close(all)
		}
		select {
		case <-all:
		case <-f.ctx.Done():
		}
	}
}

// requests registers many nodes of one role.
func (f *fleet) requests(n int, role string) []Request {
	out := make([]Request, n)
	for i := range out {
		out[i] = f.request(fmt.Sprintf("%s%03d", role, i), role)
	}
	return out
}

// events are all writes below a prefix since the fleet began, as etcd has them.
func (f *fleet) events(prefix string) []*clientv3.Event {
	f.t.Helper()
	all := strings.TrimSuffix(f.Bells.Key(), "bell")
	end, err := f.Client.Put(f.ctx, all+"marker", "") // ends the reading
	f.must(err)
	ctx, cancel := context.WithCancel(f.ctx)
	defer cancel()
	var out []*clientv3.Event
	for answer := range f.Client.Watch(ctx, all, clientv3.WithPrefix(), clientv3.WithRev(f.begin)) {
		f.must(answer.Err())
		for _, e := range answer.Events {
			if e.Kv.ModRevision == end.Header.Revision {
				return out
			}
			if key := string(e.Kv.Key); strings.HasPrefix(key, prefix) && key != all+"marker" {
				out = append(out, e)
			}
		}
	}
	f.t.Fatal("the history could not be read")
	return nil
}

// mostClaims walks through the history of claims below a prefix: the most at any revision, how many were made, and how
// many are left.
func (f *fleet) mostClaims(prefix string) (most, made, left int) {
	f.t.Helper()
	held, revision := map[string]bool{}, int64(0)
	for _, e := range f.events(prefix) {
		if e.Kv.ModRevision != revision { // the revision before is complete
			most, revision = max(most, len(held)), e.Kv.ModRevision
		}
		if e.IsCreate() {
			made++
		}
		if held[string(e.Kv.Key)] = true; e.Type == clientv3.EventTypeDelete {
			delete(held, string(e.Kv.Key))
		}
	}
	return max(most, len(held)), made, len(held)
}

// keys are those below a prefix.
func (f *fleet) keys(prefix string) []string {
	f.t.Helper()
	got, err := f.Client.Get(f.ctx, prefix, clientv3.WithPrefix(), clientv3.WithKeysOnly())
	f.must(err)
	out := []string{}
	for _, kv := range got.Kvs {
		out = append(out, strings.TrimPrefix(string(kv.Key), prefix))
	}
	return out
}

func (f *fleet) gate(group string) state.Gate {
	f.t.Helper()
	g, _, err := f.Rollouts.Gate(f.ctx, f.version.Rollout(), group)
	f.must(err)
	return g
}

// limit makes limits that do not depend on the roster.
func limit(n int) func(int) int { return func(int) int { return n } }

// asWait is the wait that an error is.
func asWait(err error) *Wait {
	var w *Wait
	errors.As(err, &w)
	return w
}
