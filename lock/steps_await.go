package lock

import (
	"context"
	"errors"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pullet/pullet/state"
)

// stepPoll is how long a node that waits for others trusts that it would have been told; of few nodes each looks
// sooner: that one was given up, or a new version is set, opens nothing.
const stepPoll = time.Minute

func pollOf(nodes int) time.Duration {
	return min(stepPoll, 5*time.Second+time.Duration(nodes)*100*time.Millisecond)
}

// await looks until there is nothing to wait for, each time a key changes after the last look. When ctx ends first it
// returns the *Wait; ErrSuperseded when the fleet moved on.
func (s *Steps) await(
	ctx context.Context,
	key string,
	every time.Duration,
	notify func(*Wait),
	look func(poll int) (*Wait, int64, error),
	opts ...clientv3.OpOption,
) error {
	began, last := time.Now(), (*Wait)(nil)
	for poll := 0; ; poll++ {
		wait, revision, err := look(poll)
		switch {
		case err == nil && wait == nil:
			return nil
		case ctx.Err() != nil && last != nil && err != nil && !state.Connected(s.store):
			wait = etcdAway(s.store.Explain(err))
			wait.Since = began
			notify(wait)
			return wait
		case ctx.Err() != nil && last != nil:
			return last
		case errors.Is(err, ErrSuperseded) || wentBack(err) || ctx.Err() != nil:
			return err
		case errors.Is(err, ErrMoved):
			state.Pause(ctx, jitter(s.req.node(), poll, 20*time.Millisecond))
			continue
		case err != nil:
			if wait = Unreadable("etcd", err); wait == nil {
				wait = etcdAway(s.store.Explain(err))
			}
			state.Pause(ctx, jitter(s.req.node(), poll, 2*time.Second))
		}
		wait.Since = began
		if last == nil || last.Error() != wait.Error() {
			notify(wait)
		}
		if last = wait; revision == 0 {
			continue
		}
		if !await(ctx, s.store, s.req.node(), key, revision, jitter(s.req.node(), poll, every), opts...) {
			return last
		}
	}
}
