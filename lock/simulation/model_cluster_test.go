package simulation

import (
	"context"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// faults are what goes wrong on a connection, or on all of them when the cluster has them. The zero value is health.
type faults struct {
	cut         bool    // nothing comes through, in either direction
	lostRequest float64 // how likely a request never arrives, which its sender cannot know
	lostAnswer  float64 // how likely a request is done and its answer never arrives, which its sender cannot know
	busy        float64 // how likely a write is refused with "too many requests": it is not done, for sure
	dropEvent   float64 // how likely an event of a watch is left out
	slow        float64 // how many times longer everything takes; 0 is 1
	noSpace     bool    // what takes space is refused
}

// and are two sets of faults at once.
func (f faults) and(g faults) faults {
	return faults{
		cut: f.cut || g.cut, noSpace: f.noSpace || g.noSpace,
		lostRequest: max(f.lostRequest, g.lostRequest), lostAnswer: max(f.lostAnswer, g.lostAnswer),
		busy: max(f.busy, g.busy), dropEvent: max(f.dropEvent, g.dropEvent), slow: max(f.slow, 1) * max(g.slow, 1),
	}
}

// cluster is an etcd. It runs in the bubble of testing/synctest in which it was made.
//
// A seed replays exactly because no two things happen at the same virtual instant: each connection owns a nanosecond of
// every microsecond, and gives each thing a microsecond of its own. Timers of the code under test keep to it when their
// durations are whole microseconds. The test's own clock is nanosecond 0. Only connect, and goroutines that begin to
// use one connection at the same instant, have to be put in order by the caller.
type cluster struct {
	mu sync.Mutex // guards everything here and in the connections
	store
	rng         *rand.Rand
	seed        uint64
	connections []*connection
	names       map[string]uint64 // how often each name connected
	watches     []*watch
	faults      faults
	instants    instants
	closed      bool
}

func newCluster(rng *rand.Rand) *cluster {
	seed := rng.Uint64()
	return &cluster{
		store: newStore(), seed: seed, rng: rand.New(rand.NewPCG(seed, 0)), names: map[string]uint64{}, instants: instants{class: 1},
	}
}

// connect is a new process that uses the cluster: a name that connects again is another connection with other luck.
func (c *cluster) connect(name string) *connection {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.names[name]++
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(name)) // it never fails
	n := &connection{
		cluster: c, name: name, rng: rand.New(rand.NewPCG(c.seed+c.names[name], hash.Sum64())), dead: make(chan struct{}),
		instants: instants{class: int64(2 + len(c.connections)%998)}, // more connections than that share them
	}
	c.connections = append(c.connections, n)
	if c.faults.cut {
		n.healed = make(chan struct{})
	}
	n.api = clientv3.NewCtxClient(context.Background())
	n.api.KV = clientv3.NewKVFromKVClient(&kvClient{n: n}, nil)
	n.api.Lease = &leaser{Lease: clientv3.NewLeaseFromLeaseClient(&leaseClient{n: n}, nil, 0), n: n}
	n.api.Watcher = &watcher{n}
	return n
}

// inflict sets the faults of all connections, beside their own. inflict(faults{}) heals.
func (c *cluster) inflict(f faults) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.faults = f
	for _, n := range c.connections {
		n.link()
	}
}

// compact forgets all history before the present revision.
func (c *cluster) compact() {
	c.mu.Lock()
	defer c.mu.Unlock()
	_ = c.store.compact(c.revision) // it is compacted already
}

// restore brings the store back to what it was at an older revision that is not compacted, and says to which: it goes
// on from there. Watches stay as they are: what is written below the revisions that they have seen is nothing to them,
// as with etcd.
func (c *cluster) restore(revision int64) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rewind(min(max(revision, c.compacted, 1), c.revision))
	for _, id := range slices.Sorted(maps.Keys(c.leases)) {
		if l := c.leases[id]; l.ended == 0 {
			c.renew(l)
		}
	}
	return c.revision
}

// writes is everything that was ever written, in order.
func (c *cluster) writes() []write {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.log)
}

// now is the present revision.
func (c *cluster) now() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.revision
}

// close ends all connections and timers. What waits in them returns.
func (c *cluster) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	for _, l := range c.leases {
		l.timer.Stop()
	}
	for _, n := range c.connections {
		n.end()
	}
}

// notify hands events of one revision to the watches.
func (c *cluster) notify(events []*mvccpb.Event) {
	if len(events) == 0 {
		return
	}
	for _, w := range c.watches {
		w.offer(events)
	}
}

// instants gives out moments of the virtual clock, each once.
type instants struct {
	class int64 // the nanosecond within a microsecond
	taken []int64
}

// at is the first free instant after a while.
func (i *instants) at(after time.Duration) time.Time {
	now := time.Now()
	i.taken = slices.DeleteFunc(i.taken, func(t int64) bool { return t <= now.UnixNano() })
	t := now.Add(after).UnixMicro()*1000 + i.class
	for t <= now.UnixNano() || slices.Contains(i.taken, t) {
		t += 1000
	}
	i.taken = append(i.taken, t)
	return time.Unix(0, t)
}

// free gives an instant back at which nothing will happen.
func (i *instants) free(t time.Time) {
	if n := slices.Index(i.taken, t.UnixNano()); n >= 0 {
		i.taken = slices.Delete(i.taken, n, n+1)
	}
}
