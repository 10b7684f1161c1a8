package apply

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"

	"github.com/pullet/pullet/journal"
	"github.com/pullet/pullet/render"
)

// unknown is the state of a step of which nobody can say what came of it.
const unknown = "unknown"

// onRecord reports a step that ended in the run that this one goes on with. Of one that the fleet chooses nodes for,
// the fleet's record decides.
func (s *running) onRecord() bool {
	s.x.mu.Lock()
	defer s.x.mu.Unlock()
	var before StepReport
	return !s.x.plan && s.step.Options.Target == nil && s.x.options.Journal.Ended(s.step.ID(), &before)
}

// carried takes over what a run that was cut off has on record of the step.
func (s *running) carried(ctx context.Context) bool {
	if s.x.plan {
		return false
	}
	s.x.mu.Lock()
	var before StepReport
	past, id := s.x.options.Journal, s.step.ID()
	boots := past.Boots(id)
	ended, cutOff, making := past.Ended(id, &before), past.CutOff(id), past.Making(id)
	if s.elected {
		if key := s.key(); key != "" { // the fleet's record decides what ran
			var result StepReport
			done, known := s.x.options.Journal.Done(s.step.ID(), key, &result), s.x.options.Journal.Attempt(s.step.ID(), key)
			ended, cutOff = ended && done, s.fleet.Standing(known, done && !s.stale, s.step.repeatable()) == StandsUnknown
		}
	}
	s.doubted = s.x.options.Journal.Doubted(s.step.ID(), &before)
	s.x.mu.Unlock()
	s.before = before
	if ended {
		s.takeOver()
		if boots {
			s.afterwards(ctx) // which could not be asked before the host booted
		}
		return true
	}
	s.r.Made, s.cutOff = making, cutOff
	if cutOff && boots && s.stillLeaving(ctx) {
		return true
	}
	if cutOff && !s.step.repeatable() {
		s.r.Result.State = unknown
		s.r.fail(s.lost())
		s.record(true)
		return true
	}
	return false
}

// takeOver lets what is on record of the step stand.
func (s *running) takeOver() {
	r, before := s.r, s.before
	r.Outcome, r.Summary, r.Reason, r.Result = before.Outcome, before.Summary, before.Reason, before.Result
	r.Fault, r.Unsettled = before.Fault, before.Unsettled
	r.Made, r.Lost, r.Reacted, r.Drift = before.Made, before.Lost, before.Reacted, before.Drift
}

// UnsettledError says that nobody knows what came of a targeted step: of the step itself, or of one that reads its
// result.
type UnsettledError struct {
	Step string // as an operator names it
	Why  string
}

func (e *UnsettledError) Error() string { return e.Why }

// lost says that nobody knows what came of the step, and where to look.
func (s *running) lost() error {
	text := "its result is unknown: it was started before, its end is not on record, and it must not run twice " +
		"(idempotent: false); look at "
	if s.elected {
		return &UnsettledError{s.step.job.GateID(s.step.Step), text + s.x.program.catalog.Node.Name}
	}
	return errors.New(text + "the host; the next commit runs it again")
}

// check compares the step with the host. For an action that cannot check, a result on record stands for it.
func (s *running) check(ctx context.Context) (Change, error) {
	if s.step.Options.Runs == "onUpdate" && !s.x.options.Upgrade {
		s.r.Outcome, s.r.Reason = Skipped, "runs: onUpdate, and the version is the same"
		return Change{}, nil
	}
	if before, ok := s.done(); ok && !s.stale {
		s.r.Outcome, s.r.Result = OK, before.Result
		if before.Outcome == Failed {
			s.r.Outcome, s.r.Reason, s.r.Fault, s.r.Unsettled = Failed, before.Reason, before.Fault, before.Unsettled
		}
		return Change{}, nil
	}
	return s.inspect(ctx)
}

// key is under what the journal remembers the step for good: see doneKey.
func (s *running) key() string { return s.step.doneKey(s.x.program.catalog.Version, s.fleet.Again) }

// done is the result on record that stands for the step: the fleet's, else the node's own.
func (s *running) done() (before StepReport, ok bool) {
	key := s.key()
	if key == "" {
		return before, false
	}
	if s.elected && s.fleet.final() {
		return StepReport{Outcome: OK, Result: s.fleet.Result}, true
	}
	s.x.mu.Lock()
	defer s.x.mu.Unlock()
	return before, s.x.options.Journal.Done(s.step.ID(), key, &before)
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
// It changes with what an operator said of it.
func (s *boundStep) doneKey(version, again string) string {
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
	if again != "" {
		version += " " + again
	}
	sum := sha256.Sum256([]byte(version + " " + s.fingerprint()))
	return hex.EncodeToString(sum[:16])
}

// acted reports that the action of the step succeeded.
func (s *running) acted() bool {
	return s.r.Outcome == Changed || s.r.Outcome == OK || s.r.open != ""
}

// continues goes on with a step whose action succeeded in an earlier pull that had no time left for the conditions
// after it. The action is not repeated, and a serialized step keeps its place meanwhile.
func (s *running) continues(ctx context.Context) bool {
	s.x.mu.Lock()
	var before StepReport
	ok := !s.x.plan && s.x.options.Journal.Open(s.step.ID()) && s.x.options.Journal.Ended(s.step.ID(), &before)
	s.x.mu.Unlock()
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

// begin asks whether the step may change the host now, and writes that it starts. Validations change nothing.
func (s *running) begin(ctx context.Context) bool {
	if s.step.job.Validation {
		return true
	}
	if !s.hold(ctx) || !s.serialize(ctx) || !s.claimed(ctx) {
		s.notSerialized(ctx)
		return false
	}
	err := s.start(ctx)
	if err != nil {
		s.notSerialized(ctx)
		s.failRun(err)
		return false
	}
	return true
}

// hold makes sure that it is the node's turn.
func (s *running) hold(ctx context.Context) bool {
	if s.x.options.Gates == nil {
		return true
	}
	ask := func() error { return s.x.options.Gates.Hold(ctx, s.step.gated()) }
	var err error
	if s.group != nil {
		err = s.group.gate.get(ask)
	} else {
		err = ask()
	}
	var pending *PendingError
	switch {
	case err == nil:
		return true
	case errors.As(err, &pending):
		s.waitOrFail(err)
	default:
		s.endRun(err)
		s.r.Reason = "not started: " + s.r.Reason
	}
	return false
}

// claimed records with the others that this node, which was chosen for the step, starts it.
func (s *running) claimed(ctx context.Context) bool {
	if !s.elected {
		return true
	}
	err := s.claim()
	if err == nil {
		err = s.x.options.Gates.Begin(ctx, s.step.gated(), s.attempt)
	}
	if err != nil {
		s.waitOrFail(err)
	}
	return err == nil
}

// claim writes which attempt the node is about to start, for a step that the fleet's record is asked for: so that a
// node which lost its journal is told from one that was killed before it began.
func (s *running) claim() error {
	s.attempt = s.x.options.Run
	key := s.key()
	if key == "" {
		return nil
	}
	s.x.mu.Lock()
	defer s.x.mu.Unlock()
	return s.x.options.Journal.Claim(s.step.ID(), key, s.attempt)
}

// start writes that the step starts. One that makes the host boot ends with the boot.
func (s *running) start(ctx context.Context) error {
	if s.group == nil {
		if err := s.x.makeDurable(ctx); err != nil {
			return err
		}
	}
	s.x.mu.Lock()
	defer s.x.mu.Unlock()
	if s.group != nil {
		return s.x.options.Journal.StartGrouped(s.step.ID(), s.making())
	}
	if _, ok := s.step.act.(Rebooter); !ok {
		return s.x.options.Journal.Start(s.step.ID(), s.making())
	}
	line := *s.r
	line.Outcome, line.Summary, line.Result = Changed, "reboot", render.StepResult{State: "booted"}
	return s.x.options.Journal.StartBoot(s.step.ID(), s.x.options.Host.Boot, s.key(), line)
}

// record writes how the step ended; what is kept stands for the step until its parameters or the version change. Output
// of a sensitive step is on record too, because a run that resumes needs it: the journal is for the agent's user alone.
func (s *running) record(kept bool) {
	if s.step.job.Validation {
		return
	}
	line, key := *s.r, s.key()
	line.Diff = ""
	if s.r.open != "" {
		line.Outcome, line.Reason, key = s.r.open, "", journal.OpenStep
	}
	if s.step.Sensitive { // they may quote the command; the output stays, for the steps that read it in a run that goes on
		line.hideText()
	}
	s.x.mu.Lock()
	err := s.end(key, kept, line)
	s.x.mu.Unlock()
	if err != nil {
		s.failRun(err)
	}
}

func (s *running) end(key string, kept bool, line StepReport) error {
	if s.group != nil {
		return s.x.options.Journal.EndGrouped(s.step.ID(), kept, line)
	}
	return s.x.options.Journal.End(s.step.ID(), key, kept, line)
}
