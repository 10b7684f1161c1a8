package event

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pullet/pullet/state"
)

// counted counts the requests of a client.
type counted struct {
	clientv3.KV
	requests atomic.Int64
}

func (c *counted) Get(ctx context.Context, key string, opts ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	c.requests.Add(1)
	return c.KV.Get(ctx, key, opts...)
}

func (c *counted) Txn(ctx context.Context) clientv3.Txn {
	c.requests.Add(1)
	return c.KV.Txn(ctx)
}

// openStore is the record of a fleet on an etcd of its own.
func openStore(tb testing.TB) *state.Store {
	tb.Helper()
	store, err := state.Open(tb.Context(), state.Config{Fleet: "f", Dir: tb.TempDir()})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := store.Close(); err != nil {
			tb.Error(err)
		}
	})
	return store
}

// reactorOf is a reactor on a host, for some reactions.
func reactorOf(store *state.Store, node string, reactions ...*Reaction) *Reactor {
	log := logrus.New()
	log.SetOutput(io.Discard)
	var runs atomic.Int64
	return &Reactor{
		Store: store, Node: node, Log: logrus.NewEntry(log), NewID: func() string { return fmt.Sprintf("%s-r%d", node, runs.Add(1)) },
		Rules: func(context.Context) (Rules, error) {
			return Rules{Version: "v1", Reactions: reactions, Find: func(host string) (string, bool) { return host, true }}, nil
		},
	}
}

// storm has so many hosts tell the same event at the same time.
func storm(tb testing.TB, store *state.Store, hosts int) {
	tb.Helper()
	var all sync.WaitGroup
	next := make(chan int)
	for range 64 {
		all.Go(func() {
			for i := range next {
				by := fmt.Sprintf("web%05d", i)
				e := state.Event{
					ID: "20260301T120000Z-" + by, Name: "pullet/step/failed", By: by, Time: time.Now().UTC(), Hosts: []string{by},
					Data: map[string]any{"step": "restart nginx", "job": "nginx", "reason": "exit code 1"},
				}
				if n, err := store.Events.Tell(context.Background(), by, []state.Event{e}, 0); n != 1 || err != nil {
					tb.Errorf("%s: %d %v", by, n, err)
				}
			}
		})
	}
	for i := range hosts {
		next <- i
	}
	close(next)
	all.Wait()
}

// stormLeft is what a storm leaves on record.
type stormLeft struct {
	keys, bytes, occurrences int
	runs                     []state.ReactionStatus
}

// afterStorm is what the reactor made of a storm.
func afterStorm(tb testing.TB, store *state.Store) (left stormLeft) {
	tb.Helper()
	got, err := store.Client.Get(tb.Context(), "/pullet/f/", clientv3.WithPrefix())
	if err != nil {
		tb.Fatal(err)
	}
	for _, kv := range got.Kvs {
		if !strings.HasPrefix(string(kv.Key), "/pullet/f/outbox/") {
			left.keys, left.bytes = left.keys+1, left.bytes+len(kv.Key)+len(kv.Value)
		}
	}
	if left.runs, err = store.Reactions.List(tb.Context()); err != nil {
		tb.Fatal(err)
	}
	for _, run := range left.runs {
		left.occurrences += run.Event.Occurrences
	}
	return left
}

// TestStorm: what many hosts tell at the same time is answered in one run, and leaves few records.
func TestStorm(t *testing.T) {
	store := openStore(t)
	const hosts = 300
	storm(t, store, hosts)
	r := reaction("a", "pullet/step/*", false)
	r.Limiter.Delay = time.Hour
	if err := reactorOf(store, "web1", r).Once(t.Context()); err != nil {
		t.Fatal(err)
	}
	left := afterStorm(t, store)
	if len(left.runs) != 1 || left.occurrences != hosts || left.keys > 10 || left.bytes > 100<<10 {
		t.Errorf("%d runs for %d occurrences, %d keys with %d bytes", len(left.runs), left.occurrences, left.keys, left.bytes)
	}
	pages, err := store.EventLog.Newest(t.Context(), 0, 10)
	if err != nil || len(pages) != 1 || len(pages[0].Events) != 1 || pages[0].Events[0].Count != hosts {
		t.Errorf("%+v %v", pages, err)
	}
}

// BenchmarkStorm: 10,000 hosts tell the same event in the same second: the requests of the reactor, and the keys and
// bytes that it leaves beside the outboxes, where one run answers all and where each host answers its own.
func BenchmarkStorm(b *testing.B) {
	for name, perHost := range map[string]bool{"one": false, "each host": true} {
		b.Run(name, func(b *testing.B) {
			for range b.N {
				b.StopTimer()
				store := openStore(b)
				const hosts = 10_000
				storm(b, store, hosts)
				requests := &counted{KV: store.Client.KV}
				store.Client.KV = requests
				r := reaction("a", "pullet/step/*", perHost)
				r.Limiter.Delay = time.Hour
				b.StartTimer()
				if err := reactorOf(store, "web1", r).Once(b.Context()); err != nil {
					b.Fatal(err)
				}
				b.StopTimer()
				left := afterStorm(b, store)
				asked := 0
				for _, run := range left.runs {
					asked += len(run.Hosts)
				}
				waiting, err := store.EventLog.Waiting(b.Context())
				if err != nil || len(waiting) > 0 || len(left.runs) == 0 || perHost && asked != hosts {
					b.Fatalf("%d events are not read, %d runs on %d hosts: %v", len(waiting), len(left.runs), asked, err)
				}
				b.ReportMetric(float64(requests.requests.Load()), "requests")
				b.ReportMetric(float64(left.keys), "keys")
				b.ReportMetric(float64(left.bytes), "bytes")
				b.ReportMetric(float64(len(left.runs)), "runs")
			}
		})
	}
}
