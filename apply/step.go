package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/pullet/pullet/render"
)

// running is one step while it runs. Its parts are what it asks, what it writes, and whom it waits for.
type running struct {
	x         *execution
	step      *boundStep
	r         *StepReport
	schedule  *schedule
	place     *boundStep      // the step whose place in the schedule it has: its own, but for a trial
	run       context.Context // of the whole run: what waits for other nodes is not the step's time
	started   time.Time
	atEnd     []func() // what to let go of when the step has ended
	remaining func()   // what is left of a step that waits in its group; nil: it has ended

	ran         bool   // its action was applied
	interrupted bool   // a signal stopped the run while the step waited
	maybe       string // in a plan: on what it depends whether the step runs; "" is known
	shared      bool   // it reads the result of a step that one host takes for others

	admission admission
	entry     entry
	gates     gating
	tries     tries
	mates     mates
}

// newRunning is a step about to run, at its own place.
func newRunning(ctx context.Context, x *execution, s *boundStep, r *StepReport) *running {
	step := &running{x: x, step: s, place: s, r: r, run: ctx, started: time.Now()}
	r.Began = step.started
	step.admission.s, step.entry.s, step.gates.s, step.tries.s, step.mates.s = step, step, step, step, step
	return step
}

// step decides what becomes of one step.
func (x *execution) step(ctx context.Context, s *running) {
	if s.gates.held() {
		return
	}
	ran := s.entry.onRecord() // what ran is not asked again whether it may
	if !ran && !s.admission.admitted(ctx, s.admission.jobCondition) {
		return
	}
	ctx, cancel := s.timed() // from here on: what the whole job waits for is not the step's time
	s.atEnd = append(s.atEnd, cancel)
	admitted := ran || s.admission.admitted(ctx, s.admission.requisites, s.admission.ownCondition)
	if !admitted || s.gates.elsewhere(s.run) || s.entry.continues(ctx) || s.entry.carried(ctx) {
		return
	}
	if done, err := s.resolve(s.run); done || err != nil {
		if err != nil && !s.leftOut(err) {
			s.waitOrFail(err)
		}
		return
	}
	change, err := s.check(ctx)
	if err == nil && change.Empty() && s.entry.cutOff {
		err = s.entry.found(ctx)
	}
	var pending *PendingError
	switch {
	case errors.As(err, &pending):
		s.wait(pending)
		return
	case errors.Is(ctx.Err(), context.Canceled):
		s.endRun(errStopped)
		return
	case s.leftOut(err):
		return
	case err != nil && s.maybe != "": // it may be what the condition is for
		s.r.Outcome, s.r.Summary = Changed, s.maybe
		return
	case err != nil:
		s.r.fail(err)
		return
	case s.r.Outcome == "" && change.Empty() && s.entry.doubted:
		s.entry.confirm()
		return
	case s.r.Outcome == "" && change.Empty() && s.admission.watched(), s.r.Outcome == OK && s.admission.watched():
		s.admission.react(ctx)
		return
	case s.r.Outcome != "": // done for good
	case change.Empty():
		s.r.Outcome, s.r.Result.State, s.r.Unknown = OK, change.State, false
	case x.plan && s.maybe == "" && s.lacks(change):
		s.r.fail(change.Lacks)
	case x.plan:
		s.x.options.Host.goes(change.Removes)
		s.r.Drift = x.drifted(s.step, change)
		s.r.Outcome, s.r.Summary, s.r.Diff = Changed, change.Summary, change.Diff
		if s.maybe != "" {
			s.r.Summary += " (" + s.maybe + ")"
		}
		if s.step.passive() || change.Same {
			s.r.Outcome = OK
		}
	default:
		s.apply(ctx, change, func(ctx context.Context) (Output, error) { return s.answered(ctx, change) })
		return
	}
	s.afterwards(ctx)
}

// passive reports a step that never counts as a change.
func (s *boundStep) passive() bool { return s.spec.Passive || s.job.Validation }

// apply makes a change, with the journal written before and after.
func (s *running) apply(ctx context.Context, change Change, act func(context.Context) (Output, error)) {
	r := s.r
	r.Drift, r.Lost = s.x.drifted(s.step, change), change.Lost
	for _, id := range s.entry.absent(ctx) {
		if !slices.Contains(r.Made, id) {
			r.Made = append(r.Made, id)
		}
	}
	if err := s.entry.keep(); err != nil {
		r.fail(err)
		return
	}
	if !s.turn(change) || !s.begin(s.run) {
		return
	}
	defer s.gates.serialized(s.run)
	defer s.gates.quorumKept()
	s.ran = true
	s.entry.tellBegin(change)
	ctx, finished := s.finishing(ctx)
	s.atEnd = append(s.atEnd, finished)
	if s.mates.group != nil {
		s.mates.grouped(ctx, change)
		return
	}
	out, err := s.tries.persist(ctx, func() (Output, error) { return act(ctx) })
	s.cameOf(ctx, change, out, err)
}

// cameOf takes down what came of a change, and asks the conditions that follow it.
func (s *running) cameOf(ctx context.Context, change Change, out Output, err error) {
	r := s.r
	r.Result.State, r.Result.ExitCode, r.Result.Data = out.State, out.ExitCode, out.Data
	r.Result.StdOut, r.Result.StdErr = out.StdOut, out.StdErr
	r.Outcome, r.Summary, r.Diff = Changed, change.Summary, change.Diff
	if out.Did != "" {
		r.Summary += ": " + out.Did
	}
	if out.Later {
		r.Summary += ", when the run has ended"
	}
	if s.step.passive() || change.Same || out.Same {
		r.Outcome = OK
	}
	var pending *PendingError
	var hung *HungError
	switch {
	case errors.As(err, &hung):
		s.abandon(ctx, err)
		return
	case errors.Is(err, errItself):
		r.Summary += "; it stopped pullet, and was ended" // to run it again would stop the next pull too
	case errors.As(err, &pending):
		s.wait(pending)
	case err != nil:
		r.fail(err)
	case out.Reboot:
		s.boots(errReboot, &s.x.report.Reboot)
		return // no end on record: the run goes on behind this step after the boot
	case s.gates.leaves(ctx):
		return // as above
	default:
		s.afterwards(ctx)
	}
	if s.cut(ctx) && r.Outcome != Changed && r.Outcome != OK {
		s.endRun(errStopped) // no end on record: the next pull runs it again
		return
	}
	s.entry.write(s.acted())
}

// abandon fails a step whose action hangs. Its end is not on record: a run that goes on here runs it again, if it may
// run again.
func (s *running) abandon(ctx context.Context, err error) {
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		s.endRun(errStopped)
	case s.step.repeatable():
		s.r.fail(err)
	default:
		s.r.Result.State = unknown
		s.r.fail(fmt.Errorf("%w; %w", err, s.entry.lost()))
		s.entry.write(true)
	}
}

// answered applies the action, and lets it react to a change of what it watches where applying was no answer to that.
func (s *running) answered(ctx context.Context, change Change) (Output, error) {
	out, err := s.mates.together(ctx, change)
	if reactor, ok := s.step.act.(Reactor); ok && err == nil && out.Late && s.admission.watched() {
		s.r.Reacted = true // from here on the state does not tell whether it is done
		return s.step.answer(s.live(ctx), s.x.options.Host, reactor)
	}
	return out, err
}

// verdict acts, and asks what the step's own expressions make of what came of it.
func (s *running) verdict(ctx context.Context, act func() (Output, error)) (Output, error) {
	out, err := act()
	rules, ok := s.step.act.(OutcomeRules)
	var exit *ExitError
	if !ok || err != nil && !errors.As(err, &exit) {
		return out, err
	}
	changed, failed := rules.Verdict()
	result := render.StepResult{
		State: out.State, ExitCode: out.ExitCode, StdOut: out.StdOut, StdErr: out.StdErr, Data: out.Data,
	}
	if failed != nil {
		bad, broken := s.admission.evaluate(ctx, *failed, result, nil)
		switch {
		case broken != nil:
			return out, fmt.Errorf("failed: %w", broken)
		case bad:
			return out, fmt.Errorf("failed: %s: %s", failed.Text, out.Failure())
		}
		err = nil
	}
	if err == nil && changed != nil {
		yes, broken := s.admission.evaluate(ctx, *changed, result, nil)
		if broken != nil {
			return out, fmt.Errorf("changed: %w", broken)
		}
		out.Same = !yes
	}
	return out, err
}

// turn reports that the step may change the host now. A boot, and a change that follows a new result of the fleet, wait
// for the host's turn. A boot ends the run here, because what comes behind the step comes behind the boot.
func (s *running) turn(change Change) bool {
	_, boots := s.step.act.(Rebooter)
	if s.x.options.Turn || !boots && !s.follows(change) {
		return true
	}
	why := errResult
	if boots {
		why = errTurn
	}
	s.r.Outcome, s.r.Reason = Pending, why.Error()
	s.x.mu.Lock()
	defer s.x.mu.Unlock()
	s.x.report.NeedsTurn = true
	if boots && s.x.report.Stopped == "" {
		s.x.report.Stopped, s.x.over = why.Error(), true
	}
	return false
}

// follows reports that the step changes the host because a result was made anew that one host shares with others. All
// of them read it at the same time, so it is an upgrade for them and no drift. Services and facts are different: they
// say what is there now, and hosts follow them at once.
func (s *running) follows(change Change) bool {
	if !s.shared || s.x.options.Gates == nil || s.step.why != "" || s.step.passive() || change.Same {
		return false
	}
	before, applied := s.x.options.Journal.Managed().Steps[s.step.ID()]
	return !applied || before != s.step.fingerprint()
}

// boots ends the run for a boot, and notes in the report whose boot that is: the journal has the step's start, and the
// next pull after the boot goes on behind it.
func (s *running) boots(why error, whose *bool) {
	s.gates.boots = true
	s.x.mu.Lock()
	*whose = !s.x.over
	s.x.mu.Unlock()
	s.endRun(why)
}

// afterwards asks the conditions that follow the action.
func (s *running) afterwards(ctx context.Context) {
	if s.x.plan || s.r.Outcome == Skipped {
		return
	}
	s.r.Result.Result, s.r.Result.Changed = "ok", s.r.Outcome == Changed
	if s.r.Result.State == "" {
		s.r.Result.State = s.r.Result.Result
	}
	s.x.mu.Lock()
	s.x.values[s.step.ID()] = s.r.Result // its own result counts in its conditions
	s.x.mu.Unlock()
	for _, c := range []struct {
		name string
		*render.Condition
	}{{"success", s.step.Conditions.Success}, {"continue", s.step.Conditions.Continue}} {
		if c.Condition == nil {
			continue
		}
		outcome, reason := s.admission.ask(ctx, c.name, c.Condition)
		if s.cut(ctx) {
			s.endRun(errStopped)
			return
		}
		if outcome == Pending {
			s.r.open = s.r.Outcome
			s.r.Outcome, s.r.Reason, s.r.stays = Pending, fmt.Sprintf("%s: %s", c.name, reason), true
			return
		}
		if outcome != "" {
			s.r.fail(&conditionError{fmt.Errorf("%s: %s", c.name, reason)})
			s.r.Result.Result = "failed"
			if c.name == "continue" {
				s.r.closed = s.step.ID()
			}
			return
		}
	}
}
