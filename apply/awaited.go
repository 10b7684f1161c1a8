package apply

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pullet/pullet/render"
)

// whenCondition is the name of the condition before a step or a job.
const whenCondition = "when"

// Awaited is a condition that is asked again and again until it holds.
type Awaited struct {
	Of       string          // "job/step", or "job NAME" where it is the job's
	Name     string          // when, success, continue
	Pos      render.Position // of the expression
	Text     string          // of the expression
	Every    time.Duration   // between two attempts
	Attempts int             // at most; 0 is any number
	Watches  []string        // what it reads of the fleet: a change there is an attempt, too
	Since    time.Time
	Until    time.Time // zero: as long as the pull may wait

	over func(held bool) // called at its end; may be nil
}

// awaits is a condition that begins to wait. Options.Await learns of it.
func (a *admission) awaits(ctx context.Context, name string, c *render.Condition, fleet FleetReader) *Awaited {
	w := &Awaited{
		Of: a.s.step.ID(), Name: name, Pos: c.Expression.Pos(), Text: c.Expression.Text,
		Every: c.Retry.Interval.Std(), Attempts: c.Retry.Limit, Since: time.Now(),
	}
	if c == a.s.step.job.Conditions.When {
		w.Of = "job " + a.s.step.Job
	}
	if fleet != nil && w.Every > leastPause {
		w.Watches = fleet.Watches()
	}
	w.Until, _ = ctx.Deadline()
	if w.Attempts > 0 {
		w.Until = w.sooner(w.Since.Add(time.Duration(w.Attempts-1) * w.Every))
	}
	if a.s.x.options.Await != nil {
		w.over = a.s.x.options.Await(*w)
	}
	return w
}

// sooner is the sooner of two ends.
func (a *Awaited) sooner(end time.Time) time.Time {
	if a.Until.IsZero() || end.Before(a.Until) {
		return end
	}
	return a.Until
}

// Within is the condition where the pull waits no longer than to an end.
func (a Awaited) Within(end time.Time) Awaited {
	a.Until = a.sooner(end)
	return a
}

// waited notes what came of a condition that was waited for.
func (a *admission) waited(w *Awaited, outcome Outcome) {
	if w == nil {
		return
	}
	if outcome == Pending {
		a.s.r.awaits = w
	}
	if w.over != nil {
		w.over(outcome == "")
	}
}

// Gate names the condition.
func (a Awaited) Gate() string { return "condition " + a.Name + " of " + a.Of }

// Reason is where the condition stands, what it says, and when it is asked: times of day are local.
func (a Awaited) Reason() string {
	asked := fmt.Sprintf("asked every %s", a.Every)
	if a.Attempts > 0 {
		asked = fmt.Sprintf("asked at most %d times, every %s", a.Attempts, a.Every)
	}
	if len(a.Watches) > 0 {
		asked += " and when " + strings.Join(a.Watches, " or ") + " changes"
	}
	return fmt.Sprintf(
		"%s: %s is false, %s, from %s until %s",
		a.Pos,
		a.Text,
		asked,
		a.Since.Local().Format(time.TimeOnly),
		a.Until.Local().Format(time.TimeOnly),
	)
}

// Awaited is the first condition that a run which is pending waits for; nil: none.
func (r *Report) Awaited() *Awaited {
	i := slices.IndexFunc(r.Steps, func(s *StepReport) bool { return s.Outcome == Pending && s.awaits != nil })
	if i < 0 || !r.Pending() {
		return nil
	}
	return r.Steps[i].awaits
}
