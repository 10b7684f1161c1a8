package lock

import (
	"context"
	"errors"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pullet/pullet/state"
)

// The times after which a node that waits looks for itself, whatever it was told.
const (
	headPoll  = 30 * time.Second // the first in the queue
	queuePoll = 90 * time.Second // the others
	// of a large group, for each of its nodes: all of them together look no more often than that
	eachPoll = 60 * time.Millisecond
	session  = 60 * time.Second // how long a ticket outlives its process

	// Patience is how long a node waits for those who hold places before it asks how they are.
	Patience      = headPoll / 2
	triedFor      = 20 * time.Second
	slowTicket    = 300 * time.Millisecond // longer than a ticket takes where few want one
	overtakeAfter = 4 * time.Second        // a place that is free for so long: who comes first does not ask for it
)

func (t *Turn) acquire(ctx context.Context) error {
	defer t.bell.stop()
	var last *Wait
	var idle *reading // where it polled and saw room although others come first: they may be gone
	polled := false
	for attempt := 0; ; attempt++ {
		wait, r, err := t.next(ctx, idle)
		switch {
		case err == nil && wait == nil || errors.Is(err, ErrSuperseded) || wentBack(err):
			return err
		case ctx.Err() != nil && last != nil:
			return last // it ended while the store was asked: the last answer stands, unless leaving the queue fails
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, ErrMoved):
			state.Pause(ctx, jitter(t.req.node(), attempt, 20*time.Millisecond))
			continue
		case err != nil:
			last = t.waiting.notify(etcdAway(t.store.Explain(err)))
			state.Pause(ctx, jitter(t.req.node(), attempt, min(5*time.Second, 50*time.Millisecond<<min(attempt, 10))))
			continue
		}
		if r.alive != t.req.Presence.Revision || wait.Kind == state.WaitReaction { // waiting would not help
			return t.waiting.notify(wait)
		}
		if polled && r.view.roomBehindQueue() {
			polled, idle = false, r
			state.Pause(ctx, jitter(t.req.node(), attempt, overtakeAfter))
			continue
		}
		last, idle, attempt = t.waiting.notify(wait), nil, 0
		if polled, err = t.bell.await(ctx, r); err != nil {
			return last
		}
	}
}

// await waits as state.Bells.Await does, and ends when the connection is lost: not at once for all nodes of a fleet.
func await(
	ctx context.Context, s *state.Store, node, key string, after int64, poll time.Duration, opts ...clientv3.OpOption,
) bool {
	watch, cancel := context.WithCancel(ctx)
	defer cancel()
	lost := state.Lost(watch, s)
	go func() {
		select {
		case <-lost:
			state.Pause(watch, time.Second+jitter(node, int(after), min(8*time.Second, poll/10)))
			cancel()
		case <-watch.Done():
		}
	}()
	s.Bells.Await(watch, key, after, poll, opts...)
	return ctx.Err() == nil
}

// next makes an attempt. It uses what Try has just read instead of a new look.
func (t *Turn) next(ctx context.Context, idle *reading) (*Wait, *reading, error) {
	tried := t.tried
	if t.tried = nil; tried != nil && time.Since(tried.at) < triedFor {
		return tried.wait, tried, nil
	}
	return t.attempt(ctx, idle)
}
