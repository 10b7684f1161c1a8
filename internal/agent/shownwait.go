package agent

import (
	"context"
	"time"

	"github.com/pullet/pullet/lock"
	"github.com/pullet/pullet/state"
)

// shownWait is a wait that is shown, and how it was shown last. It is forgotten when any wait of the pull ends.
type shownWait struct {
	wait    *lock.Wait
	said    string
	store   *state.Store
	version string
}

// refreshEvery is how often a wait that lasts is looked at again: the nodes that it names may have been killed
// meanwhile.
const refreshEvery = 30 * time.Second

// refreshing shows the wait anew, while it lasts, whenever what is behind it changed. What it returns ends that.
func (r *reporter) refreshing(ctx context.Context, every time.Duration, lasts func() bool) (stop func()) {
	if r.shows == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	tick := time.NewTicker(every)
	go func() {
		defer close(done)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				r.refresh(ctx, lasts)
			}
		}
	}()
	return func() { cancel(); <-done }
}

func (r *reporter) refresh(ctx context.Context, lasts func() bool) {
	last := r.lastShown.Load()
	if last == nil || last.store == nil || !lasts() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, recordTime)
	defer cancel()
	now, err := last.wait.Follow(ctx, last.store, last.version)
	if err != nil { // what was shown last stands
		return
	}
	next := *last
	next.said = now.Error()
	if next.said != last.said && lasts() && r.lastShown.CompareAndSwap(last, &next) { // else another reason came meanwhile
		r.shows(now)
	}
}
