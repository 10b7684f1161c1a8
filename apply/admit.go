package apply

import (
	"context"
	"fmt"
	"slices"

	"github.com/pullet/pullet/render"
)

// admission is whether a step runs: what its conditions and its requisites say.
type admission struct{ s *running }

// admitted asks one after the other whether the step runs. It leaves the outcome of a step that does not.
func (a *admission) admitted(ctx context.Context, asked ...func(context.Context) (Outcome, string)) bool {
	for _, ask := range asked {
		if outcome, reason := ask(ctx); outcome != "" {
			a.s.r.Outcome, a.s.r.Reason = outcome, reason
			return false
		}
	}
	return true
}

func (a *admission) ownCondition(ctx context.Context) (Outcome, string) {
	if a.s.step.Conditions.When == nil || a.undecided(a.s.step.Conditions.When) {
		return "", ""
	}
	return a.ask(ctx, whenCondition, a.s.step.Conditions.When)
}

// undecided reports, in a plan, a condition that reads what only a run returns: whether the step runs is not known, so
// it counts.
func (a *admission) undecided(when *render.Condition) bool {
	if !a.s.x.plan {
		return false
	}
	outputs := when.Expression.Outputs()
	for _, name := range when.Expression.Steps() {
		a.s.x.mu.Lock()
		id, ended := a.s.x.resultID(a.s.step.Job, name)
		a.s.x.mu.Unlock()
		if !ended {
			continue
		}
		if r := a.s.x.of(id); r.others || r.toRun() && slices.Contains(outputs, name) {
			a.s.r.Unknown, a.s.maybe = true, "if its condition holds, which depends on what "+id+" returns"
			return true
		}
	}
	return false
}

// toRun reports, in a plan, a step whose result only a run can tell.
func (r *StepReport) toRun() bool {
	return r.Outcome == Changed || r.Summary != "" || r.Unknown || r.others
}

// jobCondition is the answer to the condition of the step's job.
func (a *admission) jobCondition(ctx context.Context) (Outcome, string) {
	if a.s.step.job.Conditions.When == nil || a.undecided(a.s.step.job.Conditions.When) {
		return "", ""
	}
	said := a.s.x.answers[a.s.step.job]
	a.s.x.mu.Lock()
	first := !said.asked
	said.asked = true
	a.s.x.mu.Unlock()
	if first {
		said.outcome, said.reason = a.ask(ctx, whenCondition, a.s.step.job.Conditions.When)
		close(said.done)
		return said.outcome, said.reason
	}
	select {
	case <-said.done:
	default: // others go on while the first step of the job waits
		a.s.gates.aside("the condition of job "+a.s.step.Job, func() {
			select {
			case <-said.done:
			case <-ctx.Done():
			}
		})
	}
	if ctx.Err() != nil {
		return Pending, "waiting for the condition of job " + a.s.step.Job
	}
	return said.outcome, said.reason
}

// requisites asks what the step refers to, with Salt's meaning. A step that its own condition skipped satisfies what
// requires it; one that was skipped for an unmet requisite does not.
func (a *admission) requisites(ctx context.Context) (Outcome, string) {
	for _, rule := range []func(context.Context) (Outcome, string){a.required, a.anyRequired, a.onFailure, a.onChanges,
		a.prerequired} {
		if outcome, reason := rule(ctx); outcome != "" {
			return outcome, reason
		}
	}
	return "", ""
}

// required: all targets of require, watch and prereq (seen from its target) succeeded.
func (a *admission) required(context.Context) (Outcome, string) {
	for _, t := range slices.Concat(a.s.step.needs["require"], a.s.step.needs["watch"], a.s.step.needs["prereq of"]) {
		switch outcome := a.s.x.outcome(t); outcome {
		case Failed, Unmet:
			return Unmet, "requires " + t.ID() + ", which " + past(outcome)
		case Pending, "":
			return Pending, "requires " + t.ID() + ", which waits"
		}
	}
	return "", ""
}

// anyRequired: at least one target of require_any, and of watch_any, succeeded.
func (a *admission) anyRequired(context.Context) (Outcome, string) {
	for _, kind := range []string{"require_any", "watch_any"} {
		targets := a.s.step.needs[kind]
		met := slices.ContainsFunc(targets, func(t *boundStep) bool {
			return slices.Contains([]Outcome{OK, Changed, Skipped}, a.s.x.outcome(t))
		})
		if len(targets) > 0 && !met {
			return Unmet, "requires any of " + names(targets) + ", and none succeeded"
		}
	}
	return "", ""
}

// onFailure: with onfail any target failed, with onfail_all all did.
func (a *admission) onFailure(context.Context) (Outcome, string) {
	failed := func(t *boundStep) bool { return a.s.x.outcome(t) == Failed }
	if targets := a.s.step.needs["onfail"]; len(targets) > 0 && !slices.ContainsFunc(targets, failed) {
		return Skipped, "runs only when one of " + names(targets) + " fails"
	}
	for _, t := range a.s.step.needs["onfail_all"] {
		if !failed(t) {
			return Skipped, "runs only when all of " + names(a.s.step.needs["onfail_all"]) + " fail"
		}
	}
	return "", ""
}

// onChanges: any target changed something.
func (a *admission) onChanges(context.Context) (Outcome, string) {
	targets := a.s.step.needs["onchanges"]
	if len(targets) > 0 && !a.s.x.anyChanged(targets) && !a.s.x.reactionDue(a.s.step) {
		return Skipped, "runs only when one of " + names(targets) + " changes"
	}
	return "", ""
}

// prerequired: a target of prereq is about to change.
func (a *admission) prerequired(ctx context.Context) (Outcome, string) {
	targets := a.s.step.needs["prereq"]
	if len(targets) == 0 {
		return "", ""
	}
	switch would, err := a.anyWouldChange(ctx, targets); {
	case err != nil:
		return Failed, "prereq " + err.Error()
	case !would:
		return Skipped, "runs only when one of " + names(targets) + " is about to change"
	}
	return "", ""
}

// anyWouldChange compares steps with the host until one is about to change.
func (a *admission) anyWouldChange(ctx context.Context, targets []*boundStep) (bool, error) {
	for _, t := range targets {
		if would, err := a.wouldChange(ctx, t); err != nil {
			return false, fmt.Errorf("%s: %w", t.ID(), err)
		} else if would {
			return true, nil
		}
	}
	return false, nil
}

// wouldChange compares a step that has not run with the host. One that a change triggers changes only with that.
func (a *admission) wouldChange(ctx context.Context, t *boundStep) (bool, error) {
	if t.Waits() || t.late {
		return true, nil // not known before the steps that it reads have run
	}
	a.s.mates.alone() // it may have to wait for the other's condition
	trial := newRunning(a.s.run, a.s.x, t, &StepReport{})
	trial.schedule, trial.place = a.s.schedule, a.s.place
	if trial.step.Conditions.When != nil {
		if outcome, _ := trial.admission.ownCondition(ctx); outcome != "" {
			return false, nil
		}
	}
	by := slices.Concat(t.needs["onchanges"], t.needs["prereq"])
	if len(by) > 0 && !a.s.x.anyChanged(by) && !a.s.x.reactionDue(t) {
		if would, err := a.anyWouldChange(ctx, by); err != nil || !would {
			return false, err
		}
	}
	change, err := trial.check(ctx)
	return !change.Empty(), err
}

// watched reports that a target of watch or watch_any changed, and that the action can react.
func (a *admission) watched() bool {
	_, can := a.s.step.act.(Reactor)
	targets := slices.Concat(a.s.step.needs["watch"], a.s.step.needs["watch_any"])
	return can && len(targets) > 0 && (a.s.x.anyChanged(targets) || a.s.x.reactionDue(a.s.step))
}

// react lets the action react to a change of what it watches: it restarts, reloads, runs again.
func (a *admission) react(ctx context.Context) {
	reactor, _ := a.s.step.act.(Reactor)
	summary := reactor.Reaction() + " (because " + a.s.triggeredBy() + ")"
	a.s.r.Reacted = true
	if a.s.x.plan {
		a.s.r.Outcome, a.s.r.Summary = Changed, summary
		return
	}
	a.s.apply(ctx, Change{Summary: summary}, func(ctx context.Context) (Output, error) {
		return a.s.step.answer(a.s.live(ctx), a.s.x.options.Host, reactor)
	})
}

// listeners lets the steps that listen to changes react once, after all jobs.
func (x *execution) listeners(ctx context.Context, steps []*boundStep) {
	listening := map[string]bool{}
	for _, t := range steps {
		if len(t.needs["listen"]) > 0 && (x.anyChanged(t.needs["listen"]) || x.reactionDue(t)) {
			listening[t.ID()] = true
		}
	}
	x.reactions(ctx, "listen", listening)
}

// reactions lets steps that are in order react, once each, to what happened behind them.
func (x *execution) reactions(ctx context.Context, why string, ids map[string]bool) {
	for _, t := range x.program.steps {
		own := x.outcome(t)
		_, can := t.act.(Reactor)
		failed := why == "restore" && (own == Failed || own == Unmet) // for what is put back now
		if !ids[t.ID()] || !can || own != OK && own != Changed && !failed {
			continue
		}
		reaction := t.reaction(why)
		x.due[reaction.ID()] = true
		if x.stopped() && !x.over || ctx.Err() != nil {
			continue
		}
		s := newRunning(ctx, x, reaction, &StepReport{
			Job: t.Job, Step: t.Name + " (" + why + ")", Action: t.Action, Pos: t.Pos,
		})
		if !s.entry.carried(ctx) {
			if _, err := s.resolve(ctx); err != nil {
				s.r.fail(err)
			} else {
				s.admission.react(ctx)
			}
		}
		x.finish(s.step, s.r)
	}
}

// reaction is a copy of the step under the name of its reaction.
func (s *boundStep) reaction(why string) *boundStep {
	step := *s.Step
	step.Name += " (" + why + ")"
	step.Conditions.Success, step.Conditions.Continue = nil, nil
	out := *s
	out.Step, out.id, out.why = &step, step.ID(), why
	return &out
}

// outcome is what became of a step; "" when it has not run.
func (x *execution) outcome(t *boundStep) Outcome {
	if r := x.of(t.ID()); r != nil {
		return r.Outcome
	}
	return ""
}

func (x *execution) anyChanged(targets []*boundStep) bool {
	return slices.ContainsFunc(targets, func(t *boundStep) bool { return x.outcome(t) == Changed })
}

func past(o Outcome) string {
	if o == Unmet {
		return "did not run"
	}
	return "failed"
}

func names(steps []*boundStep) string {
	out := ""
	for i, s := range steps {
		if i > 0 {
			out += ", "
		}
		out += s.ID()
	}
	return out
}
