package lock

import (
	"context"
	"errors"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// The times after which a node that waits looks for itself, whatever it was told.
const (
	headPoll  = 30 * time.Second      // the first in the queue
	queuePoll = 90 * time.Second      // the others
	eachPoll  = 60 * time.Millisecond // of a large group, for each of its nodes: all of them together look no more often than that
	session   = 60 * time.Second      // how long a ticket outlives its process

	// Patience is how long a node waits for those who hold places before it asks how they are.
	Patience      = headPoll / 2
	triedFor      = 20 * time.Second
	herd          = 300 * time.Millisecond // longer than a ticket takes where few want one
	overtakeAfter = 4 * time.Second        // a place that is free for so long: who comes first does not ask for it
)

func (t *Turn) acquire(ctx context.Context) error {
	defer t.hush()
	var last *Wait
	var idle *reading // where it polled and saw room although others come first: they may be gone
	polled := false
	for attempt := 0; ; attempt++ {
		wait, r, err := t.next(ctx, idle)
		switch {
		case err == nil && wait == nil || errors.Is(err, ErrSuperseded):
			return err
		case ctx.Err() != nil && last != nil:
			return last // it ended while the store was asked: the last answer stands
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, ErrMoved):
			sleep(ctx, jitter(t.req.node(), attempt, 20*time.Millisecond))
			continue
		case err != nil:
			last = t.told(etcdAway(t.store.Explain(err)))
			sleep(ctx, jitter(t.req.node(), attempt, min(5*time.Second, 50*time.Millisecond<<min(attempt, 10))))
			continue
		}
		if r.alive != t.req.Presence.Revision { // waiting would not help
			return wait
		}
		if polled && r.view.roomBehind() {
			polled, idle = false, r
			sleep(ctx, jitter(t.req.node(), attempt, overtakeAfter))
			continue
		}
		last, idle, attempt = t.told(wait), nil, 0
		if polled, err = t.await(ctx, r); err != nil {
			return last
		}
	}
}

// next is an attempt. What Try saw just now is not asked again.
func (t *Turn) next(ctx context.Context, idle *reading) (*Wait, *reading, error) {
	tried := t.tried
	if t.tried = nil; tried != nil && time.Since(tried.at) < triedFor {
		return tried.wait, tried, nil
	}
	return t.attempt(ctx, idle)
}

// hush ends listening to the bell.
func (t *Turn) hush() {
	t.head = false
	if t.bell != nil {
		t.bell.Close()
		t.bell = nil
	}
}

// listen waits as state.Store.Await does. The first in the queue keeps listening to the bell while it looks, and while
// it listens for the first time nothing is waited for: it looks for what came before.
func (t *Turn) listen(ctx context.Context, key string, after int64, poll time.Duration, opts []clientv3.OpOption) bool {
	switch {
	case key != t.store.BellKey():
		t.hush()
		return t.store.Await(ctx, key, after, poll, opts...)
	case t.bell == nil:
		t.bell, t.head = t.store.Listen(ctx, key), true
	case !t.bell.Await(ctx, after, poll):
		t.hush()
		sleep(ctx, time.Second) // not so fast again
	}
	return ctx.Err() == nil
}

// await waits for the one key that matters: the ticket ahead, or for the first in the queue the bell. It reports that
// it polled.
func (t *Turn) await(ctx context.Context, r *reading) (polled bool, err error) {
	key, poll, opts := t.watched(r)
	defer func() { // who was ahead is gone: most likely the node is the first now
		t.head = t.head || key == r.ahead && !polled && err == nil
	}()
	began := time.Now()
	poll = jitter(t.req.node(), int(r.revision), poll)
	for {
		step := poll - time.Since(began)
		if t.session != 0 {
			step = min(step, session/3-time.Since(t.renewed))
		}
		asked := time.Now()
		if step > 0 && !t.listen(ctx, key, r.revision, step, opts) {
			return false, ctx.Err()
		}
		if t.session != 0 && time.Since(t.renewed) >= session/3 {
			if _, err := t.store.Client.KeepAliveOnce(ctx, t.session); err != nil {
				t.queued, t.session = false, 0 // the ticket is gone with it: queue again
				return false, nil
			}
			t.renewed = time.Now()
		}
		if over := time.Since(began) >= poll; over || time.Since(asked) < step {
			return over, nil
		}
	}
}

// watched is the key that ends the wait when it changes. What ends by itself does not ring the bell: it goes with its
// lease.
func (t *Turn) watched(r *reading) (key string, poll time.Duration, opts []clientv3.OpOption) {
	if r.ahead != "" && !t.aside {
		return r.ahead, max(
				queuePoll,
				time.Duration(max(t.size, r.older))*eachPoll,
			), []clientv3.OpOption{
				clientv3.WithFilterPut(),
			}
	}
	if w := r.view.Switch; w != nil && (t.aside || !w.Until.IsZero()) {
		return r.switchKey, headPoll, nil
	}
	if !r.view.Grace.IsZero() {
		return t.store.GraceKey(), headPoll, nil
	}
	for _, d := range r.view.Depends {
		if d.Soaking {
			return t.store.SoakKey(t.req.rollout(), d.Group), headPoll, nil
		}
	}
	return t.store.BellKey(), t.stallPoll(r), nil
}

// stallPoll is when the first in the queue looks for itself: nobody tells it that the progress deadline passed, and a
// holder that finishes behind it sets it going again.
func (t *Turn) stallPoll(r *reading) time.Duration {
	if !r.view.Timed || len(r.view.Claims) == 0 {
		return headPoll
	}
	return min(headPoll, max(time.Second, t.req.Rules.Deadline))
}
