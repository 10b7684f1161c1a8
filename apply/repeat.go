package apply

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// leastPause is the least time between two attempts of a condition, however often what it reads changes.
const leastPause = time.Second

// pause is the time between two attempts.
type pause struct {
	every time.Duration
	why   string      // what only other nodes can bring; "" is what the host itself can
	fleet FleetReader // a change of what it read ends the pause; may be nil
}

// tries are the attempts of a step, and what they wait for.
type tries struct{ s *running }

// repeat tries, and again after each pause that a try asks for. A pause that a change of what was looked at ends counts
// as no new attempt. It is false when a pause was not over before ctx ended, or the pull's time to wait.
func (t *tries) repeat(ctx context.Context, try func(attempt int) *pause) bool {
	for attempt := 1; ; {
		next := try(attempt)
		if next == nil {
			return true
		}
		due, err := t.rest(ctx, next)
		switch {
		case err != nil, errors.Is(ctx.Err(), context.DeadlineExceeded):
			return false
		case due:
			attempt++
		}
	}
}

// persist acts, and again as often as the step's retry says while that fails. When there is no time left, the last
// attempt stands.
func (t *tries) persist(ctx context.Context, act func() (Output, error)) (out Output, err error) {
	retry := t.s.step.Options.Retry
	t.repeat(ctx, func(attempt int) *pause {
		var pending *PendingError
		if attempt == 1 {
			out, err = t.await(ctx, act)
		} else {
			out, err = t.actAgain(ctx, attempt, act)
		}
		switch {
		case err == nil,
			retry == nil,
			retry.Limit > 0 && attempt >= retry.Limit,
			attempt == 1 && errors.As(err, &pending):
			return nil
		}
		return &pause{every: retry.Interval.Std()}
	})
	return out, err
}

// actAgain acts after an attempt that failed, unless that one got there all the same.
func (t *tries) actAgain(ctx context.Context, attempt int, act func() (Output, error)) (Output, error) {
	if change, bad := t.s.step.compare(ctx, t.s.x.options.Host); bad == nil && change.Empty() && !t.s.r.Reacted {
		return Output{State: change.State}, nil
	}
	out, err := t.s.verdict(ctx, act)
	if err != nil {
		err = fmt.Errorf("%w (attempt %d)", err, attempt)
	}
	return out, err
}

// await acts, and again while what the action waits for is not there.
func (t *tries) await(ctx context.Context, act func() (Output, error)) (out Output, err error) {
	began := time.Now()
	t.repeat(ctx, func(int) *pause {
		out, err = t.s.verdict(ctx, act)
		var pending *PendingError
		if !errors.As(err, &pending) {
			return nil
		}
		left := pending.Within - time.Since(began)
		if left <= 0 {
			return nil
		}
		return &pause{every: min(pending.Every, left), why: t.s.step.ID() + ": " + pending.Reason}
	})
	return out, err
}

// rest waits for the next attempt while other steps run. Due says that the interval is over. It is an error when ctx
// ended, or the pull's time to wait.
func (t *tries) rest(ctx context.Context, p *pause) (due bool, err error) {
	wait := func(ctx context.Context) { due = p.over(ctx) }
	ctx, cancel := context.WithCancel(ctx) // a step that is finished does not wait
	defer cancel()
	defer context.AfterFunc(t.s.run, cancel)()
	defer func() { t.s.interrupted = t.s.interrupted || errors.Is(t.s.run.Err(), context.Canceled) }()
	t.s.gates.aside(p.why, func() {
		if t.s.x.options.Rest == nil {
			wait(ctx)
			err = ctx.Err()
			return
		}
		err = t.s.x.options.Rest(ctx, wait)
	})
	return due, err
}

// over waits for the interval, and reports that it is over; or until a look may have changed.
func (p *pause) over(ctx context.Context) (due bool) {
	began, timer := time.Now(), time.NewTimer(p.every)
	defer timer.Stop()
	changed := make(chan struct{})
	if p.fleet != nil && p.every > leastPause {
		watch, cancel := context.WithCancel(ctx)
		defer cancel()
		go func() {
			defer close(changed)
			p.fleet.Changed(watch)
		}()
	}
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	case <-changed:
	}
	select { // not at once again, however often it changes
	case <-ctx.Done():
	case <-timer.C:
		return true
	case <-time.After(leastPause - time.Since(began)):
	}
	return false
}
