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
func (s *running) awaits(ctx context.Context, name string, c *render.Condition, fleet FleetReader) *Awaited {
	a := &Awaited{
		Of: s.step.ID(), Name: name, Pos: c.Expression.Pos(), Text: c.Expression.Text,
		Every: c.Retry.Interval.Std(), Attempts: c.Retry.Limit, Since: time.Now(),
	}
	if c == s.step.job.Conditions.When {
		a.Of = "job " + s.step.Job
	}
	if fleet != nil && a.Every > leastPause {
		a.Watches = fleet.Watches()
	}
	a.Until, _ = ctx.Deadline()
	if a.Attempts > 0 {
		a.Until = a.sooner(a.Since.Add(time.Duration(a.Attempts-1) * a.Every))
	}
	if s.x.options.Await != nil {
		a.over = s.x.options.Await(*a)
	}
	return a
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
func (s *running) waited(a *Awaited, outcome Outcome) {
	if a == nil {
		return
	}
	if outcome == Pending {
		s.r.awaits = a
	}
	if a.over != nil {
		a.over(outcome == "")
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
