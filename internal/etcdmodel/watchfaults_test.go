package etcdmodel

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// keysOf are the keys of the events that a watch has now.
func keysOf(watch clientv3.WatchChan) []string {
	var out []string
	for {
		synctest.Wait()
		select {
		case answer, open := <-watch:
			if !open {
				return append(out, "closed")
			}
			if answer.Err() != nil {
				out = append(out, answer.Err().Error())
			}
			for _, e := range answer.Events {
				out = append(out, string(e.Kv.Key))
			}
		default:
			return out
		}
	}
}

// TestWatchInCut: a watch is silent while the line is cut, and then has everything, in order; also when it began in the
// cut.
func TestWatchInCut(t *testing.T) {
	inBubble(t, func(t *testing.T, c *Cluster, n *Conn) {
		other := c.Connect("other")
		first := n.Client().Watch(t.Context(), "k", clientv3.WithPrefix())
		n.Inflict(Faults{Cut: true})
		began := make(chan clientv3.WatchChan)
		go func() { began <- n.Client().Watch(t.Context(), "k", clientv3.WithPrefix(), clientv3.WithRev(2)) }()
		want := []string{"k1", "k2", "k3", "k4"}
		for _, key := range want {
			put(t, other, key)
		}
		time.Sleep(time.Minute)
		if got := keysOf(first); got != nil {
			t.Errorf("%q in the cut", got)
		}
		n.Inflict(Faults{})
		second := <-began
		time.Sleep(2 * time.Second)
		for _, watch := range []clientv3.WatchChan{first, second} {
			if got := keysOf(watch); !slices.Equal(got, want) {
				t.Errorf("%q", got)
			}
		}
	})
}

// TestWatchCompacted: a watch that fell behind a compaction, or asks for what is compacted, is told and closed; a watch
// that has seen everything goes on.
func TestWatchCompacted(t *testing.T) {
	inBubble(t, func(t *testing.T, c *Cluster, n *Conn) {
		other := c.Connect("other")
		behind, current := n.Client().Watch(t.Context(), "a"), other.Client().Watch(t.Context(), "b")
		n.Inflict(Faults{Cut: true})
		put(t, other, "a")
		put(t, other, "b")
		time.Sleep(time.Second)
		c.Compact()
		put(t, other, "b")
		n.Inflict(Faults{})
		old := n.Client().Watch(t.Context(), "a", clientv3.WithRev(2))
		time.Sleep(time.Second)
		for _, watch := range []clientv3.WatchChan{behind, old} {
			if got, want := keysOf(watch), []string{rpctypes.ErrCompacted.Error(), "closed"}; !slices.Equal(got, want) {
				t.Errorf("%q, want %q", got, want)
			}
		}
		if got := keysOf(current); !slices.Equal(got, []string{"b", "b"}) {
			t.Errorf("%q", got)
		}
		_, err := n.Client().Get(t.Context(), "a", clientv3.WithRev(2))
		if !errors.Is(err, rpctypes.ErrCompacted) {
			t.Errorf("%v", err)
		}
	})
}

// TestDropEvents: some events of a watch are left out, the rest is in order.
func TestDropEvents(t *testing.T) {
	inBubble(t, func(t *testing.T, c *Cluster, n *Conn) {
		c.Inflict(Faults{DropEvent: 0.5})
		watch := n.Client().Watch(t.Context(), "k", clientv3.WithPrefix())
		for i := range 40 {
			put(t, n, fmt.Sprint("k", 10+i))
		}
		time.Sleep(time.Second)
		if got := keysOf(watch); len(got) < 5 || len(got) > 35 || !slices.IsSorted(got) {
			t.Errorf("%q", got)
		}
	})
}

// TestRestore: the store is what it was at the revision: its keys, its leases with a new term, and its count of
// revisions. A watch that saw more hears of nothing until the count is beyond that.
func TestRestore(t *testing.T) {
	inBubble(t, func(t *testing.T, c *Cluster, n *Conn) {
		ctx, api := t.Context(), n.Client()
		kept, err := api.Grant(ctx, 60)
		must(t, err)
		put(t, n, "a", clientv3.WithLease(kept.ID))
		back := put(t, n, "b")
		_, err = api.Revoke(ctx, kept.ID)
		must(t, err)
		undone, err := api.Grant(ctx, 60)
		must(t, err)
		put(t, n, "c", clientv3.WithLease(undone.ID))
		last := put(t, n, "b")
		watch := api.Watch(ctx, "d", clientv3.WithPrefix())
		if got := c.Restore(back); got != back || c.Revision() != back {
			t.Errorf("restored to %d, want %d", got, back)
		}
		got, err := api.Get(ctx, "", clientv3.WithPrefix())
		must(t, err)
		if len(got.Kvs) != 2 || got.Kvs[0].Lease != int64(kept.ID) || got.Kvs[1].Version != 1 || got.Header.Revision != back {
			t.Errorf("%v", got)
		}
		if _, err = api.Get(ctx, "a", clientv3.WithRev(last)); !errors.Is(err, rpctypes.ErrFutureRev) {
			t.Errorf("%v", err)
		}
		if _, err = api.KeepAliveOnce(ctx, undone.ID); !errors.Is(err, rpctypes.ErrLeaseNotFound) {
			t.Errorf("%v", err)
		}
		for rev := back; rev <= last; {
			rev = put(t, n, fmt.Sprint("d", rev+1))
		}
		time.Sleep(time.Second)
		if got, want := keysOf(watch), []string{fmt.Sprint("d", last+1)}; !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
		time.Sleep(time.Minute)
		if got := count(t, n, "a"); got != 0 {
			t.Error("the lease that came back does not end")
		}
		if log := c.Writes(); !slices.ContainsFunc(log, func(w Write) bool { return w.Restored && w.Revision == back }) || len(log) < 8 {
			t.Errorf("%+v", log)
		}
	})
}
