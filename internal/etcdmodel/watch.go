package etcdmodel

import (
	"context"
	"slices"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// watcher makes watches on a connection.
type watcher struct{ n *Conn }

// watch is one watch. What the cluster has for it waits in queue until it arrives.
type watch struct {
	n        *Conn
	key, end string
	op       clientv3.Op
	next     int64 // revision below which nothing is of interest
	behind   bool  // that is compacted
	queue    []delivery
	wake     chan struct{} // there is something in queue
	last     time.Time     // when the last delivery arrives
	out      chan clientv3.WatchResponse
}

// delivery is an answer on its way.
type delivery struct {
	arrives time.Time
	again   time.Duration // how long it takes once a cut line is whole
	events  []*mvccpb.Event
}

// Watch returns when the server has the watch: as etcd's client does, it waits for it.
func (w *watcher) Watch(ctx context.Context, key string, opts ...clientv3.OpOption) clientv3.WatchChan {
	op := clientv3.OpWatch(key, opts...)
	if op.IsPrevKV() || op.IsCreatedNotify() {
		panic("the model's watches have neither previous values nor notices of creation")
	}
	key = string(op.KeyBytes()) // "" with a prefix is spelled otherwise
	s := &watch{
		n: w.n, key: key, end: string(op.RangeBytes()), op: op,
		wake: make(chan struct{}, 1), out: make(chan clientv3.WatchResponse, 1),
	}
	if s.open(ctx) {
		go s.run(ctx)
	} else {
		close(s.out)
	}
	return s.out
}

// RequestProgress is not in the model.
func (w *watcher) RequestProgress(context.Context) error {
	panic("the model's watches do not notify of progress")
}

// Close ends the connection.
func (w *watcher) Close() error {
	w.n.Kill()
	return nil
}

// open registers the watch; false when the caller or the process was gone first.
func (w *watch) open(ctx context.Context) bool {
	c := w.n.cluster
	c.mu.Lock()
	if w.n.isDead() {
		c.mu.Unlock()
		return false
	}
	l := w.n.luck(0)
	c.mu.Unlock()
	if w.n.travel(ctx, l, l.there, l.afterThere, nil) != nil {
		return false
	}
	w.next = w.op.Rev()
	if w.next == 0 {
		w.next = c.revision + 1
	}
	if w.behind = w.next < c.compacted; !w.behind {
		c.watches = append(c.watches, w)
		w.offer(c.since(w.next))
	}
	c.mu.Unlock()
	if w.n.travel(ctx, l, l.back, l.afterBack, nil) != nil {
		c.unwatch(w)
		return false
	}
	c.mu.Unlock()
	return true
}

// offer puts what the watch wants of some events on its way, behind what is there already.
func (w *watch) offer(events []*mvccpb.Event) {
	var mine []*mvccpb.Event
	drop := w.n.wrong().DropEvent
	for _, e := range events {
		put := e.Type == mvccpb.Event_PUT
		filtered := put && w.op.IsFilterPut() || !put && w.op.IsFilterDelete()
		wanted := e.Kv.ModRevision >= w.next && inRange(string(e.Kv.Key), w.key, w.end) && !filtered
		if wanted && (drop == 0 || !w.n.chance(drop)) {
			mine = append(mine, e)
		}
	}
	if len(events) > 0 {
		w.next = max(w.next, events[len(events)-1].Kv.ModRevision+1)
	}
	if len(mine) == 0 {
		return
	}
	w.last = w.n.instants.at(max(w.n.latency(), time.Until(w.last)))
	w.queue = append(w.queue, delivery{w.last, w.n.latency(), mine})
	select {
	case w.wake <- struct{}{}:
	default: // it is told already
	}
}

// run delivers until the context or the process ends, or the watch fell behind a compaction.
func (w *watch) run(ctx context.Context) {
	defer close(w.out)
	defer w.n.cluster.unwatch(w)
	if w.behind {
		w.send(ctx, w.n.cluster.answer(nil, true))
		return
	}
	for {
		d, ok := w.receive(ctx)
		if !ok {
			return
		}
		stalled, err := w.await(ctx, d)
		if err != nil {
			return
		}
		// After a cut the client asks again from where it was: that may be compacted.
		answer := w.n.cluster.answer(d.events, stalled)
		if !w.send(ctx, answer) || answer.Canceled {
			return
		}
	}
}

// receive is the next delivery; false when there will be none.
func (w *watch) receive(ctx context.Context) (delivery, bool) {
	for {
		w.n.cluster.mu.Lock()
		if len(w.queue) > 0 {
			d := w.queue[0]
			w.queue = w.queue[1:]
			w.n.cluster.mu.Unlock()
			return d, true
		}
		w.n.cluster.mu.Unlock()
		if w.n.wait(ctx, &luck{}, time.Time{}, w.wake) != nil {
			return delivery{}, false
		}
	}
}

// await waits until a delivery has arrived, and says whether a cut line held it up.
func (w *watch) await(ctx context.Context, d delivery) (stalled bool, err error) {
	for {
		if err := w.n.wait(ctx, &luck{}, d.arrives, nil); err != nil {
			return stalled, err
		}
		w.n.cluster.mu.Lock()
		healed := w.n.healed
		w.n.cluster.mu.Unlock()
		if healed == nil {
			return stalled, nil
		}
		stalled = true
		if err := w.n.wait(ctx, &luck{}, time.Time{}, healed); err != nil {
			return stalled, err
		}
		w.n.cluster.mu.Lock()
		d.arrives = w.n.instants.at(d.again)
		w.n.cluster.mu.Unlock()
	}
}

// answer is what the client gets for events; of a watch that asked anew it may be that they are compacted.
func (c *Cluster) answer(events []*mvccpb.Event, anew bool) clientv3.WatchResponse {
	c.mu.Lock()
	defer c.mu.Unlock()
	if anew && (len(events) == 0 || events[0].Kv.ModRevision < c.compacted) {
		return clientv3.WatchResponse{Header: c.header(), Canceled: true, CompactRevision: c.compacted}
	}
	return clientv3.WatchResponse{Header: c.header(), Events: events}
}

// send hands an answer to whoever reads; false when the context or the process ends first.
func (w *watch) send(ctx context.Context, answer clientv3.WatchResponse) bool {
	select {
	case w.out <- answer:
		return true
	case <-ctx.Done():
	case <-w.n.dead:
	}
	return false
}

// unwatch takes a watch off the list.
func (c *Cluster) unwatch(w *watch) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.watches = slices.DeleteFunc(c.watches, func(other *watch) bool { return other == w })
}
