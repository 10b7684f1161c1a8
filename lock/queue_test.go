package lock

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// queued makes nodes queue behind a holder, in this order of coming; the number is the place that each has.
func (f *fleet) queued(order ...int64) []*Turn {
	f.t.Helper()
	var out []*Turn
	for _, n := range order {
		q := f.request(fmt.Sprint("n", n), "web")
		q.Order = n
		turn := NewTurn(f.Store, q)
		if wait, err := turn.Try(f.ctx); err != nil || wait == nil {
			f.t.Fatalf("%v %v", wait, err)
		}
		out = append(out, turn)
	}
	return out
}

// TestQueueOrder: places are by Order, whoever came first; each knows the one ahead.
func TestQueueOrder(t *testing.T) {
	f := newFleet(t)
	f.mustTry(f.request("holder", "web"))
	turns := f.queued(30, 10, 50, 20, 40)
	slices.SortFunc(turns, func(a, b *Turn) int { return int(a.req.Order - b.req.Order) })
	for i, turn := range turns {
		r, err := turn.reader.look(f.ctx)
		f.must(err)
		want := ""
		if i > 0 {
			want = turns[i-1].ticket.key
		}
		if r.ahead != want {
			t.Errorf("n%d is behind %q, want %q", turn.req.Order, r.ahead, want)
		}
		if wait, err := turn.Try(f.ctx); err != nil || i > 0 && !strings.Contains(wait.Reason, fmt.Sprintf("n%d comes first", i*10)) || i == 0 && !strings.Contains(wait.Reason, "holder holds it") {
			t.Errorf("%v %v", wait, err)
		}
	}
}

// TestQueueServed: when places become free they are given by Order.
func TestQueueServed(t *testing.T) {
	f := newFleet(t)
	holder := f.mustTry(f.request("holder", "web"))
	turns := f.queued(30, 10, 50, 20, 40)
	f.must(holder.Succeed(f.ctx))
	f.atOnce(len(turns), func(i int) error {
		if err := turns[i].Acquire(f.ctx); err != nil {
			return err
		}
		return turns[i].Succeed(f.ctx)
	})
	var got []string
	for _, e := range f.events(f.Rollouts.SlotPrefix("web")) {
		if e.IsCreate() {
			got = append(got, strings.Split(string(e.Kv.Value), `"`)[3])
		}
	}
	if want := []string{"holder", "n10", "n20", "n30", "n40", "n50"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestQueueByRegistration: without a place of before, who registered earlier comes first.
func TestQueueByRegistration(t *testing.T) {
	f := newFleet(t)
	f.mustTry(f.request("holder", "web"))
	early, late := f.request("z", "web"), f.request("a", "web")
	f.mustWait(early, "holder holds it")
	if _, wait := f.try(late); wait == nil {
		t.Fatal("admitted")
	}
	f.mustWait(early, "holder holds it")
	if _, wait := f.try(early); wait == nil {
		t.Fatal("admitted")
	}
	f.mustWait(late, "z comes first")
}

// TestTicketsAreLeased: a ticket goes with its node, or, where the node's lease outlives the process, with the process.
func TestTicketsAreLeased(t *testing.T) {
	f := newFleet(t)
	f.mustTry(f.request("holder", "web"))
	for _, lasting := range []bool{false, true} {
		q := f.request(fmt.Sprint("lasting-", lasting), "web")
		q.Lasting = lasting
		turn, _ := f.try(q)
		got, err := f.Client.Get(f.ctx, turn.ticket.key)
		f.must(err)
		if len(got.Kvs) != 1 || (clientv3.LeaseID(got.Kvs[0].Lease) == q.Presence.Lease) == lasting {
			t.Errorf("lasting %v: %v, and the node's lease is %d", lasting, got.Kvs, q.Presence.Lease)
		}
		if node := predecessorOf(f.Store, got.Kvs[0]).String(); node != q.node() {
			t.Errorf("the ticket of %s is %s's", q.node(), node)
		}
	}
}

// TestTicketOrder: keys are in the order of places, the latest first, up to the end of numbers.
func TestTicketOrder(t *testing.T) {
	f := newFleet(t)
	q := f.request("n", "web")
	var keys []string
	for _, order := range []int64{1, 9, 10, 99, 1 << 40, math.MaxInt64 - 1} {
		q.Order = order
		keys = append(keys, NewTurn(f.Store, q).ticket.key)
	}
	slices.Reverse(keys)
	if !slices.IsSorted(keys) || len(keys[0]) != len(keys[5]) {
		t.Errorf("%q", keys)
	}
}

// TestDisabledHostStepsAside: a host that is switched off does not stand in the way of who comes after it, and has its
// place again when it is enabled.
func TestDisabledHostStepsAside(t *testing.T) {
	f := newFleet(t)
	holder := f.mustTry(f.request("holder", "web"))
	turns := f.queued(10, 20)
	f.switchOff(hostOf(turns[0]))
	wait, err := turns[0].Try(f.ctx)
	f.must(err)
	f.contains(wait.Error(), "host n10 (disabled)")
	if wait, err := turns[1].Try(f.ctx); err != nil || !strings.Contains(wait.Reason, "holder holds it") {
		t.Errorf("%v %v", wait, err)
	}
	f.must(setSwitch(f.ctx, f.Store, hostOf(turns[0]), enabled, 0))
	if wait, err := turns[0].Try(f.ctx); err != nil || !strings.Contains(wait.Reason, "holder holds it") {
		t.Errorf("%v %v", wait, err)
	}
	f.must(holder.Succeed(f.ctx))
	if wait, err := turns[1].Try(f.ctx); err != nil || !strings.Contains(wait.Reason, "n10 comes first") {
		t.Errorf("%v %v", wait, err)
	}
}
