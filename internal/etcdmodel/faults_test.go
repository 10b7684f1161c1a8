package etcdmodel

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// inBubble runs a test in virtual time with a cluster and a connection.
func inBubble(t *testing.T, f func(t *testing.T, c *Cluster, n *Conn)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c := New(rand.New(rand.NewPCG(7, 7)))
		defer c.Close()
		f(t, c, c.Connect("n"))
	})
}

// put writes a key's name into it and must succeed.
func put(t *testing.T, n *Conn, key string, opts ...clientv3.OpOption) int64 {
	t.Helper()
	got, err := n.Client().Put(t.Context(), key, key, opts...)
	must(t, err)
	return got.Header.Revision
}

// count is how many keys there are below a prefix.
func count(t *testing.T, n *Conn, prefix string) int64 {
	t.Helper()
	got, err := n.Client().Get(t.Context(), prefix, clientv3.WithPrefix(), clientv3.WithCountOnly())
	must(t, err)
	return got.Count
}

// took fails unless a time has passed since a start, or a little more.
func took(t *testing.T, start time.Time, want time.Duration) {
	t.Helper()
	if d := time.Since(start); d < want || d > want+time.Second {
		t.Errorf("it took %s, want %s", d, want)
	}
}

// TestCut: calls through a cut line end with their context or after ten seconds, with an error that says "unreachable";
// reads and writes work again when it is whole.
func TestCut(t *testing.T) {
	inBubble(t, func(t *testing.T, c *Cluster, n *Conn) {
		n.Inflict(Faults{Cut: true})
		start := time.Now()
		_, err := n.Client().Get(t.Context(), "a")
		if code := status.Code(err); code != codes.Unavailable && code != codes.DeadlineExceeded {
			t.Errorf("%v", err)
		}
		took(t, start, operationLimit)
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		start = time.Now()
		if _, err = n.Client().Put(ctx, "a", ""); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v", err)
		}
		took(t, start, 2*time.Second)
		put(t, c.Connect("other"), "b")
		time.AfterFunc(3*time.Second, func() { n.Inflict(Faults{}) })
		start = time.Now()
		put(t, n, "c") // it hangs until then
		took(t, start, 3*time.Second)
	})
}

// TestCutCluster: a cut of the whole cluster holds for all connections, also new ones, and does not heal one that is
// cut itself.
func TestCutCluster(t *testing.T) {
	inBubble(t, func(t *testing.T, c *Cluster, n *Conn) {
		n.Inflict(Faults{Cut: true})
		c.Inflict(Faults{Cut: true})
		m := c.Connect("m")
		for _, one := range []*Conn{n, m} {
			if _, err := one.Client().Get(t.Context(), "a"); err == nil {
				t.Errorf("%s is not cut", one.name)
			}
		}
		c.Inflict(Faults{})
		put(t, m, "a")
		if _, err := n.Client().Get(t.Context(), "a"); err == nil {
			t.Error("the connection's own cut was healed")
		}
	})
}

// TestLateRequest: what was sent into a cut line and given up may arrive when it is whole, or never.
func TestLateRequest(t *testing.T) {
	inBubble(t, func(t *testing.T, c *Cluster, n *Conn) {
		const tries = 40
		m := c.Connect("m")
		for i := range tries {
			n.Inflict(Faults{Cut: true})
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			if _, err := n.Client().Put(ctx, fmt.Sprint("k/", i), ""); err == nil {
				t.Error("it came through")
			}
			cancel()
			if got := count(t, m, fmt.Sprint("k/", i)); got != 0 {
				t.Error("written while the line is cut")
			}
			n.Inflict(Faults{})
			time.Sleep(time.Second)
		}
		if got := count(t, m, "k/"); got == 0 || got == tries {
			t.Errorf("%d of %d came late: want some", got, tries)
		}
	})
}

// TestLost: of a lost answer and a lost request the caller sees the same; one is done and one is not.
func TestLost(t *testing.T) {
	inBubble(t, func(t *testing.T, c *Cluster, n *Conn) {
		seen := [2]map[string]bool{{}, {}}
		for i, f := range []Faults{{LostAnswer: 1}, {LostRequest: 1}} {
			for try := range 20 {
				n.Inflict(f)
				_, err := n.Client().Put(t.Context(), fmt.Sprint(i, "/", try), "")
				if status.Code(err) != codes.Unavailable && !errors.Is(err, rpctypes.ErrTimeout) {
					t.Fatalf("%v", err)
				}
				seen[i][err.Error()] = true
			}
			n.Inflict(Faults{})
			time.Sleep(time.Minute)
			if got, want := count(t, n, fmt.Sprint(i, "/")), int64(20*(1-i)); got != want {
				t.Errorf("faults %+v: %d written, want %d", f, got, want)
			}
		}
		if fmt.Sprint(seen[0]) != fmt.Sprint(seen[1]) {
			t.Errorf("they can be told apart: %v", seen)
		}
	})
}

// TestBusy: a write that is refused is not done; reads go through.
func TestBusy(t *testing.T) {
	inBubble(t, func(t *testing.T, c *Cluster, n *Conn) {
		c.Inflict(Faults{Busy: 1})
		_, err := n.Client().Txn(t.Context()).Then(clientv3.OpPut("a", "")).Commit()
		_, granting := n.Client().Grant(t.Context(), 10)
		if !errors.Is(err, rpctypes.ErrTooManyRequests) || !errors.Is(granting, rpctypes.ErrTooManyRequests) {
			t.Errorf("%v, %v", err, granting)
		}
		if got := count(t, n, "a"); got != 0 {
			t.Error("it was done")
		}
	})
}

// TestSlow: everything takes longer by the factor.
func TestSlow(t *testing.T) {
	inBubble(t, func(t *testing.T, c *Cluster, n *Conn) {
		start := time.Now()
		put(t, n, "a")
		quick := time.Since(start)
		n.Inflict(Faults{Slow: 10})
		c.Inflict(Faults{Slow: 4})
		start = time.Now()
		put(t, n, "a")
		if d := time.Since(start); d < 40*latencyLeast || d < quick {
			t.Errorf("%s, and %s when slow", quick, d)
		}
	})
}

// TestNoSpace: what takes space is refused, also in a branch that is not taken; what frees it, renews or reads works.
func TestNoSpace(t *testing.T) {
	inBubble(t, func(t *testing.T, c *Cluster, n *Conn) {
		ctx, api := t.Context(), n.Client()
		lease, err := api.Grant(ctx, 60)
		must(t, err)
		put(t, n, "a", clientv3.WithLease(lease.ID))
		put(t, n, "b")
		c.Inflict(Faults{NoSpace: true})
		_, putting := api.Put(ctx, "c", "")
		_, granting := api.Grant(ctx, 60)
		nested := clientv3.OpTxn(nil, nil, []clientv3.Op{clientv3.OpPut("c", "")})
		_, branching := api.Txn(ctx).Then(clientv3.OpDelete("b")).Else(nested).Commit()
		for _, err := range []error{putting, granting, branching} {
			if !errors.Is(err, rpctypes.ErrNoSpace) {
				t.Errorf("%v", err)
			}
		}
		_, err = api.KeepAliveOnce(ctx, lease.ID)
		must(t, err)
		_, err = api.Txn(ctx).Then(clientv3.OpDelete("b")).Commit()
		must(t, err)
		_, err = api.Revoke(ctx, lease.ID)
		must(t, err)
		if got := count(t, n, ""); got != 0 {
			t.Errorf("%d keys are left", got)
		}
	})
}

// TestKill: from then on nothing of the process happens, but for what was on its way, of which some arrives.
func TestKill(t *testing.T) {
	inBubble(t, func(t *testing.T, c *Cluster, n *Conn) {
		const tries = 100
		other := c.Connect("other")
		written := 0
		for i := range tries {
			victim := c.Connect("victim")
			key := fmt.Sprint("k/", i)
			watch := victim.Client().Watch(t.Context(), key)
			time.AfterFunc(time.Millisecond, victim.Kill)
			if _, err := victim.Client().Put(t.Context(), key, ""); !errors.Is(err, context.Canceled) && err != nil {
				t.Fatalf("%v", err)
			}
			start := time.Now()
			_, err := victim.Client().Put(t.Context(), "after", "")
			_, renewing := victim.Client().KeepAliveOnce(t.Context(), 1)
			if !errors.Is(err, context.Canceled) || !errors.Is(renewing, context.Canceled) || time.Since(start) != 0 {
				t.Fatalf("%v, %v after %s", err, renewing, time.Since(start))
			}
			for range watch { // it is closed
			}
			if _, open := <-victim.Client().Watch(t.Context(), key); open {
				t.Fatal("a watch of the dead")
			}
			written += int(count(t, other, key))
		}
		time.Sleep(time.Minute)
		if late := int(count(t, other, "k/")); written == 0 || late == tries || count(t, other, "after") != 0 {
			t.Errorf("%d and then %d of %d arrived: want some", written, late, tries)
		}
	})
}

// TestExpiry: a lease that nobody renews ends not before its term and at most a second later, with all its keys in one
// revision.
func TestExpiry(t *testing.T) {
	inBubble(t, func(t *testing.T, c *Cluster, n *Conn) {
		lease, err := n.Client().Grant(t.Context(), 10)
		must(t, err)
		put(t, n, "a", clientv3.WithLease(lease.ID))
		put(t, n, "b", clientv3.WithLease(lease.ID))
		put(t, n, "b") // it lets go of the lease
		put(t, n, "c", clientv3.WithLease(lease.ID))
		time.Sleep(8 * time.Second)
		_, err = n.Client().KeepAliveOnce(t.Context(), lease.ID)
		must(t, err)
		renewed := time.Now()
		time.Sleep(20 * time.Second)
		log := c.Writes()
		ends := log[len(log)-2:]
		if len(log) != 6 || ends[0].Key != "a" || ends[1].Key != "c" || ends[0].Revision != ends[1].Revision || !ends[1].Deleted || ends[1].By != "" {
			t.Errorf("%+v", ends)
		}
		if after := ends[0].Time.Sub(renewed); after < 9*time.Second || after > 11*time.Second {
			t.Errorf("ended %s after the renewal", after)
		}
		if _, err = n.Client().KeepAliveOnce(t.Context(), lease.ID); !errors.Is(err, rpctypes.ErrLeaseNotFound) {
			t.Errorf("%v", err)
		}
	})
}

// TestKeepAlive: a lease lives while it is renewed; the channel closes when the line is cut for longer than it lives.
func TestKeepAlive(t *testing.T) {
	inBubble(t, func(t *testing.T, c *Cluster, n *Conn) {
		lease, err := n.Client().Grant(t.Context(), 10)
		must(t, err)
		put(t, n, "a", clientv3.WithLease(lease.ID))
		renewals, err := n.Client().KeepAlive(t.Context(), lease.ID)
		must(t, err)
		time.Sleep(time.Hour)
		if got := count(t, n, "a"); got != 1 {
			t.Error("the lease ended")
		}
		n.Inflict(Faults{Cut: true})
		start := time.Now()
		for range renewals {
		}
		if d := time.Since(start); d < 5*time.Second || d > 11*time.Second {
			t.Errorf("closed after %s", d)
		}
		time.Sleep(10 * time.Second)
		if log := c.Writes(); !log[len(log)-1].Deleted {
			t.Error("the lease lives")
		}
	})
}
