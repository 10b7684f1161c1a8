package etcdmodel

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

// Faults sets the faults of a connection, or of all connections of a cluster. The zero value has none.
type Faults struct {
	Cut         bool    // nothing comes through, in either direction
	LostRequest float64 // how likely a request never arrives, which its sender cannot know
	LostAnswer  float64 // how likely a request is done and its answer never arrives, which its sender cannot know
	Busy        float64 // how likely a write is refused with "too many requests": it is not done, for sure
	DropEvent   float64 // how likely an event of a watch is left out
	Slow        float64 // how many times longer everything takes; 0 is 1
	NoSpace     bool    // what takes space is refused
}

// and are two sets of faults at once.
func (f Faults) and(g Faults) Faults {
	return Faults{
		Cut: f.Cut || g.Cut, NoSpace: f.NoSpace || g.NoSpace,
		LostRequest: max(f.LostRequest, g.LostRequest), LostAnswer: max(f.LostAnswer, g.LostAnswer),
		Busy: max(f.Busy, g.Busy), DropEvent: max(f.DropEvent, g.DropEvent), Slow: max(f.Slow, 1) * max(g.Slow, 1),
	}
}

// Cluster is a model of etcd. It runs in the bubble of testing/synctest in which New was called.
//
// A seed replays exactly because no two things happen at the same virtual instant: each connection owns a nanosecond of
// every microsecond, and gives each thing a microsecond of its own. Timers of the code under test keep to it when their
// durations are whole microseconds. The test's own clock is nanosecond 0. Only Connect, and goroutines that begin to
// use one connection at the same instant, have to be put in order by the caller.
type Cluster struct {
	mu sync.Mutex // guards everything here and in the connections
	store
	rng         *rand.Rand
	seed        uint64
	connections []*Conn
	names       map[string]uint64 // how often each name connected
	watches     []*watch
	faults      Faults
	instants    instants
	closed      bool
}

// New returns an empty cluster whose latencies, faults and lease IDs come from rng. The caller has to close it.
func New(rng *rand.Rand) *Cluster {
	seed := rng.Uint64()
	return &Cluster{
		store: newStore(), seed: seed, rng: rand.New(rand.NewPCG(seed, 0)), names: map[string]uint64{},
		instants: instants{class: 1},
	}
}

// Connect returns the connection of a new process. A name that connects again gets another connection, with other luck.
func (c *Cluster) Connect(name string) *Conn {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.names[name]++
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(name)) // it never fails
	n := &Conn{
		cluster: c, name: name, rng: rand.New(rand.NewPCG(c.seed+c.names[name], hash.Sum64())),
		dead:     make(chan struct{}),
		instants: instants{class: int64(2 + len(c.connections)%998)}, // more connections than that share them
	}
	c.connections = append(c.connections, n)
	if c.faults.Cut {
		n.healed = make(chan struct{})
	}
	n.api = clientv3.NewCtxClient(context.Background())
	n.api.KV = clientv3.NewKVFromKVClient(&kvClient{n: n}, nil)
	n.api.Lease = &leaser{Lease: clientv3.NewLeaseFromLeaseClient(&leaseClient{n: n}, nil, 0), n: n}
	n.api.Watcher = &watcher{n}
	return n
}

// Inflict sets the faults of all connections, in addition to their own. Inflict(Faults{}) heals the cluster.
func (c *Cluster) Inflict(f Faults) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.faults = f
	for _, n := range c.connections {
		n.link()
	}
}

// Compact discards all history before the current revision.
func (c *Cluster) Compact() {
	c.mu.Lock()
	defer c.mu.Unlock()
	_ = c.store.compact(c.revision) // it is compacted already
}

// Restore puts the store back to an older revision that is not compacted, as an operator does with a backup, and
// returns that revision. Watches continue: as in etcd, they deliver nothing below the revisions that they have seen.
func (c *Cluster) Restore(revision int64) int64 {
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

// Writes returns every write since the cluster was made, in order. Compact and Restore remove none of them. The caller
// must not change the elements.
func (c *Cluster) Writes() []Write {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clip(c.log)
}

// Revision returns the current revision.
func (c *Cluster) Revision() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.revision
}

// Close ends all connections and timers. Calls and watches that wait in them return.
func (c *Cluster) Close() {
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
func (c *Cluster) notify(events []*mvccpb.Event) {
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
