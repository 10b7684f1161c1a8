package apply

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"

	"github.com/pullet/pullet/render"
	"github.com/pullet/pullet/state"
)

// unknown is the state of a step of which nobody can say what came of it.
const unknown = "unknown"

// carried takes over what a run that was cut off has on record of the step.
func (s *running) carried(ctx context.Context) bool {
	if s.plan {
		return false
	}
	s.mu.Lock()
	var before StepReport
	ended, cutOff, making := s.Journal.Ended(s.ID(), &before), s.Journal.CutOff(s.ID()), s.Journal.Making(s.ID())
	s.mu.Unlock()
	if ended {
		r := s.r
		r.Outcome, r.Summary, r.Reason, r.Fault, r.Result = before.Outcome, before.Summary, before.Reason, before.Fault, before.Result
		r.Made, r.Lost, r.Reacted, r.Drift = before.Made, before.Lost, before.Reacted, before.Drift
		if _, boot := s.act.(Rebooter); boot {
			s.afterwards(ctx) // which could not be asked before the host booted
		}
		return true
	}
	s.r.Made = making
	if cutOff && !s.repeatable() {
		s.r.Result.State = unknown
		s.r.fail(errors.New("it was started before and its end is not on record, so its result is unknown; " +
			"it is idempotent: false and is not repeated: look at the host; it is done anew with the next commit, and not by resuming"))
		s.record(true)
		return true
	}
	return false
}

// check compares the step with the host. For an action that cannot check, a result on record stands for it.
func (s *running) check(ctx context.Context) (Change, error) {
	if s.boundStep.Options.Runs == "onUpdate" && !s.Upgrade {
		s.r.Outcome, s.r.Reason = Skipped, "runs: onUpdate, and the version is the same"
		return Change{}, nil
	}
	if before, ok := s.done(); ok && !s.stale {
		s.r.Outcome, s.r.Result = OK, before.Result
		if before.Outcome == Failed {
			s.r.Outcome, s.r.Reason, s.r.Fault = Failed, before.Reason, before.Fault
		}
		return Change{}, nil
	}
	return s.act.Check(ctx, s.Host)
}

// done is the result on record that stands for the step.
func (s *running) done() (before StepReport, ok bool) {
	key := s.doneKey(s.catalog.Version)
	if key == "" {
		return before, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return before, s.Journal.Done(s.ID(), key, &before)
}

// repeatable reports a step that may run again when its end is not on record.
func (s *boundStep) repeatable() bool {
	if s.Options.Idempotent != nil {
		return *s.Options.Idempotent
	}
	u, unchecked := s.act.(Unchecked) // what one node does for all is not done twice by accident
	return s.Options.Target == nil || !unchecked || !u.Unchecked()
}

// doneKey is under what a success of the step is remembered for good: "" for one that checks for itself or always runs.
func (s *boundStep) doneKey(version string) string {
	u, ok := s.act.(Unchecked)
	unchecked := ok && u.Unchecked() && !s.Options.Explicit || !s.repeatable()
	switch {
	case s.job.Validation:
		return ""
	case s.Options.Runs == "once":
		version = ""
	case !unchecked:
		return ""
	}
	sum := sha256.Sum256([]byte(version + " " + s.fingerprint()))
	return hex.EncodeToString(sum[:16])
}

// acted reports that the action of the step succeeded.
func (s *running) acted() bool {
	return s.r.Outcome == Changed || s.r.Outcome == OK || s.r.open != ""
}

// continues goes on with a step whose action succeeded in an earlier pull that had no time left for the conditions after it. The action is not
// repeated, and a serialized step keeps its place meanwhile.
func (s *running) continues(ctx context.Context) bool {
	s.mu.Lock()
	var before StepReport
	ok := !s.plan && s.Journal.Done(s.ID(), s.openKey(), &before)
	s.mu.Unlock()
	if !ok {
		return false
	}
	s.r.Outcome, s.r.Summary, s.r.Result = before.Outcome, before.Summary, before.Result
	if !s.serialize(ctx) {
		return true
	}
	defer s.serialized(s.run)
	s.afterwards(ctx)
	s.record(s.acted())
	return true
}

// openKey is under what a step is remembered whose action succeeded and whose conditions after it are still asked for.
func (s *running) openKey() string { return state.OpenStep + s.applied() }

// begin asks whether the step may change the host now, and writes that it starts. Validations change nothing.
func (s *running) begin(ctx context.Context) bool {
	if s.job.Validation {
		return true
	}
	if !s.hold(ctx) || !s.serialize(ctx) || !s.claimed(ctx) {
		s.notSerialized(ctx)
		return false
	}
	s.mu.Lock()
	err := s.start()
	s.mu.Unlock()
	if err != nil {
		s.notSerialized(ctx)
		s.r.fail(err)
		s.stopBecause(err)
		return false
	}
	return true
}

// hold makes sure that it is the node's turn.
func (s *running) hold(ctx context.Context) bool {
	if s.Gates == nil {
		return true
	}
	err := s.Gates.Hold(ctx, s.gated())
	var pending *PendingError
	switch {
	case err == nil:
		return true
	case errors.As(err, &pending):
		s.r.waitOrFail(err)
	default:
		s.r.Outcome, s.r.Reason = Pending, "not started: "+err.Error()
		s.stopBecause(err)
	}
	return false
}

// claimed records with the others that this node, which was chosen for the step, starts it.
func (s *running) claimed(ctx context.Context) bool {
	if !s.elected {
		return true
	}
	err := s.Gates.Begin(ctx, s.gated())
	if err != nil {
		s.waitOrFail(err)
	}
	return err == nil
}

// start writes that the step starts. One that makes the host boot ends with the boot.
func (s *running) start() error {
	if _, ok := s.act.(Rebooter); !ok {
		return s.Journal.Start(s.ID(), s.making())
	}
	line := *s.r
	line.Outcome, line.Summary, line.Result = Changed, "reboot", render.StepResult{State: "booted"}
	return s.Journal.StartBoot(s.ID(), s.Host.Boot, s.doneKey(s.catalog.Version), line)
}

// record writes how the step ended; what is kept stands for the step until its parameters or the version change. Output of a sensitive
// step is on record too, because a run that resumes needs it: the journal is for the agent's user alone.
func (s *running) record(kept bool) {
	if s.job.Validation {
		return
	}
	line, key := *s.r, s.doneKey(s.catalog.Version)
	line.Diff = ""
	if s.r.open != "" {
		line.Outcome, line.Reason, key = s.r.open, "", s.openKey()
	}
	if s.Sensitive { // they may quote the command; the output stays, for the steps that read it in a run that goes on
		line.hideText()
	}
	s.mu.Lock()
	err := s.Journal.End(s.ID(), key, kept, line)
	s.mu.Unlock()
	if err != nil {
		s.r.fail(err)
		s.stopBecause(err)
	}
}
