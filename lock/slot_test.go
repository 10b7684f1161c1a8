package lock

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pullet/pullet/state"
)

var bg = context.Background()

// fleet is a store with a version that is current.
type fleet struct {
	*state.Store
	t       *testing.T
	version *state.Version
	rev     int64
}

func newFleet(t *testing.T) *fleet {
	t.Helper()
	s, err := state.Open(bg, state.Config{Fleet: "f", Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	f := &fleet{Store: s, t: t}
	f.propose("v1")
	return f
}

// propose makes a version the current one.
func (f *fleet) propose(id string) {
	f.t.Helper()
	current, rev, err := f.Current(bg)
	f.must(err)
	ok, err := f.Propose(bg, state.Version{ID: id}, current, rev)
	f.must(err)
	if !ok {
		f.t.Fatalf("%s was not accepted", id)
	}
	f.version, f.rev, err = f.Current(bg)
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
	p, err := f.Register(bg, state.Node{Name: node, Role: role}, state.Alive{Owner: node}, nil, time.Minute)
	f.must(err)
	return Request{
		Presence: p, Version: f.version, VersionRev: f.rev, Group: role, Limit: func(int) int { return 1 },
		Members: map[string]string{},
	}
}

// try is one attempt that must be answered.
func (f *fleet) try(q Request) (*Slot, *Wait) {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(bg, 10*time.Second)
	defer cancel()
	slot, wait, err := Try(ctx, f.Store, q)
	f.must(err)
	return slot, wait
}

func (f *fleet) mustTry(q Request) *Slot {
	f.t.Helper()
	slot, wait := f.try(q)
	if slot == nil {
		f.t.Fatalf("not admitted: %v", wait)
	}
	return slot
}

// events are all writes below a prefix since the beginning, as etcd has them.
func (f *fleet) events(prefix string) []*clientv3.Event {
	f.t.Helper()
	all := strings.TrimSuffix(f.BellKey(), "bell")
	end, err := f.Client.Put(bg, all+"marker", "") // ends the reading
	f.must(err)
	ctx, cancel := context.WithTimeout(bg, 10*time.Second)
	defer cancel()
	var out []*clientv3.Event
	for answer := range f.Client.Watch(ctx, all, clientv3.WithPrefix(), clientv3.WithRev(1)) {
		f.must(answer.Err())
		for _, e := range answer.Events {
			if e.Kv.ModRevision == end.Header.Revision {
				return out
			}
			if strings.HasPrefix(string(e.Kv.Key), prefix) {
				out = append(out, e)
			}
		}
	}
	f.t.Fatal("the history could not be read")
	return nil
}

// mostClaims walks through the history of a group's slots: the most claims at any revision, how many were made, and how many are left.
func (f *fleet) mostClaims(group string) (most, made, left int) {
	f.t.Helper()
	held := map[string]bool{}
	for _, e := range f.events(f.SlotPrefix(group)) {
		if e.IsCreate() {
			made++
		}
		if e.Type == clientv3.EventTypeDelete {
			delete(held, string(e.Kv.Key))
		} else {
			held[string(e.Kv.Key)] = true
		}
		most = max(most, len(held))
	}
	return most, made, len(held)
}

// TestLimitHolds: thirty nodes at once, three at a time: judged by etcd's own history, never more; all get through and free their claims.
func TestLimitHolds(t *testing.T) {
	const nodes, limit = 30, 3
	f := newFleet(t)
	var wait sync.WaitGroup
	errs := make(chan error, nodes)
	ctx, cancel := context.WithTimeout(bg, 18*time.Second)
	defer cancel()
	for i := range nodes {
		q := f.request(fmt.Sprint("n", i), "web")
		q.Limit = func(int) int { return limit }
		wait.Go(func() {
			slot, err := Acquire(ctx, f.Store, q)
			if err == nil {
				err = errors.Join(slot.Check(ctx), slot.Succeed(ctx))
			}
			errs <- err
		})
	}
	wait.Wait()
	for range nodes {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	most, made, left := f.mostClaims("web")
	if most > limit || most < 2 || made != nodes || left != 0 {
		t.Errorf("at most %d claims at a time, %d made, %d left", most, made, left)
	}
	o, err := f.Overview(bg, false)
	f.must(err)
	if len(o.Running) != nodes || o.Statuses["n7"][state.Rollout].State != state.Success {
		t.Errorf("%d run the version, n7 is %v", len(o.Running), o.Statuses["n7"])
	}
}

// TestNobodyPassesAHalt: the first failure halts its group, and no claim there, or where somebody depends on it, is made after that revision.
func TestNobodyPassesAHalt(t *testing.T) {
	const nodes = 16
	f := newFleet(t)
	ctx, cancel := context.WithCancel(bg)
	defer cancel()
	var told, wait sync.WaitGroup
	var mu sync.Mutex
	admitted := 0
	for i := range nodes {
		role := []string{"web", "web", "web", "lb"}[i%4]
		q := f.request(fmt.Sprint("n", i), role)
		q.Limit = func(int) int { return 4 }
		if role == "lb" {
			q.Depends = []string{"web"}
		}
		told.Add(1)
		once := sync.OnceFunc(told.Done)
		q.Waiting = func(w *Wait) {
			if strings.Contains(w.Gate, "halted") {
				once()
			}
		}
		wait.Go(func() {
			defer once()
			slot, err := Acquire(ctx, f.Store, q)
			if slot == nil {
				var w *Wait
				if !errors.As(err, &w) || !strings.Contains(w.Reason, "it broke") {
					t.Errorf("%s: %v", role, err)
				}
				return
			}
			mu.Lock()
			admitted++
			fails := admitted == 3
			mu.Unlock()
			if fails {
				err = slot.Fail(bg, "it broke")
			} else {
				err = slot.Succeed(bg)
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	told.Wait() // everybody is through or knows of the halt
	cancel()
	wait.Wait()
	gate, halted, err := f.Gate(bg, "v1", "web")
	f.must(err)
	if gate.State != state.Halted || len(gate.Failed) != 1 || gate.Node != gate.Failed[0] || gate.Reason != "it broke" {
		t.Fatalf("gate %+v", gate)
	}
	for _, e := range f.events(f.GateKey("v1", "web")) {
		if strings.Contains(string(e.Kv.Value), state.Halted) {
			halted = min(halted, e.Kv.ModRevision)
		}
	}
	for _, e := range f.events(f.SlotPrefix("")) {
		if e.IsCreate() && e.Kv.CreateRevision > halted {
			t.Errorf("claim %s was made at %d, after the halt at %d", e.Kv.Key, e.Kv.CreateRevision, halted)
		}
	}
}

// TestMovedInBetween: what an admission was decided from is compared when it is made, piece by piece.
func TestMovedInBetween(t *testing.T) {
	for name, move := range map[string]func(f *fleet, q Request){
		"nothing": func(*fleet, Request) {},
		"the gate": func(f *fleet, q Request) {
			f.must(Fail(bg, f.Store, f.request("other", "web"), "broke"))
		},
		"the gate of a dependency": func(f *fleet, q Request) {
			f.must(Fail(bg, f.Store, f.request("other", "db"), "broke"))
		},
		"the version": func(f *fleet, q Request) { f.propose("v2") },
		"the lease": func(f *fleet, q Request) {
			_, err := f.Client.Revoke(bg, q.Presence.Lease)
			f.must(err)
		},
		"the name": func(f *fleet, q Request) {
			_, err := f.Client.Revoke(bg, q.Presence.Lease)
			f.must(err)
			_, err = f.Register(bg, state.Node{Name: "me"}, state.Alive{Owner: "another host"}, nil, time.Minute)
			f.must(err)
		},
		"the slots": func(f *fleet, q Request) {
			other := f.request("other", "web")
			other.Limit = q.Limit
			f.mustTry(other)
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t)
			q := f.request("me", "web")
			q.Depends, q.Limit = []string{"db"}, func(int) int { return 2 }
			r := newReader(f.Store, q)
			view, err := r.view(bg)
			f.must(err)
			if index, wait := Decide(view); index != 0 || wait != nil {
				t.Fatalf("%d %v", index, wait)
			}
			move(f, q)
			done, err := r.claim(bg, f.SlotPrefix("web")+"1", 0, false)
			f.must(err)
			if done.Succeeded != (name == "nothing") {
				t.Errorf("admitted %v", done.Succeeded)
			}
		})
	}
}

// TestOlderClaimMeetsAHalt: a claim of an older version is no way around a halt of the newer one.
func TestOlderClaimMeetsAHalt(t *testing.T) {
	f := newFleet(t)
	f.mustTry(f.request("me", "web"))
	f.propose("v2")
	q := f.request("me", "web")
	r := newReader(f.Store, q)
	view, err := r.view(bg)
	f.must(err)
	if index, wait := Decide(view); index != 0 || wait != nil {
		t.Fatalf("%d %v", index, wait)
	}
	f.must(Fail(bg, f.Store, f.request("other", "web"), "broke"))
	done, err := r.claim(bg, f.SlotPrefix("web")+"0", r.fences[0], false)
	f.must(err)
	if done.Succeeded {
		t.Error("admitted to a version that was halted in between")
	}
	if slot, wait := f.try(q); slot != nil || !strings.Contains(wait.Gate, "halted") {
		t.Errorf("%v %v", slot, wait)
	}
}

// TestAdoption: a node finds its own claim again, also that of an older version, with the same fence; no second one is made.
func TestAdoption(t *testing.T) {
	f := newFleet(t)
	q := f.request("me", "web")
	first := f.mustTry(q)
	again := f.mustTry(q)
	f.must(first.Fail(bg, "broke"))
	halted := f.mustTry(q) // it retries inside, also while its group is halted
	f.propose("v2")
	newer := f.mustTry(f.request("me", "web"))
	for i, s := range []*Slot{again, halted, newer} {
		if s.Fence() != first.Fence() || s.key != first.key {
			t.Errorf("%d: fence %d at %s, want %d at %s", i, s.Fence(), s.key, first.Fence(), first.key)
		}
	}
	f.must(newer.Succeed(bg))
	if most, made, left := f.mostClaims("web"); most != 1 || made != 1 || left != 0 {
		t.Errorf("most %d, made %d, left %d", most, made, left)
	}
}

// TestFence: after the claim was taken back, and given to somebody else, its old holder learns it and changes nothing.
func TestFence(t *testing.T) {
	for name, do := range map[string]func(*Slot) error{
		"check":   func(s *Slot) error { return s.Check(bg) },
		"succeed": func(s *Slot) error { return s.Succeed(bg) },
		"fail":    func(s *Slot) error { return s.Fail(bg, "broke") },
	} {
		for _, gate := range []string{"no gate yet", "a gate"} {
			t.Run(name+", "+gate, func(t *testing.T) {
				f := newFleet(t)
				slot := f.mustTry(f.request("me", "web"))
				f.must(slot.Check(bg))
				if gate == "a gate" {
					f.must(slot.Fail(bg, "before"))
					f.must(slot.Fail(bg, "again"))
				}
				_, err := f.Client.Delete(bg, slot.key)
				f.must(err)
				if err := do(slot); !errors.Is(err, ErrFenced) {
					t.Errorf("taken back: %v", err)
				}
				_, err = f.Client.Put(bg, slot.key, `{"node":"other","version":"v1"}`)
				f.must(err)
				before := f.revision()
				if err := do(slot); !errors.Is(err, ErrFenced) {
					t.Errorf("given to another: %v", err)
				}
				if after := f.revision(); after != before {
					t.Errorf("something was written: revision %d -> %d", before, after)
				}
			})
		}
	}
}

func (f *fleet) revision() int64 {
	f.t.Helper()
	got, err := f.Client.Get(bg, "none")
	f.must(err)
	return got.Header.Revision
}

// TestSuperseded: who waits leaves at once when the fleet moves on.
func TestSuperseded(t *testing.T) {
	f := newFleet(t)
	f.mustTry(f.request("holder", "web"))
	const nodes = 5
	left := make(chan error, nodes)
	var waits sync.WaitGroup
	for i := range nodes {
		q := f.request(fmt.Sprint("n", i), "web")
		waits.Add(1)
		q.Waiting = func(*Wait) { waits.Done() }
		go func() { _, err := Acquire(bg, f.Store, q); left <- err }()
	}
	waits.Wait()
	began := time.Now()
	f.propose("v2")
	for range nodes {
		select {
		case err := <-left:
			if !errors.Is(err, ErrSuperseded) {
				t.Errorf("%v", err)
			}
		case <-time.After(10 * time.Second):
			t.Fatal("a node still waits for a version that nobody wants")
		}
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("it took %s", took)
	}
	if _, _, err := Try(bg, f.Store, Request{Presence: &state.Presence{Node: state.Node{Name: "x"}}, Version: &state.Version{ID: "v1"}, VersionRev: f.rev - 1, Group: "web", Limit: func(int) int { return 1 }}); !errors.Is(err, ErrSuperseded) {
		t.Errorf("a try: %v", err)
	}
}

// TestLeaseGone: without a living lease nobody is admitted, and the answer comes at once, with what helps.
func TestLeaseGone(t *testing.T) {
	f := newFleet(t)
	q := f.request("me", "web")
	_, err := f.Client.Revoke(bg, q.Presence.Lease)
	f.must(err)
	slot, wait := f.try(q)
	if slot != nil || wait == nil || !strings.Contains(wait.Error(), "lease of me") {
		t.Errorf("%v %v", slot, wait)
	}
	if _, made, _ := f.mostClaims("web"); made != 0 {
		t.Errorf("%d claims", made)
	}
	f.mustTry(f.request("me", "web")) // registered anew
}

// TestDependencies: a role starts when every node of what it depends on runs the version, and is woken then.
func TestDependencies(t *testing.T) {
	f := newFleet(t)
	db1, db2 := f.request("db1", "db"), f.request("db2", "db")
	web := f.request("web1", "web")
	web.Depends = []string{"db"}
	waits := make(chan string, 10)
	web.Waiting = func(w *Wait) { waits <- w.Error() }
	admitted := make(chan error, 1)
	go func() { _, err := Acquire(bg, f.Store, web); admitted <- err }()
	next := func(want string) {
		t.Helper()
		select {
		case got := <-waits:
			if !strings.Contains(got, want) {
				t.Errorf("waits for %s, want %s", got, want)
			}
		case err := <-admitted:
			t.Fatalf("admitted too early: %v", err)
		case <-time.After(10 * time.Second):
			t.Fatalf("nothing was said, want %s", want)
		}
	}
	next("role db: not upgraded yet: db1 (alive), db2 (alive)")
	f.must(f.mustTry(db1).Succeed(bg))
	next("role db: not upgraded yet: db2 (alive)")
	f.must(f.mustTry(db2).Succeed(bg))
	select {
	case err := <-admitted:
		f.must(err)
	case <-time.After(10 * time.Second):
		t.Fatal("not woken")
	}
}

// TestMaxFailures: a node counts once however often it fails, and its success strikes its failure; one more than is survived halts.
func TestMaxFailures(t *testing.T) {
	f := newFleet(t)
	slots := map[string]*Slot{}
	for _, n := range []string{"a", "b", "c"} {
		q := f.request(n, "web")
		q.Limit, q.MaxFailures = func(int) int { return 3 }, 1
		slots[n] = f.mustTry(q)
	}
	want := func(step, gate string, failed ...string) {
		t.Helper()
		g, _, err := f.Gate(bg, "v1", "web")
		f.must(err)
		if g.State != gate || strings.Join(g.Failed, " ") != strings.Join(failed, " ") {
			t.Errorf("%s: %+v, want %s with %q", step, g, gate, failed)
		}
	}
	f.must(slots["a"].Fail(bg, "one"))
	f.must(slots["a"].Fail(bg, "two"))
	want("a node counts once", "open", "a")
	f.must(slots["a"].Succeed(bg))
	want("success strikes it", "open")
	f.must(slots["b"].Fail(bg, "three"))
	want("the next one is survived", "open", "b")
	f.must(slots["c"].Fail(bg, "four"))
	want("one too many", state.Halted, "b", "c")
	f.must(slots["c"].Fail(bg, "five"))
	g, _, err := f.Gate(bg, "v1", "web")
	f.must(err)
	if g.Node != "c" || g.Reason != "four" {
		t.Errorf("the first verdict is overwritten: %+v", g)
	}
	f.must(slots["b"].Succeed(bg))
	want("a halt stays", state.Halted, "c")
}

// TestFailWithoutASlot: a node that cannot even begin counts too.
func TestFailWithoutASlot(t *testing.T) {
	f := newFleet(t)
	f.must(Fail(bg, f.Store, f.request("me", "web"), "does not compile"))
	slot, wait := f.try(f.request("other", "web"))
	if slot != nil || !strings.Contains(wait.Error(), "me failed: does not compile") {
		t.Errorf("%v %v", slot, wait)
	}
	o, err := f.Overview(bg, false)
	f.must(err)
	if line := o.Statuses["me"][state.Rollout]; line.State != state.Failed || line.Reason != "does not compile" {
		t.Errorf("status %+v", line)
	}
}

// TestFailuresAtOnce: none is lost when many fail together.
func TestFailuresAtOnce(t *testing.T) {
	f := newFleet(t)
	var wait sync.WaitGroup
	for i := range 10 {
		q := f.request(fmt.Sprint("n", i), "web")
		q.MaxFailures = 9
		wait.Go(func() {
			if err := Fail(bg, f.Store, q, "broke"); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	if g, _, err := f.Gate(bg, "v1", "web"); err != nil || len(g.Failed) != 10 || g.State != state.Halted {
		t.Errorf("%+v %v", g, err)
	}
}

// TestWaitInTheEnd: when the time is over, the answer is who stands in the way and since when this node waits.
func TestWaitInTheEnd(t *testing.T) {
	f := newFleet(t)
	f.mustTry(f.request("holder", "web"))
	q := f.request("me", "web")
	ctx, cancel := context.WithCancel(bg)
	q.Waiting = func(*Wait) { cancel() }
	slot, err := Acquire(ctx, f.Store, q)
	var wait *Wait
	if slot != nil || !errors.As(err, &wait) || !strings.Contains(wait.Reason, "holder holds it") || wait.Since.IsZero() {
		t.Errorf("%v %v", slot, err)
	}
}
