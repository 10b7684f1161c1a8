package agent

import (
	"context"
	"time"

	"github.com/pullet/pullet/lock"
)

// followWait says for what a wait that ends too early really waits, where that is behind the nodes that it names.
func (p *pull) followWait(w *lock.Wait) {
	if p.current == nil {
		return
	}
	ctx, cancel := afterwards(p.ctx)
	defer cancel()
	w.Follow(ctx, p.store, p.current.ID)
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
