package state

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
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
	watching, cancel := context.WithTimeout(ctx, 10*time.Second)
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

// TestPropose: of all who saw the same revision one wins, in every round.
func TestPropose(t *testing.T) {
	s := open(t, t.TempDir())
	for round := range 10 {
		_, seen, err := s.Current(ctx)
		must(t, err)
		var mu sync.Mutex
		var won []string
		atOnce(t, 20, func(i int) error {
			v := Version{ID: fmt.Sprintf("v%d-%d", round, i)}
			ok, err := s.Propose(ctx, v, nil, seen)
			mu.Lock()
			defer mu.Unlock()
			if ok {
				won = append(won, v.ID)
			}
			return err
		})
		current, rev, err := s.Current(ctx)
		if err != nil || len(won) != 1 || current.ID != won[0] || rev <= seen {
			t.Errorf("round %d: %q won, current %v at %d, %v", round, won, current, rev, err)
		}
	}
	if writes := history(t, s, s.CurrentKey()); len(writes) != 10 {
		t.Errorf("%d writes, want 10", len(writes))
	}
}

// TestCurrent: a new fleet has no version.
func TestCurrent(t *testing.T) {
	s := open(t, t.TempDir())
	if v, rev, err := s.Current(ctx); v != nil || rev != 0 || err != nil {
		t.Errorf("%v %d %v", v, rev, err)
	}
}

// TestStatus: at every revision a node is in at most one state of each category, and in exactly one when all is done.
func TestStatus(t *testing.T) {
	s := open(t, t.TempDir())
	atOnce(t, 8, func(i int) error {
		var errs []error
		for j := range 12 {
			category := Categories()[(i+j)%4]
			errs = append(errs, s.SetStatus(ctx, "n1", category, states[(i*7+j)%4], Status{Version: "v", Time: time.Now()}))
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

func register(t *testing.T, s *Store, node, role, owner string, ttl time.Duration) *Presence {
	t.Helper()
	p, err := s.Register(ctx, Node{Name: node, Role: role, LastSeen: time.Now().UTC()}, Alive{Owner: owner}, map[string]string{"os": "linux"}, ttl)
	if err != nil {
		t.Fatalf("register %s: %v", node, err)
	}
	return p
}

// TestRegister: a name belongs to one state directory while its lease lives; the same one takes it over; what lasts is kept.
func TestRegister(t *testing.T) {
	s := open(t, t.TempDir())
	first := register(t, s, "n1", "web", "secret", time.Minute)
	_, err := s.Register(ctx, Node{Name: "n1"}, Alive{Owner: "another"}, nil, time.Minute)
	var taken *NameTakenError
	if !errors.As(err, &taken) || taken.Node != "n1" || !strings.Contains(err.Error(), "pullet decommission n1") {
		t.Fatalf("a second host: %v", err)
	}
	if _, err := s.Client.Txn(ctx).Then(s.RunningOps(first, "v1")...).Commit(); err != nil {
		t.Fatal(err)
	}
	second := register(t, s, "n1", "db", "secret", time.Minute)
	if second.Lease == first.Lease || second.Revision <= first.Revision || second.Node.Running != "v1" || !second.Node.FirstSeen.Equal(first.Node.FirstSeen) {
		t.Errorf("first %+v\nsecond %+v", first, second)
	}
	if _, err := s.Client.Revoke(ctx, first.Lease); err != nil { // the lease of before ends: the node lives on
		t.Fatal(err)
	}
	o, err := s.Overview(ctx, true)
	if err != nil || !o.Alive["n1"] || o.Nodes["n1"].Role != "db" || string(o.Facts["n1"]) != `{"os":"linux"}` {
		t.Errorf("%+v %v", o, err)
	}
	if _, err := s.Client.Revoke(ctx, second.Lease); err != nil {
		t.Fatal(err)
	}
	if p, err := s.Register(ctx, Node{Name: "n1"}, Alive{Owner: "another"}, nil, time.Minute); err != nil || p.Node.Running != "v1" {
		t.Errorf("the lease ended, the name is free: %+v %v", p, err)
	}
}

// TestRegisterAtOnce: of several hosts with one name one wins.
func TestRegisterAtOnce(t *testing.T) {
	s := open(t, t.TempDir())
	var mu sync.Mutex
	won := 0
	atOnce(t, 10, func(i int) error {
		_, err := s.Register(ctx, Node{Name: "n1"}, Alive{Owner: fmt.Sprint(i)}, nil, time.Minute)
		var taken *NameTakenError
		mu.Lock()
		defer mu.Unlock()
		if err == nil {
			won++
		} else if !errors.As(err, &taken) {
			return err
		}
		return nil
	})
	if won != 1 {
		t.Errorf("%d hosts run under one name", won)
	}
}

// TestDecommission: claims are freed, nothing of the node is shown, its name is free, and its next pull brings it back.
func TestDecommission(t *testing.T) {
	s := open(t, t.TempDir())
	p := register(t, s, "n1", "web", "secret", time.Minute)
	register(t, s, "n2", "web", "other", time.Minute)
	ops := append(s.RunningOps(p, "v1"), s.StatusOps("n1", Rollout, Running, Status{Version: "v1"})...)
	for i, node := range []string{"n1", "n2"} {
		ops = append(ops, Put(s.SlotPrefix("web")+fmt.Sprint(i), Claim{Node: node}))
	}
	ops = append(ops, Put(s.SlotPrefix("db")+"0", Claim{Node: "n1"}))
	if _, err := s.Client.Txn(ctx).Then(ops...).Commit(); err != nil {
		t.Fatal(err)
	}
	freed, err := s.Decommission(ctx, "n1", "somebody", true)
	slices.Sort(freed)
	if err != nil || !slices.Equal(freed, []string{"slot/db/0", "slot/web/0"}) {
		t.Errorf("freed %q, %v", freed, err)
	}
	o, err := s.Overview(ctx, true)
	must(t, err)
	_, node := o.Nodes["n1"]
	_, facts := o.Facts["n1"]
	if node || facts || o.Alive["n1"] || o.Running["n1"] != "" || len(o.Statuses["n1"]) > 0 || len(o.Slots["db"]) > 0 {
		t.Errorf("something is left: %+v", o)
	}
	if want := map[string]map[string]Claim{"web": {"1": {Node: "n2"}}}; !reflect.DeepEqual(o.Slots, want) || !o.Alive["n2"] {
		t.Errorf("slots %v, want %v", o.Slots, want)
	}
	if _, err := s.Decommission(ctx, "nobody", "x", true); err == nil || !strings.Contains(err.Error(), `no node "nobody"`) {
		t.Errorf("nobody: %v", err)
	}
	register(t, s, "n1", "web", "a new host", time.Minute)
	if o, err = s.Overview(ctx, false); err != nil || !o.Alive["n1"] || o.Nodes["n1"].Name != "n1" {
		t.Errorf("it is not back: %+v %v", o, err)
	}
}

// TestFreezeRoster: everybody who asks at once gets one list, which stays whatever comes later.
func TestFreezeRoster(t *testing.T) {
	s := open(t, t.TempDir())
	for _, n := range []string{"a", "b", "gone", "db1"} {
		register(t, s, n, map[bool]string{true: "db", false: "web"}[n == "db1"], n, time.Minute)
	}
	_, err := s.Decommission(ctx, "gone", "x", true)
	must(t, err)
	inventory := map[string]Member{"b": {Role: "web"}, "never": {Role: "web"}, "gone": {Role: "web"}, "db2": {Role: "db"}}
	of := func(role string) Belongs {
		return func(_ string, m Member) (bool, string) { return m.Role == role, "" }
	}
	freeze := func(rollout, role string, inventory map[string]Member) ([]string, error) {
		roster, err := s.FreezeRoster(ctx, s.RosterKey(rollout, role), inventory, of(role))
		if err != nil {
			return nil, err
		}
		return roster.Nodes(), nil
	}
	want := []string{"a", "b", "never"}
	lists := make([][]string, 10)
	atOnce(t, 10, func(i int) error {
		register(t, s, fmt.Sprint("late", i), "web", "x", time.Minute)
		var err error
		lists[i], err = freeze("v1", "web", inventory)
		return err
	})
	for _, l := range lists {
		if !slices.Equal(l, lists[0]) || !slices.IsSorted(l) {
			t.Errorf("lists differ or are not sorted: %q", lists)
		}
		for _, n := range want {
			if !slices.Contains(l, n) {
				t.Errorf("%q is not in %q", n, l)
			}
		}
		if slices.Contains(l, "gone") || slices.Contains(l, "db1") || slices.Contains(l, "db2") {
			t.Errorf("%q", l)
		}
	}
	register(t, s, "later", "web", "x", time.Minute)
	if l, err := freeze("v1", "web", nil); err != nil || !slices.Equal(l, lists[0]) {
		t.Errorf("it is not frozen: %q %v", l, err)
	}
	if l, err := freeze("v2", "web", nil); err != nil || !slices.Contains(l, "later") {
		t.Errorf("another version asks anew: %q %v", l, err)
	}
	if l, err := freeze("v1", "none", nil); err != nil || len(l) != 0 {
		t.Errorf("nobody: %q %v", l, err)
	}
}

// TestOverview: it shows one revision: the leaf below running_version and the node's record never contradict each other.
func TestOverview(t *testing.T) {
	s := open(t, t.TempDir())
	p := register(t, s, "n1", "web", "x", time.Minute)
	must(t, func() error { _, err := s.Propose(ctx, Version{ID: "v"}, nil, 0); return err }())
	done := make(chan error, 1)
	go func() {
		var err error
		for i := range 100 {
			to := fmt.Sprint("v", i)
			ops := append(s.RunningOps(p, to), s.StatusOps("n1", Rollout, states[i%4], Status{Version: to})...)
			_, bad := s.Client.Txn(ctx).Then(append(ops, s.GateOp("v", "web", Gate{State: Halted, Reason: to}))...).Commit()
			p.Node.Running = to
			err = errors.Join(err, bad)
		}
		done <- err
	}()
	for reads := 0; ; reads++ {
		o, err := s.Overview(ctx, false)
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

// TestAwait: the bell wakes at once, also when it rang before anybody listened; a context that ends says so.
func TestAwait(t *testing.T) {
	s := open(t, t.TempDir())
	_, rev, err := s.Current(ctx)
	must(t, err)
	must(t, func() error { _, err := s.Propose(ctx, Version{ID: "v"}, nil, rev); return err }())
	began := time.Now()
	if !s.Await(ctx, s.BellKey(), 1, time.Minute) || time.Since(began) > 5*time.Second {
		t.Errorf("it rang before, and nobody woke for %s", time.Since(began))
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	if s.Await(ended, s.BellKey(), 1<<40, time.Minute) {
		t.Error("the context ended")
	}
	if !s.Await(ctx, s.BellKey(), 1<<40, 10*time.Millisecond) {
		t.Error("a poll that is over is no end")
	}
}

// TestAwaitWork wakes for another version only.
func TestAwaitWork(t *testing.T) {
	s := open(t, t.TempDir())
	must(t, func() error { _, err := s.Propose(ctx, Version{ID: "v1"}, nil, 0); return err }())
	current, rev, err := s.Current(ctx)
	must(t, err)
	woken := make(chan error, 1)
	go func() { woken <- s.AwaitWork(ctx, "v1", rev) }()
	must(t, s.SetStatus(ctx, "n1", Configured, Running, Status{Version: "v1"}))
	select {
	case err := <-woken:
		t.Fatalf("woken by its own version: %v", err)
	default:
	}
	must(t, func() error { _, err := s.Propose(ctx, Version{ID: "v2"}, current, rev); return err }())
	select {
	case err := <-woken:
		must(t, err)
	case <-time.After(10 * time.Second):
		t.Fatal("not woken")
	}
}

// TestSecondProcess: a command finds the member that another process runs, and both see one record.
func TestSecondProcess(t *testing.T) {
	dir := t.TempDir()
	startOther(t, "store", dir)
	s := open(t, dir)
	v, _, err := s.Current(ctx)
	if err != nil || v == nil || v.ID != "theirs" {
		t.Errorf("%v %v", v, err)
	}
	if s.embedded.server != nil {
		t.Error("two processes run the member")
	}
}

// TestKilledMember: what the member of a killed process wrote is there when the next one starts it.
func TestKilledMember(t *testing.T) {
	for _, name := range []string{"short", strings.Repeat("long", 30)} {
		dir := filepath.Join(t.TempDir(), name)
		startOther(t, "store", dir).kill()
		s := open(t, dir)
		if v, _, err := s.Current(ctx); err != nil || v == nil || v.ID != "theirs" {
			t.Errorf("%.10s: %v %v", name, v, err)
		}
	}
}

// TestLongPath: sockets go to a short directory, which is private and gone afterwards.
func TestLongPath(t *testing.T) {
	dir := filepath.Join(t.TempDir(), strings.Repeat("long", 30))
	s, err := Open(ctx, Config{Fleet: "f", Dir: dir})
	must(t, err)
	sockets := s.embedded.sockets
	info, err := os.Stat(sockets)
	if err != nil || info.Mode().Perm() != 0o700 || len(sockets) > maxSocketPath {
		t.Errorf("%q %v %v", sockets, info, err)
	}
	second := open(t, dir)
	if _, err := second.Propose(ctx, Version{ID: "v"}, nil, 0); err != nil {
		t.Error(err)
	}
	must(t, s.Close())
	if _, err := os.Stat(sockets); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the sockets are left: %v", err)
	}
}

// TestOddPaths: characters that mean something in etcd's lists of URLs do not in a path.
func TestOddPaths(t *testing.T) {
	for _, name := range []string{"a,b", "a b", "a=b", "50%", "a%41", "what?", "no#1", "ü"} {
		dir := filepath.Join(t.TempDir(), name)
		s, err := Open(ctx, Config{Fleet: "f", Dir: dir})
		if err != nil {
			t.Errorf("%q: %v", name, err)
			continue
		}
		second := open(t, dir)
		if _, err := second.Propose(ctx, Version{ID: "v"}, nil, 0); err != nil {
			t.Errorf("%q: %v", name, err)
		}
		must(t, s.Close())
	}
}

// TestReopened: the record outlives the store, and one member runs at a time.
func TestReopened(t *testing.T) {
	dir := t.TempDir()
	for i := range 3 {
		s, err := Open(ctx, Config{Fleet: "f", Dir: dir})
		must(t, err)
		v, rev, err := s.Current(ctx)
		if err != nil || i > 0 && (v == nil || v.ID != fmt.Sprint(i-1)) {
			t.Errorf("%d: %v %v", i, v, err)
		}
		if ok, err := s.Propose(ctx, Version{ID: fmt.Sprint(i)}, nil, rev); !ok || err != nil {
			t.Errorf("%d: %v %v", i, ok, err)
		}
		must(t, s.Close())
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
