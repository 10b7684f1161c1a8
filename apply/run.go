package apply

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/pullet/pullet/apply/hostfile"
	"github.com/pullet/pullet/internal/journal"
	"github.com/pullet/pullet/render"
)

// Options are what a run needs beside its program.
type Options struct {
	Run     string
	Host    *Host
	Journal *journal.Journal
	Upgrade bool   // the version is new here, or its last run failed: steps that run onUpdate do
	Turn    bool   // it is this host's turn: it may be gone for a while
	Keep    string // a directory in which files are kept until the run succeeded, to put them back if it does not
	// PruneLimit is how many things that are no longer declared are removed at once; 0 is DefaultPruneLimit. PruneAll
	// removes any number.
	PruneLimit int
	PruneAll   bool
	// PruneRemoved removes also what jobs left that are no longer there and did not say prune: true.
	PruneRemoved bool
	// Gates are where steps wait for other nodes. Nil: the store is away. Steps that other nodes may take are left
	// alone, and nothing is held.
	Gates Gates
	// FleetReader is a new look at the fleet for a condition. Nil: the view that the catalog was compiled with stands.
	FleetReader func() FleetReader
	// Await receives each condition that begins to wait, and returns what is called when it waits no more: held says
	// that it came to hold. It may be nil.
	Await func(Awaited) (over func(held bool))
	// Rest does something that waits, within the time that the pull may wait in all. It returns an error when that time
	// is up, or ctx ended. Nil: there is no bound.
	Rest func(ctx context.Context, wait func(context.Context)) error
	// Program asks, behind the jobs and before the validations, what became of pullet's own program: see ProgramFate. Nil:
	// that is not asked.
	Program func(context.Context) ProgramFate
	// Begin sees each step that begins to change the host, one at a time with Watch. It may be nil.
	Begin func(Begun)
	// Watch sees each step's report as it comes, one at a time. It may be nil.
	Watch func(*StepReport)
	Vault Vault // for what sensitive steps returned, in the journal
	Log   *logrus.Entry
}

// execution is one walk through a program. Steps may run at once: what they share is guarded by mu.
type execution struct {
	program *Program
	options Options
	plan    bool

	mu      sync.Mutex
	reports map[string]*StepReport       // of the steps that have ended
	values  map[string]render.StepResult // their results, those of sensitive steps as they are
	hidden  map[string]bool              // the steps of which nothing is shown, nor of those that read their results
	answers map[*render.Job]*answer
	report  *Report

	resolved map[string]*boundStep // steps whose parameters waited for others, as they ran
	restored map[string]bool       // steps whose files were put back
	foreign  map[string]*boundStep // steps that another node takes, and whose result was not asked for yet
	due      map[string]bool       // reactions to what was put back or removed
	keeper   *keeper

	unsynced  hostfile.Unsynced // what the steps of groups changed
	unsettled error             // why that cannot be made durable

	over bool // the run was stopped by its own step: it is over, not cut off
}

// answer is what a job's condition said; it is asked once in a run.
type answer struct {
	asked   bool
	done    chan struct{}
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

// Run applies the program to the host. What went wrong is in the report; an error means that the journal could not be
// written. A run that was cut off goes on where it was: a step with a successful end on record is not repeated.
func (p *Program) Run(ctx context.Context, o Options) (*Report, error) {
	o.Journal.Doubt()
	if err := o.Journal.Booted(o.Host.Boot); err != nil {
		return nil, err
	}
	x := p.execution(o)
	if err := x.inherit(o.Journal.Resumes(p.catalog.Version, p.catalog.Digest)); err != nil {
		return nil, err
	}
	id := o.Journal.Begin(o.Run, p.catalog.Version, p.catalog.Digest)
	x.report.Resumed = id != o.Run
	var err error
	if x.keeper, err = openKeeper(o.Keep); err != nil {
		return nil, err
	}
	x.phases(ctx)
	if err := x.makeDurable(ctx); err != nil {
		return x.report, errors.Join(err, o.Journal.Close())
	}
	err = x.remember()
	if err == nil && !x.report.Failed() && !x.report.Pending() {
		err = x.keeper.forget()
	}
	if err != nil || x.report.Stopped != "" && !x.over { // the journal has what the next run needs of this one
		return x.report, errors.Join(err, o.Journal.Close())
	}
	waits := func(step string) bool { return !x.restored[step] && x.of(step).waits(step, o.Journal) }
	return x.report, o.Journal.Finish(p.has, waits)
}

func (p *Program) execution(o Options) *execution {
	x := &execution{
		program: p, options: o,
		reports: map[string]*StepReport{}, values: map[string]render.StepResult{}, hidden: map[string]bool{},
		answers:  map[*render.Job]*answer{},
		resolved: map[string]*boundStep{}, foreign: map[string]*boundStep{},
		restored: map[string]bool{}, due: map[string]bool{}, keeper: &keeper{},
		report: &Report{
			Run: o.Run, Node: p.catalog.Node.Name, Version: p.catalog.Version, Release: p.catalog.Release,
			Started: time.Now().UTC(), Counts: map[Outcome]int{},
		},
	}
	for _, j := range p.catalog.Jobs {
		x.answers[j] = &answer{done: make(chan struct{})}
	}
	return x
}

// phases takes the jobs, then what listens to their changes, then the validations.
func (x *execution) phases(ctx context.Context) {
	var jobs, validations []*boundStep
	for _, s := range x.program.steps {
		if s.job.Validation {
			validations = append(validations, s)
		} else {
			jobs = append(jobs, s)
		}
	}
	x.walk(ctx, jobs)
	x.listeners(ctx, jobs)
	programCheck{x}.ask(ctx)
	if !x.report.Waits() { // half of the host is not there yet
		x.walk(ctx, validations)
	}
	pruner{x, x.options.Journal.Managed()}.prune(ctx)
	(&restorer{execution: x, react: map[string]bool{}}).restore(ctx)
	if ctx.Err() != nil {
		x.stopBecause(stopCause(ctx))
	}
	x.report.Ended = time.Now().UTC()
	x.report.Seconds = x.report.Ended.Sub(x.report.Started).Seconds()
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

// one takes one step from its start to its end, or until it waits in its group.
func (x *execution) one(ctx context.Context, t *turn, c *schedule) event {
	s := t.step
	r := &StepReport{Job: s.Job, Step: s.Name, Action: s.Action, Validation: s.job.Validation, Pos: s.Pos}
	step := newRunning(ctx, x, s, r)
	step.schedule, step.mates.batch, step.mates.group = c, t.batch, t.group
	x.step(ctx, step)
	if step.remaining != nil {
		return event{step: s, turn: &turn{step: s, rest: step.remaining}, gathers: true}
	}
	step.ended()
	return event{step: s, end: true}
}

// ended lets go of what the step held, and reports how it ended.
func (s *running) ended() {
	for _, done := range slices.Backward(s.atEnd) {
		done()
	}
	s.mates.alone()
	s.mates.letGo()
	s.entry.settled(s.run)
	s.r.assignFault(s.step, s.x.options.Host)
	s.gates.publish(s.run)
	s.gates.arrive(s.run)
	s.r.Seconds = time.Since(s.started).Seconds()
	s.x.finish(s.step, s.r)
	s.gates.share()
}

// finish records a step's report, lets its watcher see it, and says at the gates when it failed.
func (x *execution) finish(s *boundStep, r *StepReport) {
	x.file(s, r)
	if r.Outcome != Failed || x.options.Gates == nil || x.plan {
		return
	}
	if err := x.options.Gates.Failed(x.soFar()); err != nil {
		x.stopBecause(err)
	}
}

// file adds a step's report to what is known of the run.
func (x *execution) file(s *boundStep, r *StepReport) {
	r.Result.Result = result(r.Outcome)
	if r.Result.State == "" {
		r.Result.State = r.Result.Result
	}
	r.Result.Changed, r.Item = r.Outcome == Changed, s.ItemName()
	x.mu.Lock()
	defer x.mu.Unlock()
	r.Drift = r.Drift && r.Outcome == Changed && !r.Reacted
	x.values[s.ID()] = r.Result
	had := r.Diff != "" && hadSecret(x.options.Journal.Managed().Things, s)
	if s.Sensitive || had || holdsSecret(x.program.catalog, s, r) {
		x.hidden[s.ID()] = true
		r.hide()
		r.Reason = x.program.catalog.Secrets().Redact(r.Reason)
	}
	x.reports[s.ID()] = r
	x.report.add(r)
	if r.Outcome == Failed && s.Options.FailAfterAllTargetsRan {
		x.report.late++
	}
	if x.options.Watch != nil {
		x.options.Watch(r)
	}
	if r.Outcome == Failed && s.Options.FailHard && (x.report.Stopped == "" || x.report.Reboot) {
		x.report.Stopped, x.over, x.report.Reboot = "step "+s.ID()+" failed and is failHard", true, false
	}
}

// soFar returns a copy of the report, while steps still run.
func (x *execution) soFar() *Report {
	x.mu.Lock()
	defer x.mu.Unlock()
	r := *x.report
	r.Steps, r.Counts = slices.Clone(r.Steps), maps.Clone(r.Counts)
	return &r
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
