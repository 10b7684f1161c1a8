package apply

import (
	"context"
	"errors"
	"fmt"
	"sync"
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
	// Watch sees each step's report as it comes, one at a time. It may be nil.
	Watch func(*StepReport)
	Log   *logrus.Entry
}

// execution is one walk through a program. Steps may run at once: what they share is guarded by mu.
type execution struct {
	*Program
	Options
	plan bool

	mu      sync.Mutex
	reports map[string]*StepReport       // of the steps that have ended
	values  map[string]render.StepResult // their results, those of sensitive steps as they are
	answers map[*render.Job]*answer
	report  *Report

	failedHard bool // the run was stopped by its own step: it is over, not cut off
}

// answer is what a job's condition said; it is asked once in a run.
type answer struct {
	once    sync.Once
	outcome Outcome
	reason  string
}

// Plan compares the program with the host. Nothing is touched.
func (p *Program) Plan(ctx context.Context, o Options) *Report {
	x := p.execution(o)
	x.plan, x.report.Plan = true, true
	x.phases(ctx)
	return x.report
}

// Run applies the program to the host. What went wrong is in the report; an error means that the journal could not be written. A
// run that was cut off goes on where it was: a step with a successful end on record is not repeated.
func (p *Program) Run(ctx context.Context, o Options) (*Report, error) {
	id := o.Journal.Begin(o.Run, p.catalog.Version, p.catalog.Digest)
	x := p.execution(o)
	x.report.Resumed = id != o.Run
	x.phases(ctx)
	if x.report.Stopped != "" && !x.failedHard {
		return x.report, o.Journal.Close()
	}
	return x.report, o.Journal.Finish(p.has)
}

func (p *Program) execution(o Options) *execution {
	x := &execution{
		Program: p, Options: o, reports: map[string]*StepReport{}, values: map[string]render.StepResult{}, answers: map[*render.Job]*answer{},
		report: &Report{
			Run: o.Run, Node: p.catalog.Node.Name, Version: p.catalog.Version, Release: p.catalog.Release,
			Started: time.Now(), Counts: map[Outcome]int{},
		},
	}
	for _, j := range p.catalog.Jobs {
		x.answers[j] = &answer{}
	}
	return x
}

// phases takes the jobs, then what listens to their changes, then the validations.
func (x *execution) phases(ctx context.Context) {
	var jobs, validations []*boundStep
	for _, s := range x.steps {
		if s.job.Validation {
			validations = append(validations, s)
		} else {
			jobs = append(jobs, s)
		}
	}
	x.walk(ctx, jobs)
	x.listeners(ctx, jobs)
	x.walk(ctx, validations)
	if ctx.Err() != nil {
		x.stopBecause(stopCause(ctx))
	}
	x.report.Ended = time.Now()
}

// stopped reports that no further step is started.
func (x *execution) stopped() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.report.Stopped != ""
}

func (x *execution) stopBecause(why error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.report.Stopped == "" {
		x.report.Stopped = why.Error()
	}
}

// of is the report of a step that has ended; nil for another.
func (x *execution) of(id string) *StepReport {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.reports[id]
}

// one takes one step from start to end.
func (x *execution) one(ctx context.Context, s *boundStep, c *schedule) {
	r := &StepReport{Job: s.Job, Step: s.Name, Action: s.Action, Validation: s.job.Validation, Pos: s.Pos}
	started := time.Now()
	x.step(ctx, &running{execution: x, boundStep: s, r: r, schedule: c})
	r.Seconds = time.Since(started).Seconds()
	x.finish(s, r)
}

// finish records a step's report and lets its watcher see it.
func (x *execution) finish(s *boundStep, r *StepReport) {
	r.Result.Result = result(r.Outcome)
	if r.Result.State == "" {
		r.Result.State = r.Result.Result
	}
	r.Result.Changed = r.Outcome == Changed
	x.mu.Lock()
	defer x.mu.Unlock()
	x.values[s.ID()] = r.Result
	if s.Sensitive {
		r.hide()
	}
	x.reports[s.ID()] = r
	x.report.add(r)
	if x.Watch != nil {
		x.Watch(r)
	}
	if r.Outcome == Failed && s.Options.FailHard && x.report.Stopped == "" {
		x.report.Stopped, x.failedHard = "step "+s.ID()+" failed and is failHard", true
	}
}

// result is an outcome in the words of conditions.
func result(o Outcome) string {
	switch o {
	case OK, Changed:
		return "ok"
	case Failed, Pending:
		return string(o)
	}
	return "skipped"
}

// running is one step while it runs.
type running struct {
	*execution
	*boundStep
	r        *StepReport
	schedule *schedule
}

// step decides what becomes of one step.
func (x *execution) step(ctx context.Context, s *running) {
	if outcome, reason := s.jobCondition(ctx); outcome != "" {
		s.r.Outcome, s.r.Reason = outcome, reason
		return
	}
	if s.boundStep.Options.Timeout > 0 { // from here on: what the whole job waits for is not the step's time
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, s.boundStep.Options.Timeout.Std())
		defer cancel()
	}
	if !s.admitted(ctx) || s.carried() {
		return
	}
	if done, err := s.resolve(ctx); done || err != nil {
		if err != nil {
			s.r.fail(err)
		}
		return
	}
	change, err := s.check(ctx)
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		s.stop()
		return
	case err != nil:
		s.r.fail(err)
		return
	case s.r.Outcome == "" && change.Empty() && s.watched(), s.r.Outcome == OK && s.watched():
		s.react(ctx)
		return
	case s.r.Outcome != "": // done for good
	case change.Empty():
		s.r.Outcome, s.r.Result.State = OK, change.State
	case x.plan:
		s.r.Outcome, s.r.Summary, s.r.Diff = Changed, change.Summary, change.Diff
		if s.passive() {
			s.r.Outcome = OK
		}
	default:
		s.apply(ctx, change.Summary, change.Diff, func() (Output, error) { return s.act.Apply(ctx, s.Host, change) })
		return
	}
	s.afterwards(ctx)
}

// resolve fills in what the step's parameters or its file template wait for. In a plan a value that only a run makes is not known: the
// step is said to change.
func (s *running) resolve(ctx context.Context) (done bool, err error) {
	if !s.Waits() && !s.late {
		return false, nil
	}
	if from := s.unknown(); from != "" {
		s.r.Outcome, s.r.Summary = Changed, "depends on what "+from+" returns"
		return true, nil
	}
	results, run := s.results(s.Job), s.runMacro(ctx)
	params, err := s.catalog.Fill(s.Step, results, run)
	if err != nil {
		return false, err
	}
	step := *s.Step
	step.Params = params
	bound := *s.boundStep
	bound.Step, bound.act = &step, s.spec.New()
	s.boundStep = &bound
	if errs := params.Into(bound.act, s.Pos); len(errs) > 0 {
		return false, errs
	}
	if binder, ok := bound.act.(Binder); ok {
		if err := binder.Bind(Binding{Catalog: s.catalog, Step: &step, results: results, run: run}); err != nil {
			return false, bindErrors(&step, err)
		}
	}
	return false, nil
}

// unknown is, in a plan, a step that would change and whose result this one may read.
func (s *running) unknown() string {
	if !s.plan {
		return ""
	}
	for _, e := range s.after {
		r := s.of(e.step.ID())
		if r != nil && (r.Outcome == Changed || r.Summary != "") && (e.why == readsResult || s.late) {
			return e.step.ID()
		}
	}
	return ""
}

// passive reports a step that never counts as a change.
func (s *boundStep) passive() bool { return s.spec.Passive || s.job.Validation }

// apply makes a change, with the journal written before and after.
func (s *running) apply(ctx context.Context, summary, diff string, act func() (Output, error)) {
	if !s.begin(ctx) {
		return
	}
	out, err := act()
	r := s.r
	r.Result.State, r.Result.ExitCode, r.Result.StdOut, r.Result.StdErr, r.Result.Data = out.State, out.ExitCode, out.StdOut, out.StdErr, out.Data
	r.Outcome, r.Summary, r.Diff = Changed, summary, diff
	if s.passive() || out.Same {
		r.Outcome = OK
	}
	if err != nil {
		r.fail(err)
	} else {
		s.afterwards(ctx)
	}
	if errors.Is(ctx.Err(), context.Canceled) && r.Outcome != Changed && r.Outcome != OK {
		s.stop() // no end on record: the next pull runs it again
		return
	}
	s.record(r.Outcome != Failed)
}

// stop ends the run because it was told to: that is no failure of the step.
func (s *running) stop() {
	s.r.Outcome, s.r.Reason = Pending, errStopped.Error()
	s.stopBecause(errStopped)
}

func (r *StepReport) fail(err error) { r.Outcome, r.Reason = Failed, err.Error() }

// hide keeps what a sensitive step read and wrote out of reports.
func (r *StepReport) hide() {
	if r.Diff != "" {
		r.Diff = "(sensitive: not shown)\n"
	}
	if r.Summary != "" { // it may quote a command
		r.Summary = "(sensitive: not shown)"
	}
	r.Result.StdOut, r.Result.StdErr, r.Result.Data = "", "", nil
	if r.Outcome == Failed {
		r.Reason = "failed (sensitive: the output is not shown)"
	}
}

// afterwards asks the conditions that follow the action.
func (s *running) afterwards(ctx context.Context) {
	if s.plan || s.r.Outcome == Skipped {
		return
	}
	s.r.Result.Result, s.r.Result.Changed = "ok", s.r.Outcome == Changed
	if s.r.Result.State == "" {
		s.r.Result.State = s.r.Result.Result
	}
	s.mu.Lock()
	s.values[s.ID()] = s.r.Result // its own result counts in its conditions
	s.mu.Unlock()
	for _, c := range []struct {
		name string
		*render.Condition
	}{{"success", s.Conditions.Success}, {"continue", s.Conditions.Continue}} {
		if c.Condition == nil {
			continue
		}
		outcome, reason := s.ask(ctx, c.Condition)
		if errors.Is(ctx.Err(), context.Canceled) {
			s.stop()
			return
		}
		if outcome != "" {
			s.r.Outcome, s.r.Reason = Failed, fmt.Sprintf("%s: %s", c.name, reason)
			s.r.Result.Result = "failed"
			return
		}
	}
}
