package lock

import (
	"context"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pullet/pullet/state"
)

// listener waits for a change of what keeps the node waiting.
type listener struct {
	store  *state.Store
	req    *Request
	ticket *ticket
	roster *groupRoster
	bell   *state.Listener // while the node is the first in the queue
}

// stop ends listening to the bell.
func (b *listener) stop() {
	b.ticket.first = false
	if b.bell != nil {
		b.bell.Close()
		b.bell = nil
	}
}

// listen waits as state.Bells.Await does. The first in the queue keeps listening to the bell while it looks, and while
// it listens for the first time nothing is waited for: it looks for what came before.
func (b *listener) listen(
	ctx context.Context, key string, after int64, poll time.Duration, opts []clientv3.OpOption,
) bool {
	switch {
	case key != b.store.Bells.Key():
		b.stop()
		return await(ctx, b.store, b.req.node(), key, after, poll, opts...)
	case b.bell == nil:
		b.bell, b.ticket.first = b.store.Bells.Listen(ctx, key), true
	case !b.bell.Await(ctx, after, poll):
		b.stop()
		state.Pause(ctx, time.Second) // not so fast again
	}
	return ctx.Err() == nil
}

// await waits for the one key that matters: the ticket ahead, or for the first in the queue the bell. It reports that
// it polled.
func (b *listener) await(ctx context.Context, r *reading) (polled bool, err error) {
	key, poll, opts := b.watched(r)
	defer func() { // who was ahead is gone: most likely the node is the first now
		b.ticket.first = b.ticket.first || key == r.ahead && !polled && err == nil
	}()
	began := time.Now()
	poll = jitter(b.req.node(), int(r.revision), poll)
	for {
		step := poll - time.Since(began)
		if b.ticket.session != 0 {
			step = min(step, session/3-time.Since(b.ticket.renewed))
		}
		asked := time.Now()
		if step > 0 && !b.listen(ctx, key, r.revision, step, opts) {
			return false, ctx.Err()
		}
		if b.ticket.session != 0 && time.Since(b.ticket.renewed) >= session/3 {
			if _, err := b.store.Client.KeepAliveOnce(ctx, b.ticket.session); err != nil {
				b.ticket.queued, b.ticket.session = false, 0 // the ticket is gone with it: queue again
				return false, nil
			}
			b.ticket.renewed = time.Now()
		}
		if over := time.Since(began) >= poll; over || time.Since(asked) < step {
			return over, nil
		}
	}
}

// watched is the key that ends the wait when it changes. What ends by itself does not ring the bell: it goes with its
// lease.
func (b *listener) watched(r *reading) (key string, poll time.Duration, opts []clientv3.OpOption) {
	if r.ahead != "" && !b.ticket.outside {
		return r.ahead, max(queuePoll, time.Duration(max(b.roster.size, r.older))*eachPoll), []clientv3.OpOption{
			clientv3.WithFilterPut(),
		}
	}
	if w := r.view.Switch; w != nil && (b.ticket.outside || !w.Until.IsZero()) {
		return r.switchKey, headPoll, nil
	}
	if !r.view.Grace.IsZero() {
		return b.store.Doubts.GraceKey(), headPoll, nil
	}
	for _, d := range r.view.Depends {
		if d.Soaking {
			return b.store.Rollouts.SoakKey(b.req.rollout(), d.Group), headPoll, nil
		}
	}
	return b.store.Bells.Key(), b.stallPoll(r), nil
}

// stallPoll is when the first in the queue looks for itself: nobody tells it that the progress deadline passed, and a
// holder that finishes behind it sets it going again.
func (b *listener) stallPoll(r *reading) time.Duration {
	if !r.view.Timed || len(r.view.Claims) == 0 {
		return headPoll
	}
	return min(headPoll, max(time.Second, b.req.Rules.Deadline))
}
