package apply

import (
	"context"
	"fmt"
	"slices"

	"github.com/pullet/pullet/render"
)

// keep remembers the files that a step is about to change, where its job wants them back when an upgrade fails.
func (s *running) keep() error {
	if !s.job.Restore || !s.Upgrade {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, what := range s.manages() {
		if what.Path == "" {
			continue
		}
		if err := s.keeper.keep(s.Host, s.ID(), what.Path); err != nil {
			return fmt.Errorf("keeping %s, to restore it if the upgrade fails: %w", what.Path, err)
		}
	}
	return nil
}

// lastGood puts the files of jobs with onFailure: restore back as they were, when the upgrade failed in these jobs or in a validation. What
// reads the files reacts to that. What else the jobs changed is named in the report: it cannot be undone.
func (x *execution) lastGood(ctx context.Context) {
	if x.plan || !x.Upgrade || x.stopped() && !x.failedHard || ctx.Err() != nil {
		return
	}
	react := map[string]bool{}
	for _, j := range x.catalog.Jobs {
		if j.Restore && x.failedFor(j) {
			x.restoreJob(j, react)
		}
	}
	x.reactions(ctx, "restore", react)
}

// failedFor reports a failure in a job or in a validation.
func (x *execution) failedFor(j *render.Job) bool {
	return slices.ContainsFunc(x.report.Steps, func(r *StepReport) bool {
		return (r.Validation || r.Job == j.Name) && (r.Outcome == Failed || r.Outcome == Unmet)
	})
}

// restoreJob puts back what a job changed, the last change first, and notes who reacts to it.
func (x *execution) restoreJob(j *render.Job, react map[string]bool) {
	watchers := x.watchers()
	for _, one := range slices.Backward(x.keeper.kept) {
		s := x.byID[one.Step]
		if s == nil || s.job != j {
			continue
		}
		r := &StepReport{Job: j.Name, Step: "restore " + one.Path, Action: s.Action, Pos: s.Pos, Outcome: Changed, Summary: "put back as it was before the upgrade"}
		if err := one.putBack(x.Host); err != nil {
			r.fail(fmt.Errorf("%s could not be put back: %w", one.Path, err))
		}
		x.restored[one.Step] = true
		x.report.add(r)
		if x.Watch != nil {
			x.Watch(r)
		}
		for _, w := range watchers[one.Step] {
			react[w] = true
		}
	}
	for _, r := range x.report.Steps {
		id := j.Name + "/" + r.Step
		again := r.reacted && react[id] // all that it did is done once more, for the files as they were
		if r.Job == j.Name && r.Outcome == Changed && x.byID[id] != nil && !x.restored[id] && !again {
			x.report.NotUndone = append(x.report.NotUndone, id)
		}
	}
}
