package apply

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/pullet/pullet/render"
)

// FleetReader is one look at the fleet, for one attempt of a condition. It belongs to one goroutine.
type FleetReader interface {
	// View is the fleet as it is at the first call.
	View(ctx context.Context) (render.View, error)
	// Changed returns when something that was read of the view may have changed, or when ctx ends. Where nothing was
	// read it waits for ctx.
	Changed(ctx context.Context)
	// Watches is what was read of the view, for people: "a node", "service db".
	Watches() []string
}

// ask evaluates a condition, again and again where it has a retry: each attempt on a new view of the fleet, at the
// retry's interval and when something changed that the attempt before read. An empty outcome means yes; else Skipped
// without a retry, and Failed when the condition cannot be evaluated. It is Pending when the pull's time to wait is
// used up. When the attempts are, it is Pending before a step and Failed after it.
//
// A wait before the step is one for others: the node gives its slot back when nothing else is left to do.
func (a *admission) ask(ctx context.Context, name string, c *render.Condition) (outcome Outcome, reason string) {
	before, usedUp := name == whenCondition, Failed
	if before {
		usedUp = Pending
	}
	var waits *Awaited
	defer func() { a.waited(waits, outcome) }()
	done := a.s.tries.repeat(ctx, func(attempt int) *pause {
		var fleet FleetReader
		if a.s.x.options.FleetReader != nil {
			fleet = a.s.x.options.FleetReader()
		}
		outcome, reason = a.asked(ctx, c, fleet)
		if outcome != Skipped || c.Retry == nil {
			return nil
		}
		if waits == nil && !a.s.x.plan {
			waits = a.awaits(ctx, name, c, fleet)
		}
		if a.s.x.plan || c.Retry.Limit > 0 && attempt >= c.Retry.Limit {
			outcome, reason = usedUp, fmt.Sprintf(
				"condition is still false after %d attempts: %s",
				attempt,
				c.Expression.Text,
			)
			return nil
		}
		next := &pause{every: c.Retry.Interval.Std(), fleet: fleet}
		if before {
			next.why = a.s.step.ID() + ": " + c.Expression.Text
		}
		return next
	})
	switch {
	case done:
		return outcome, reason
	case errors.Is(ctx.Err(), context.DeadlineExceeded): // the step's own time, or the run's
		return usedUp, "waiting for: " + c.Expression.Text
	}
	return Pending, "waiting for: " + c.Expression.Text
}

// asked is one answer to a condition: empty is yes, Skipped is no.
func (a *admission) asked(ctx context.Context, c *render.Condition, fleet FleetReader) (Outcome, string) {
	yes, err := a.evaluate(ctx, c.Expression, a.s.r.Result, fleet)
	var pending *PendingError
	var lacks *lackingError
	switch {
	case c.Retry != nil && errors.As(err, &lacks): // it does not hold yet
		return Skipped, lacks.Reason
	case errors.As(err, &pending):
		return Pending, pending.Reason
	case a.s.leftOut(err):
		a.s.r.Outcome, a.s.r.Summary, a.s.maybe = "", "", "if its condition holds, which is "+a.s.r.Summary
		return "", ""
	case err != nil:
		return Failed, err.Error()
	case yes:
		return "", ""
	}
	return Skipped, "condition is false: " + c.Expression.Text
}

// evaluate evaluates an expression once. Own is what came of the step itself; fleet may be nil.
func (a *admission) evaluate(
	ctx context.Context,
	e render.Expression,
	own render.StepResult,
	fleet FleetReader,
) (yes bool, err error) {
	err = a.s.gates.reading(ctx, func() (err error) {
		by := render.Judged{Context: ctx, Own: own, Results: a.results(a.s.step.Job), Run: a.s.x.runMacro(ctx)}
		if fleet != nil {
			by.Look = func() (render.View, error) { return fleet.View(ctx) }
		}
		yes, err = a.s.x.program.catalog.Eval(e, by)
		return err
	})
	return yes, unseen(ctx, a.s.x.program.catalog.Inventory, fleet, err)
}

// results are the steps' results as a job names them. One of a step that another node takes is wanted from there.
func (a *admission) results(job string) render.Results {
	return func(name string) (render.StepResult, bool) {
		a.s.x.mu.Lock()
		defer a.s.x.mu.Unlock()
		id, ok := a.s.x.resultID(job, name)
		if t := a.s.x.foreign[id]; ok && t != nil && t.ID() != a.s.step.ID() {
			a.s.gates.wanted = append(a.s.gates.wanted, t)
		}
		t, r := a.s.x.program.byID[id], a.s.x.reports[id]
		a.s.shared = a.s.shared || ok && t != nil && t != a.s.place && t.Options.Target != nil
		if ok && r != nil && r.Outcome == Failed && t != nil && t.Options.Target != nil {
			a.s.gates.refused = fmt.Errorf(
				"it reads the result of %s, which failed here: %s",
				id,
				r.Reason,
			) // as it does on the other nodes
		}
		return a.s.x.values[id], ok
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
