package apply

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/pullet/pullet/render"
)

// defaultRetry is how long a condition with a retry waits between attempts when it does not say.
const defaultRetry = 10 * time.Second

// Look is one look at the fleet, for one attempt of a condition. It belongs to one goroutine.
type Look interface {
	// View is the fleet as it is at the first call.
	View(ctx context.Context) (render.View, error)
	// Changed returns when something that was read of the view may have changed, or when ctx ends. Where nothing was read it waits for ctx.
	Changed(ctx context.Context)
	// Watches is what was read of the view, for people: "a node", "service db".
	Watches() []string
}

// leastPause is the least time between two attempts of a condition, however often what it reads changes.
const leastPause = time.Second

// ask evaluates a condition, again and again where it has a retry: each attempt on a new view of the fleet, at the retry's interval and when
// something changed that the attempt before read. An empty outcome means yes; else Skipped without a retry, and Failed when the condition
// cannot be evaluated. It is Pending when the pull's time to wait is used up. When the attempts are, it is Pending before a step and Failed
// after it.
//
// A wait before the step is one for others: the node gives its slot back when nothing else is left to do.
func (s *running) ask(ctx context.Context, name string, c *render.Condition) (outcome Outcome, reason string) {
	before, usedUp := name == whenCondition, Failed
	if before {
		usedUp = Pending
	}
	var waits *Awaited
	defer func() { s.waited(waits, outcome) }()
	for attempt := 1; ; {
		var look Look
		if s.Look != nil {
			look = s.Look()
		}
		yes, err := s.judge(ctx, c.Expression, look)
		var pending *PendingError
		switch {
		case errors.As(err, &pending):
			return Pending, pending.Reason
		case err != nil:
			return Failed, err.Error()
		case yes:
			return "", ""
		case c.Retry == nil:
			return Skipped, "condition is false: " + c.Expression.Text
		case waits == nil && !s.plan:
			waits = s.awaits(ctx, name, c, look)
		}
		if s.plan || c.Retry.Limit > 0 && attempt >= c.Retry.Limit {
			return usedUp, fmt.Sprintf("condition is still false after %d attempts: %s", attempt, c.Expression.Text)
		}
		why := ""
		if before {
			why = s.ID() + ": " + c.Expression.Text
		}
		due, err := s.pause(ctx, why, intervalOf(c.Retry), look)
		switch {
		case errors.Is(ctx.Err(), context.DeadlineExceeded): // the step's own time, or the run's
			return usedUp, "waiting for: " + c.Expression.Text
		case err != nil:
			return Pending, "waiting for: " + c.Expression.Text
		case due:
			attempt++
		}
	}
}

// judge evaluates a condition once.
func (s *running) judge(ctx context.Context, e render.Expression, look Look) (yes bool, err error) {
	err = s.reading(ctx, func() (err error) {
		by := render.Judged{Context: ctx, Own: s.r.Result, Results: s.results(s.Job), Run: s.runMacro(ctx)}
		if look != nil {
			by.Look = func() (render.View, error) { return look.View(ctx) }
		}
		yes, err = s.catalog.Eval(e, by)
		return err
	})
	return yes, err
}

func intervalOf(r *render.Retry) time.Duration {
	if r.Interval > 0 {
		return time.Duration(r.Interval)
	}
	return defaultRetry
}

// pause waits for an interval while other steps run, or until what was looked at may have changed; why is what only other nodes can bring. Due says
// that the interval is over. It is an error when ctx ended, or the pull's time to wait.
func (s *running) pause(ctx context.Context, why string, interval time.Duration, look Look) (due bool, err error) {
	wait := func(ctx context.Context) { due = pauseFor(ctx, interval, look) }
	ctx, cancel := context.WithCancel(ctx) // a step that is finished does not wait
	defer cancel()
	defer context.AfterFunc(s.run, cancel)()
	defer func() { s.interrupted = s.interrupted || errors.Is(s.run.Err(), context.Canceled) }()
	s.aside(why, func() {
		if s.Rest == nil {
			wait(ctx)
			err = ctx.Err()
			return
		}
		err = s.Rest(ctx, wait)
	})
	return due, err
}

// pauseFor waits for an interval, and reports that it is over; or until a look may have changed.
func pauseFor(ctx context.Context, interval time.Duration, look Look) (due bool) {
	began, timer := time.Now(), time.NewTimer(interval)
	defer timer.Stop()
	changed := make(chan struct{})
	if look != nil && interval > leastPause {
		watch, cancel := context.WithCancel(ctx)
		defer cancel()
		go func() {
			defer close(changed)
			look.Changed(watch)
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

// results are the steps' results as a job names them. One of a step that another node takes is wanted from there.
func (s *running) results(job string) render.Results {
	return func(name string) (render.StepResult, bool) {
		s.mu.Lock()
		defer s.mu.Unlock()
		id, ok := s.resultID(job, name)
		if t := s.foreign[id]; ok && t != nil && t.ID() != s.ID() {
			s.wanted = append(s.wanted, t)
		}
		if t, r := s.byID[id], s.reports[id]; ok && r != nil && r.Outcome == Failed && t != nil && t.Options.Target != nil {
			s.refused = fmt.Errorf("it reads the result of %s, which failed here: %s", id, r.Reason) // as it does on the other nodes
		}
		return s.values[id], ok
	}
}

// resultID is the step that a job means by a name, if it has ended.
func (x *execution) resultID(job, name string) (string, bool) {
	for _, id := range []string{job + "/" + name, name} {
		if _, ok := x.values[id]; ok {
			return id, true
		}
	}
	for id := range x.values { // a short name that only one job has: checked when the catalog was compiled
		if strings.HasSuffix(id, "/"+name) {
			return id, true
		}
	}
	return "", false
}
