package apply

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"slices"

	"github.com/pullet/pullet/internal/journal"
	"github.com/pullet/pullet/render"
)

// unknown is the state of a step of which nobody can say what came of it.
const unknown = "unknown"

// entry is what the journal has of a step, and gets.
type entry struct {
	s       *running
	cutOff  bool       // the step was started before, and its end is not on record
	doubted bool       // it is, and may be lost
	before  StepReport // what is on record of it
}

// onRecord reports a step that ended in the run that this one goes on with. Of one that the fleet chooses nodes for,
// the fleet's record decides.
func (e *entry) onRecord() bool {
	e.s.x.mu.Lock()
	defer e.s.x.mu.Unlock()
	var before recorded
	return !e.s.x.plan && e.s.step.Options.Target == nil && e.s.x.options.Journal.Ended(e.s.step.ID(), &before)
}

// carried takes over what a run that was cut off has on record of the step.
func (e *entry) carried(ctx context.Context) bool {
	if e.s.x.plan {
		return false
	}
	e.s.x.mu.Lock()
	var before, result recorded
	past, id := e.s.x.options.Journal, e.s.step.ID()
	boots := past.Boots(id)
	ended, cutOff, making := past.Ended(id, &before), past.CutOff(id), past.Making(id)
	if e.s.gates.elected {
		if key := e.key(); key != "" { // the fleet's record decides what ran
			done, known := past.Done(id, key, &result), past.Attempt(id, key)
			stands := e.s.gates.fleet.Standing(known, done && !e.s.gates.stale, e.s.step.repeatable())
			ended, cutOff = ended && done && !e.s.gates.stale, stands == StandsUnknown
		}
	}
	e.doubted = e.s.x.options.Journal.Doubted(e.s.step.ID(), &before)
	e.s.x.mu.Unlock()
	e.before = e.s.x.options.Vault.report(before)
	if ended {
		e.takeOver()
		if boots {
			e.s.afterwards(ctx) // which could not be asked before the host booted
		}
		return true
	}
	e.s.r.Made, e.cutOff = making, cutOff
	if cutOff && boots && e.s.gates.stillLeaving(ctx) {
		return true
	}
	if cutOff && !e.s.step.repeatable() {
		e.s.r.Result.State = unknown
		e.s.r.fail(e.lost())
		e.write(true)
		return true
	}
	return false
}

// takeOver lets what is on record of the step stand.
func (e *entry) takeOver() {
	r, before := e.s.r, e.before
	r.Outcome, r.Summary, r.Reason, r.Result = before.Outcome, before.Summary, before.Reason, before.Result
	r.Fault, r.Unsettled, r.hidden = before.Fault, before.Unsettled, before.hidden
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
func (e *entry) lost() error {
	text := "its result is unknown: it was started before, its end is not on record, and it must not run twice " +
		"(idempotent: false); look at "
	if e.s.gates.elected {
		return &UnsettledError{e.s.step.job.GateID(e.s.step.Step), text + e.s.x.program.catalog.Node.Name}
	}
	return errors.New(text + "the host; the next commit runs it again")
}

// triggered reports a step that runs each time that another one changes, is about to change or fails, and not once for
// a version. What one host does for all, and what runs once, is done once all the same.
func (s *boundStep) triggered() bool {
	refers := func(kind string) bool { return len(s.needs[kind]) > 0 }
	return s.Options.Target == nil && s.Options.Runs != "once" &&
		slices.ContainsFunc(triggers, refers)
}

// check compares the step with the host. For an action that cannot check, a result on record stands for it.
func (s *running) check(ctx context.Context) (Change, error) {
	if s.step.Options.Runs == "onUpdate" && !s.x.options.Upgrade {
		s.r.Outcome, s.r.Reason = Skipped, "runs: onUpdate, and the version is the same"
		return Change{}, nil
	}
	if before, ok := s.entry.done(); ok && !s.gates.stale && !s.step.triggered() {
		s.r.Outcome, s.r.Result, s.r.hidden = OK, before.Result, before.hidden
		if before.Outcome == Failed {
			s.r.Outcome, s.r.Reason, s.r.Fault, s.r.Unsettled = Failed, before.Reason, before.Fault, before.Unsettled
		}
		return Change{}, nil
	}
	return s.mates.inspect(ctx)
}

// key is under what the journal remembers the step for good: see doneKey.
func (e *entry) key() string {
	return e.s.step.doneKey(e.s.x.program.catalog.Version, e.s.gates.fleet.Again)
}

// done is the result on record that stands for the step: the fleet's, else the node's own.
func (e *entry) done() (_ StepReport, ok bool) {
	key := e.key()
	if key == "" {
		return StepReport{}, false
	}
	if e.s.gates.elected && e.s.gates.fleet.final() && !e.s.gates.fleet.Result.Withheld {
		return e.ofFleet(), true
	}
	var before recorded
	e.s.x.mu.Lock()
	known := e.s.x.options.Journal.Done(e.s.step.ID(), key, &before)
	e.s.x.mu.Unlock()
	if e.s.gates.elected && e.s.gates.fleet.final() && !known {
		return e.ofFleet(), true
	}
	return e.s.x.options.Vault.report(before), known
}

// ofFleet is the fleet's result as a report.
func (e *entry) ofFleet() StepReport {
	r := e.s.gates.fleet.Result
	return StepReport{Outcome: OK, Result: r, hidden: r.Secret}
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
func (e *entry) continues(ctx context.Context) bool {
	var on recorded
	e.s.x.mu.Lock()
	ok := !e.s.x.plan && e.s.x.options.Journal.Open(e.s.step.ID()) && e.s.x.options.Journal.Ended(e.s.step.ID(), &on)
	e.s.x.mu.Unlock()
	if !ok {
		return false
	}
	before := e.s.x.options.Vault.report(on)
	e.s.r.Outcome, e.s.r.Summary, e.s.r.Result, e.s.r.hidden = before.Outcome, before.Summary, before.Result, before.hidden
	if !e.s.gates.serialize(ctx) {
		return true
	}
	defer e.s.gates.serialized(e.s.run)
	e.s.afterwards(ctx)
	e.write(e.s.acted())
	return true
}

// begin asks whether the step may change the host now, and writes that it starts. Validations change nothing.
func (s *running) begin(ctx context.Context) bool {
	if s.step.job.Validation {
		return true
	}
	if !s.gates.hold(ctx) || !s.gates.serialize(ctx) || !s.gates.keepsQuorum(ctx) || !s.gates.claimed(ctx) {
		s.gates.notStarted(ctx)
		return false
	}
	err := s.entry.start(ctx)
	if err != nil {
		s.gates.notStarted(ctx)
		s.failRun(err)
		return false
	}
	return true
}

// start writes that the step starts. One that makes the host boot ends with the boot.
func (e *entry) start(ctx context.Context) error {
	if e.s.mates.group == nil {
		if err := e.s.x.makeDurable(ctx); err != nil {
			return err
		}
	}
	e.s.x.mu.Lock()
	defer e.s.x.mu.Unlock()
	if e.s.mates.group != nil {
		return e.s.x.options.Journal.StartGrouped(e.s.step.ID(), e.making())
	}
	if _, ok := e.s.step.act.(Rebooter); !ok {
		return e.s.x.options.Journal.Start(e.s.step.ID(), e.making())
	}
	line := *e.s.r
	line.Outcome, line.Summary, line.Result = Changed, "reboot", render.StepResult{State: "booted"}
	return e.s.x.options.Journal.StartBoot(e.s.step.ID(), e.s.x.options.Host.Boot, e.key(), line)
}

// write writes how the step ended; what is kept stands for the step until its parameters or the version change. Output
// of a sensitive step is on record too, encrypted where the host has a key, because a run that resumes needs it.
func (e *entry) write(kept bool) {
	if e.s.step.job.Validation {
		return
	}
	line, key := *e.s.r, e.key()
	line.Diff = ""
	if e.s.r.open != "" {
		line.Outcome, line.Reason, key = e.s.r.open, "", journal.OpenStep
	}
	onDisk := e.s.record(line)
	e.s.x.mu.Lock()
	err := e.end(key, kept, onDisk)
	e.s.x.mu.Unlock()
	if err != nil {
		e.s.failRun(err)
	}
}

func (e *entry) end(key string, kept bool, line recorded) error {
	if e.s.mates.group != nil {
		return e.s.x.options.Journal.EndGrouped(e.s.step.ID(), kept, line)
	}
	return e.s.x.options.Journal.End(e.s.step.ID(), key, kept, line)
}
