package agent

import (
	"context"
	"time"

	"github.com/pullet/pullet/lock"
)

// shown is a wait as it is shown now: it says for what the node really waits, where that is behind the nodes that it names.
func (p *pull) shown(w *lock.Wait) *lock.Wait {
	if w == nil || p.current == nil || p.store == nil {
		return w
	}
	ctx, cancel := afterwards(p.ctx)
	defer cancel()
	return w.Follow(ctx, p.store, p.current.ID)
}

// waitsUntil is when the time is up that the pull may wait in all.
func (p *pull) waitsUntil() time.Time {
	p.waitMu.Lock()
	defer p.waitMu.Unlock()
	left := p.Wait - p.waited
	if p.waiters > 0 {
		left -= time.Since(p.waitsFrom)
	}
	return time.Now().Add(max(0, left))
}

// beginWait counts one that waits at a gate, and returns how long the pull has waited: the time of several that wait at once counts once.
func (p *pull) beginWait() (waited time.Duration) {
	p.waitMu.Lock()
	defer p.waitMu.Unlock()
	if p.waiters++; p.waiters == 1 {
		p.waitsFrom = time.Now()
	}
	return p.waited + time.Since(p.waitsFrom)
}

func (p *pull) endWait() {
	p.waitMu.Lock()
	defer p.waitMu.Unlock()
	if p.waiters--; p.waiters == 0 {
		p.waited, p.said = p.waited+time.Since(p.waitsFrom), nil
	}
}

// waits waits as long as the pull may wait in all.
func (p *pull) waits(ctx context.Context, wait func(context.Context) error) error {
	limited, cancel := context.WithTimeout(ctx, max(aLook, p.Wait-p.beginWait()))
	defer cancel()
	defer p.endWait()
	return wait(limited)
}

// rest waits as long as the pull may wait in all, and fails at once when that time is up.
func (p *pull) rest(ctx context.Context, wait func(context.Context)) error {
	limited, cancel := context.WithTimeout(ctx, p.Wait-p.beginWait())
	defer cancel()
	defer p.endWait()
	if limited.Err() == nil {
		wait(limited)
	}
	return limited.Err()
}
