package lock

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/pullet/pullet/internal/patience"
	"github.com/pullet/pullet/state"
)

// TestLimitHolds: thirty nodes at once, three at a time: judged by etcd's own history, never more; all get through and
// free their claims, and the last one closes the group.
func TestLimitHolds(t *testing.T) {
	const nodes, places = 30, 3
	f := newFleet(t)
	all, meet := f.requests(nodes, "web"), f.meet(places)
	f.atOnce(nodes, func(i int) error {
		all[i].Rules.Limit = limit(places)
		turn := NewTurn(f.Store, all[i])
		err := turn.Acquire(f.ctx)
		if err == nil {
			meet()
			err = errors.Join(turn.Check(f.ctx, "a step"), turn.Succeed(f.ctx))
		}
		return err
	})
	most, made, left := f.mostClaims(f.Rollouts.SlotPrefix("web"))
	if most != places || made != nodes || left != 0 {
		t.Errorf("at most %d claims at a time, %d made, %d left", most, made, left)
	}
	o, err := f.Views.Fleet(f.ctx, false)
	f.must(err)
	if len(o.Running) != nodes || o.Statuses["web007"][state.Rollout].State != state.Success {
		t.Errorf("%d run the version, one is %v", len(o.Running), o.Statuses["web007"])
	}
	if got := f.keys(f.Rollouts.ClosedKey("v1", "")); len(got) != 1 {
		t.Errorf("closed: %q", got)
	}
	if got := f.keys(f.Rollouts.QueuesPrefix("v1")); len(got) != 0 {
		t.Errorf("still in a queue: %q", got)
	}
}

// TestLimitOfRoster: a share is of the roster as it was frozen.
func TestLimitOfRoster(t *testing.T) {
	f := newFleet(t)
	all := f.requests(4, "web")
	half := func(roster int) int { return roster / 2 }
	for i := range all {
		all[i].Rules.Limit = half
	}
	f.mustTry(all[0])
	for i := range 4 { // they come later, and it stays half of four
		f.request(fmt.Sprint("late", i), "web")
	}
	f.mustTry(all[1])
	f.mustWait(all[2], "slot web (2 at a time)|web000 holds it|web001 holds it")
}

// TestTotal: two groups share the fleet's places; a node that has one keeps it, and one too many waits.
func TestTotal(t *testing.T) {
	f := newFleet(t)
	const nodes = 8
	all, meet := append(f.requests(nodes, "web"), f.requests(nodes, "db")...), f.meet(3)
	f.atOnce(len(all), func(i int) error {
		all[i].Rules.Limit, all[i].Rules.Total = limit(4), 3
		turn := NewTurn(f.Store, all[i])
		if err := turn.Acquire(f.ctx); err != nil {
			return err
		}
		meet()
		return errors.Join(turn.Check(f.ctx, "a step"), turn.Succeed(f.ctx))
	})
	if most, made, left := f.mostClaims(f.Rollouts.TotalPrefix()); most != 3 || made != 2*nodes || left != 0 {
		t.Errorf("at most %d in the fleet, %d made, %d left", most, made, left)
	}
	if most, made, left := f.mostClaims(f.Rollouts.SlotPrefix("")); most > 3 || made != 2*nodes || left != 0 {
		t.Errorf("at most %d slots, %d made, %d left", most, made, left)
	}
}

// TestTotalIsFull: who waits says for whom; parking gives both claims back.
func TestTotalIsFull(t *testing.T) {
	f := newFleet(t)
	web, db := f.request("web1", "web"), f.request("db1", "db")
	web.Rules.Total, db.Rules.Total = 1, 1
	turn := f.mustTry(web)
	f.mustWait(db, "slots of the fleet (1 at a time)|web1 holds it")
	f.mustTry(web) // retried inside
	f.must(turn.Park(f.ctx, state.Status{Gate: "barrier x", Reason: "barrier x: not arrived yet: db1"}))
	if got := f.keys(f.Rollouts.TotalPrefix()); len(got) != 0 || turn.Holds() {
		t.Errorf("parked, and it holds %q", got)
	}
	o, err := f.Views.Fleet(f.ctx, false)
	f.must(err)
	if st := o.Statuses["web1"][state.Rollout]; !st.Parked || st.State != state.Pending || st.Gate != "barrier x" {
		t.Errorf("%+v", st)
	}
	f.mustTry(db)
	if wait, err := turn.Try(f.ctx); err != nil || wait == nil {
		t.Errorf("it went on without a place: %v %v", wait, err)
	}
}

// TestSuperseded: who waits leaves at once when the fleet moves on.
func TestSuperseded(t *testing.T) {
	f := newFleet(t)
	f.mustTry(f.request("holder", "web"))
	const nodes = 5
	left, waits := make(chan error, nodes), make(chan struct{}, 100)
	for i := range nodes {
		q := f.request(fmt.Sprint("n", i), "web")
		q.Waiting = func(*Wait) { waits <- struct{}{} }
		go func() { left <- NewTurn(f.Store, q).Acquire(f.ctx) }()
		<-waits
	}
	began, old := time.Now(), f.rev
	f.propose("v2")
	for range nodes {
		if err := <-left; !errors.Is(err, ErrSuperseded) {
			t.Errorf("%v", err)
		}
	}
	if took := time.Since(began); took > patience.Stretch(5*time.Second) {
		t.Errorf("it took %s", took)
	}
	q := f.request("x", "web")
	q.Version, q.VersionRev = &state.Version{ID: "v1"}, old
	if _, err := NewTurn(f.Store, q).Try(f.ctx); !errors.Is(err, ErrSuperseded) {
		t.Errorf("a try: %v", err)
	}
}

// TestLeaseGone: without a living lease nobody is admitted, and the answer comes at once, with what helps.
func TestLeaseGone(t *testing.T) {
	for _, when := range []string{"before it asks", "while it waits"} {
		t.Run(when, func(t *testing.T) {
			f := newFleet(t)
			q := f.request("me", "web")
			turn := NewTurn(f.Store, q)
			if when == "while it waits" {
				f.mustTry(f.request("holder", "web"))
				if wait, err := turn.Try(f.ctx); err != nil || wait == nil {
					t.Fatalf("%v %v", wait, err)
				}
			}
			f.die(q)
			if wait, err := turn.Try(f.ctx); err != nil || wait == nil || wait.Gate != "lease of me" || wait.Clear != "the next pull registers anew" {
				t.Errorf("a try: %v %v", wait, err)
			}
			if wait := asWait(turn.Acquire(f.ctx)); wait == nil || wait.Gate != "lease of me" {
				t.Errorf("it waits: %v", wait)
			}
			for _, e := range f.events(f.Rollouts.SlotPrefix("web")) {
				f.contains(string(e.Kv.Value), "holder")
			}
		})
	}
}

// TestWaitInTheEnd: when the time is over, the answer is who stands in the way and since when this node waits, and its
// ticket is gone.
func TestWaitInTheEnd(t *testing.T) {
	for _, lasting := range []bool{false, true} {
		f := newFleet(t)
		f.mustTry(f.request("holder", "web"))
		q := f.request("me", "web")
		ctx, cancel := context.WithCancel(f.ctx)
		queued := 0
		q.Lasting, q.Waiting = lasting, func(*Wait) { queued = len(f.keys(f.Rollouts.QueuesPrefix("v1"))); cancel() }
		wait := asWait(NewTurn(f.Store, q).Acquire(ctx))
		if wait == nil || wait.Since.IsZero() || len(wait.Holders) != 1 || wait.Holders[0].Node != "holder" || !wait.Holders[0].Alive {
			t.Fatalf("%+v", wait)
		}
		f.contains(wait.Error(), "slot web (1 at a time)|holder holds it|alive")
		if left := f.keys(f.Rollouts.QueuesPrefix("v1")); queued != 1 || len(left) != 0 {
			t.Errorf("lasting %v: %d tickets while it waited, left %q", lasting, queued, left)
		}
	}
}
