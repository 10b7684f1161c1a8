package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"syscall"
	"time"

	"github.com/pullet/pullet/internal/journal"
	"github.com/pullet/pullet/render"
)

// restoreTime is how long putting files back may take, with the reactions to that, in a run whose own time is over.
const restoreTime = time.Minute

// keep remembers the files that a step is about to change, where its job wants them back when an upgrade fails. What a
// step corrects that says what it said before is no last good.
func (e *entry) keep() error {
	e.s.x.mu.Lock()
	defer e.s.x.mu.Unlock()
	past := e.s.x.options.Journal
	if !e.s.step.job.Restore || !e.s.x.options.Upgrade || past.Managed().Steps[e.s.step.ID()] == e.s.step.fingerprint() {
		return nil
	}
	for _, what := range e.s.step.manages() {
		if what.Path == "" || what.Part {
			continue
		}
		if err := e.s.x.keeper.keep(e.s.x.options.Host, e.s.step.ID(), what.Path); err != nil {
			return fmt.Errorf("keeping %s, to restore it if the upgrade fails: %w", what.Path, err)
		}
	}
	return nil
}

// restorer puts the files of jobs with onFailure: restore back as they were, when the upgrade failed in these jobs or
// in a validation. What reads the files reacts to that. What else the jobs changed is named in the report: it cannot
// be undone.
type restorer struct {
	*execution
	react map[string]bool // steps that react to what was put back
}

func (re *restorer) restore(ctx context.Context) {
	var failed []*render.Job
	for _, j := range re.program.catalog.Jobs {
		if j.Restore && re.failedFor(j) {
			failed = append(failed, j)
		}
	}
	late := errors.Is(ctx.Err(), context.DeadlineExceeded)
	if len(failed) == 0 || re.plan || !re.options.Upgrade || !late && (ctx.Err() != nil || re.stopped() && !re.over) {
		return
	}
	if late { // what hangs may be what the upgrade broke
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), restoreTime)
		defer cancel()
		re.over = true
	}
	if err := re.mayRestore(ctx); err != nil {
		re.over = false
		re.stopBecause(err)
		return
	}
	for _, j := range failed {
		re.restoreJob(ctx, j)
	}
	re.reactions(ctx, "restore", re.react)
}

// mayRestore asks whether the host may be changed, and makes sure that no run goes on with this one: its steps will be
// due again.
func (re *restorer) mayRestore(ctx context.Context) error {
	if re.options.Gates != nil {
		if err := re.options.Gates.Hold(ctx, GatedStep{}); err != nil {
			return err
		}
	}
	return re.options.Journal.Abandon()
}

// failedFor reports a failure in a job or in a validation.
func (re *restorer) failedFor(j *render.Job) bool {
	return slices.ContainsFunc(re.report.Steps, func(r *StepReport) bool {
		return (r.Validation || r.Job == j.Name) && (r.Outcome == Failed || r.Outcome == Unmet)
	})
}

// restoreJob puts back what a job changed, the last change first, and notes who reacts to it.
func (re *restorer) restoreJob(ctx context.Context, j *render.Job) {
	back := func(s *boundStep, what string, err error) {
		if errors.Is(err, syscall.ENOTEMPTY) { // a directory that others filled since
			re.report.NotUndone = append(re.report.NotUndone, s.ID())
			return
		}
		r := &StepReport{
			Job:     j.Name,
			Step:    "restore " + what,
			Action:  s.Action,
			Pos:     s.Pos,
			Outcome: Changed,
			Summary: "put back as it was before the upgrade",
		}
		if err != nil {
			r.fail(fmt.Errorf("%s could not be put back: %w", what, err))
		}
		re.restored[s.ID()], re.report.Restored = true, true
		re.report.add(r)
		if re.options.Watch != nil {
			re.options.Watch(r)
		}
		for _, w := range s.watchers {
			re.react[w] = true
		}
	}
	re.restoreParts(ctx, j, back)
	for _, one := range slices.Backward(re.keeper.kept) {
		if s := re.program.byID[one.Step]; s != nil && s.job == j && !one.still(re.options.Host) {
			back(s, one.Path, one.putBack(re.options.Host))
		}
	}
	for _, r := range re.report.Steps {
		id := j.Name + "/" + r.Step
		again := r.Reacted && re.react[id] // all that it did is done once more, for the files as they were
		stays := r.Outcome == Changed && re.program.byID[id] != nil && (!re.restored[id] || r.Lost)
		if r.Job == j.Name && stays && !again && !slices.Contains(re.report.NotUndone, id) {
			re.report.NotUndone = append(re.report.NotUndone, id)
		}
	}
}

// restoreParts takes the parts out of files that a job put there. The rest of such a file may be others'.
func (re *restorer) restoreParts(ctx context.Context, j *render.Job, back func(*boundStep, string, error)) {
	for _, s := range slices.Backward(re.program.steps) {
		if resolved := re.resolved[s.ID()]; resolved != nil {
			s = resolved
		}
		r := re.of(s.ID())
		if s.job != j || r == nil || s.late || s.Waits() {
			continue
		}
		for _, what := range s.manages() {
			removal := re.program.removal(what.ID, journal.Thing{Job: s.Job, Absent: what.Absent, Params: what.Params})
			if !what.Part || removal == nil || !slices.Contains(r.Made, what.ID) {
				continue
			}
			change, err := removal.compare(ctx, re.options.Host)
			if err == nil && !change.Empty() {
				_, err = removal.change(ctx, re.options.Host, change)
			}
			back(s, what.ID, err)
		}
	}
}
