package agent

import (
	"cmp"
	"context"
	"sync"
	"time"

	"github.com/pullet/pullet/lock"
)

// waits are the waits of one pull: how long they may last in all, and for what the run waits. Steps that wait side by
// side share them.
type waits struct {
	allowed time.Duration // in all
	over    func()        // sees each wait that ends; may be nil
	pulse   *pulse        // learns how long each wait may take; may be nil

	mu      sync.Mutex
	spent   time.Duration // of allowed
	aside   time.Duration // for places at commands, also of allowed
	waiting int           // steps that wait now
	since   time.Time     // since when any does
	gate    *lock.Wait    // the last reason to wait at a gate inside the run; nil when nothing waits
	awaited *lock.Wait    // the condition that began to wait last; nil: it waits no more
	last    *lock.Wait    // the last reason that was given at all
	past    []waited      // the waits that are over
}

// waited is a wait of a pull that is over.
type waited struct {
	gate, reason string
	began, ended time.Time
}

// aLook is the time for one look at a gate where no time is left to wait.
const aLook = time.Second

// until is when the time is up that the pull may wait in all.
func (w *waits) until() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	left := w.allowed - w.spent
	if w.waiting > 0 {
		left -= time.Since(w.since)
	}
	return time.Now().Add(max(0, left))
}

// begin counts one that waits, and returns how long the pull has waited. The time of several that wait at once counts
// once.
func (w *waits) begin() (spent time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.waiting++; w.waiting == 1 {
		w.since = time.Now()
	}
	return w.spent + time.Since(w.since)
}

func (w *waits) end() {
	if w.over != nil {
		defer w.over()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.waiting--; w.waiting == 0 {
		w.spent, w.gate = w.spent+time.Since(w.since), nil
	}
}

// within waits as long as the pull may wait in all, and for one look at least.
func (w *waits) within(ctx context.Context, wait func(context.Context) error) error {
	left := max(aLook, w.allowed-w.begin())
	defer w.end()
	return w.bounded(ctx, left, wait)
}

// rest waits as long as the pull may wait in all, and fails at once when that time is up.
func (w *waits) rest(ctx context.Context, wait func(context.Context)) error {
	left := w.allowed - w.begin()
	defer w.end()
	return w.bounded(ctx, left, func(limited context.Context) error {
		if limited.Err() == nil {
			wait(limited)
		}
		return limited.Err()
	})
}

// standBy waits for a place at a command, for as long in all commands together as the pull may wait. That time is not
// taken from the gates of the rollout, which has nothing to do with a place that a dead node keeps.
func (w *waits) standBy(ctx context.Context, wait func(context.Context) error) error {
	began := time.Now()
	defer func() { w.aside += time.Since(began) }()
	return w.bounded(ctx, max(aLook, w.allowed)-w.aside, wait)
}

// bounded waits no longer than so, and says that to who looks whether the agent hangs.
func (w *waits) bounded(ctx context.Context, atMost time.Duration, wait func(context.Context) error) error {
	defer w.pulse.during(atMost + settleFor)()
	defer w.passed(time.Now())
	limited, cancel := context.WithTimeout(ctx, atMost)
	defer cancel()
	return wait(limited)
}

// mostWaits is how many waits of a pull are remembered, and ofOne how long one for the same may go on behind another to
// count as that: conditions are asked again and again.
const (
	mostWaits = 200
	ofOne     = 2 * time.Second
)

// passed remembers a wait for which a reason was given.
func (w *waits) passed(began time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	why := cmp.Or(w.gate, w.awaited, w.last)
	if why == nil {
		return
	}
	now := time.Now()
	for i := range w.past {
		if before := &w.past[i]; before.gate == why.Gate && began.Sub(before.ended) < ofOne {
			before.ended = now
			return
		}
	}
	if len(w.past) < mostWaits {
		w.past = append(w.past, waited{why.Gate, why.Reason, began, now})
	}
}

// notes is the reason to wait that was given last.
func (w *waits) notes(why *lock.Wait) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.last = why
}

// lasts reports that something is waited for now.
func (w *waits) lasts() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.waiting > 0
}

// says notes for what the run waits at a gate.
func (w *waits) says(why *lock.Wait) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.gate = why
}

// awaits notes the condition that waits, or, with over, that this one waits no more.
func (w *waits) awaits(condition, over *lock.Wait) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if over == nil || w.awaited == over {
		w.awaited = condition
	}
}

// reason is for what the run waits now; nil where only steps wait that gave no reason.
func (w *waits) reason() *lock.Wait {
	w.mu.Lock()
	defer w.mu.Unlock()
	return cmp.Or(w.gate, w.awaited)
}
