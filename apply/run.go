package apply

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/pullet/pullet/render"
	"github.com/pullet/pullet/state"
)

// Options are what a run needs beside its program.
type Options struct {
	Run     string
	Host    *Host
	Journal *state.Journal
	Upgrade bool // the version is new here, or its last run failed: steps that run onUpdate do
	// Hold is asked before each step that would change the host; an error stops the run there. Nil: nothing is held.
	Hold func(ctx context.Context) error
	// Watch sees each step's report as it comes. It may be nil.
	Watch func(*StepReport)
	Log   *logrus.Entry
}

// execution is one walk through a program.
type execution struct {
	*Program
	Options
	plan    bool
	reports map[string]*StepReport
	skipped map[*render.Job]*StepReport // jobs whose condition said no
	report  *Report
}

// Plan compares the program with the host. Nothing is touched.
func (p *Program) Plan(ctx context.Context, o Options) *Report {
	x := p.execution(o)
	x.plan, x.report.Plan = true, true
	x.walk(ctx)
	return x.report
}

// Run applies the program to the host. What went wrong is in the report; an error means that the journal could not be written. A
// run that was cut off goes on where it was: a step with a successful end on record is not repeated.
func (p *Program) Run(ctx context.Context, o Options) (*Report, error) {
	id := o.Journal.Begin(o.Run, p.catalog.Version, p.catalog.Digest)
	x := p.execution(o)
	x.report.Resumed = id != o.Run
	x.walk(ctx)
	if x.report.Stopped != "" {
		return x.report, o.Journal.Close()
	}
	return x.report, o.Journal.Finish(p.has)
}

func (p *Program) execution(o Options) *execution {
	return &execution{
		Program: p, Options: o, reports: map[string]*StepReport{}, skipped: map[*render.Job]*StepReport{},
		report: &Report{
			Run: o.Run, Node: p.catalog.Node.Name, Version: p.catalog.Version, Release: p.catalog.Release,
			Started: time.Now(), Counts: map[Outcome]int{},
		},
	}
}

// walk takes the steps in order.
func (x *execution) walk(ctx context.Context) {
	defer func() { x.report.Ended = time.Now() }()
	for _, s := range x.steps {
		if ctx.Err() != nil {
			x.report.Stopped = stopCause(ctx).Error()
			return
		}
		r := &StepReport{Job: s.Job, Step: s.Name, Action: s.Action, Validation: s.job.Validation, Pos: s.Pos}
		started := time.Now()
		x.step(ctx, s, r)
		r.Seconds = time.Since(started).Seconds()
		if s.Sensitive {
			r.hide()
		}
		x.finish(s, r)
		if x.report.Stopped != "" {
			return
		}
	}
}

// finish records a step's report and lets its watcher see it.
func (x *execution) finish(s *boundStep, r *StepReport) {
	if r.Result.Result == "" {
		r.Result.Result = map[Outcome]string{OK: "ok", Changed: "ok", Failed: "failed", Pending: "pending"}[r.Outcome]
		if r.Result.Result == "" {
			r.Result.Result = "skipped"
		}
	}
	if r.Result.State == "" {
		r.Result.State = r.Result.Result
	}
	r.Result.Changed = r.Outcome == Changed
	x.reports[s.ID()] = r
	x.report.add(r)
	if x.Watch != nil {
		x.Watch(r)
	}
	if r.Outcome == Failed && s.Options.FailHard && x.report.Stopped == "" {
		x.report.Stopped = "step " + s.ID() + " failed and is failHard"
	}
}

// hide keeps what a sensitive step read and wrote out of reports.
func (r *StepReport) hide() {
	if r.Diff != "" {
		r.Diff = "(sensitive: not shown)\n"
	}
	if r.Summary != "" { // it may quote a command
		r.Summary = "(sensitive: not shown)"
	}
	r.Result.StdOut, r.Result.StdErr = "", ""
	if r.Outcome == Failed {
		r.Reason = "failed (sensitive: the output is not shown)"
	}
}

// step decides what becomes of one step.
func (x *execution) step(ctx context.Context, s *boundStep, r *StepReport) {
	if s.Options.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(s.Options.Timeout))
		defer cancel()
	}
	if !x.admitted(ctx, s, r) || x.carried(s, r) {
		return
	}
	change, err := x.check(ctx, s, r)
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		x.stop(r)
		return
	case err != nil:
		r.fail(err)
		return
	case r.Outcome != "": // done for good
	case change.Empty():
		r.Outcome = OK
	case x.plan:
		r.Outcome, r.Summary, r.Diff = Changed, change.Summary, change.Diff
		if s.passive() {
			r.Outcome = OK
		}
	default:
		x.apply(ctx, s, r, change)
		return
	}
	x.after(ctx, s, r)
	if r.Outcome == Failed && errors.Is(ctx.Err(), context.Canceled) {
		x.stop(r)
	}
}

// admitted asks the job's condition, what the step requires, and its own condition.
func (x *execution) admitted(ctx context.Context, s *boundStep, r *StepReport) bool {
	if no, ok := x.jobCondition(ctx, s); ok && no != nil {
		r.Outcome, r.Reason = no.Outcome, no.Reason
		return false
	}
	for _, need := range s.requires {
		switch x.reports[need.ID()].Outcome {
		case Failed, Unmet:
			r.Outcome, r.Reason = Unmet, "requires "+need.ID()+", which "+past(x.reports[need.ID()].Outcome)
			return false
		case Pending:
			r.Outcome, r.Reason = Pending, "requires "+need.ID()+", which waits"
			return false
		}
	}
	if s.Conditions.When == nil {
		return true
	}
	r.Outcome, r.Reason = x.ask(ctx, s.Conditions.When, s.Job)
	return r.Outcome == ""
}

func past(o Outcome) string {
	if o == Unmet {
		return "did not run"
	}
	return "failed"
}

// jobCondition is the answer to the condition of the step's job, asked once in a run.
func (x *execution) jobCondition(ctx context.Context, s *boundStep) (*StepReport, bool) {
	if s.job.Conditions.When == nil {
		return nil, false
	}
	if no, asked := x.skipped[s.job]; asked {
		return no, true
	}
	outcome, reason := x.ask(ctx, s.job.Conditions.When, s.Job)
	var no *StepReport
	if outcome != "" {
		no = &StepReport{Outcome: outcome, Reason: reason}
	}
	x.skipped[s.job] = no
	return no, true
}

// check compares the step with the host. For an action that cannot check, a result on record stands for it.
func (x *execution) check(ctx context.Context, s *boundStep, r *StepReport) (Change, error) {
	if s.Options.Runs == "onUpdate" && !x.Upgrade {
		r.Outcome, r.Reason = Skipped, "runs: onUpdate, and the version is the same"
		return Change{}, nil
	}
	var before StepReport
	if key := s.doneKey(x.catalog.Version); key != "" && x.Journal.Done(s.ID(), key, &before) {
		r.Outcome, r.Result = OK, before.Result
		if before.Outcome == Failed {
			r.Outcome, r.Reason = Failed, before.Reason
		}
		return Change{}, nil
	}
	return s.act.Check(ctx, x.Host)
}

// passive reports a step that never counts as a change.
func (s *boundStep) passive() bool { return s.spec.Passive || s.job.Validation }

// apply makes the change, with the journal written before and after.
func (x *execution) apply(ctx context.Context, s *boundStep, r *StepReport, change Change) {
	if !x.begin(ctx, s, r) {
		return
	}
	out, err := s.act.Apply(ctx, x.Host, change)
	r.Result.State, r.Result.ExitCode, r.Result.StdOut, r.Result.StdErr = out.State, out.ExitCode, out.StdOut, out.StdErr
	r.Outcome, r.Summary, r.Diff = Changed, change.Summary, change.Diff
	if s.passive() {
		r.Outcome = OK
	}
	if err != nil {
		r.fail(err)
	} else {
		x.after(ctx, s, r)
	}
	if r.Outcome == Failed && errors.Is(ctx.Err(), context.Canceled) {
		x.stop(r) // no end on record: the next pull runs it again
		return
	}
	x.record(s, r, r.Outcome != Failed)
}

// stop ends the run because it was told to: that is no failure of the step.
func (x *execution) stop(r *StepReport) {
	r.Outcome, r.Reason = Pending, errStopped.Error()
	x.report.Stopped = errStopped.Error()
}

func (r *StepReport) fail(err error) { r.Outcome, r.Reason = Failed, err.Error() }

// after asks the conditions that follow the action.
func (x *execution) after(ctx context.Context, s *boundStep, r *StepReport) {
	if x.plan || r.Outcome == Skipped {
		return
	}
	x.reports[s.ID()] = r // its own result counts in its conditions
	r.Result.Result, r.Result.Changed = "ok", r.Outcome == Changed
	for _, c := range []struct {
		name string
		*render.Condition
	}{{"success", s.Conditions.Success}, {"continue", s.Conditions.Continue}} {
		if c.Condition == nil {
			continue
		}
		if outcome, reason := x.ask(ctx, c.Condition, s.Job); outcome != "" {
			r.Outcome, r.Reason = Failed, fmt.Sprintf("%s: %s", c.name, reason)
			r.Result.Result = "failed"
			return
		}
	}
}
