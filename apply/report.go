package apply

import (
	"slices"
	"strings"
	"time"

	"github.com/pullet/pullet/internal/journal"
	"github.com/pullet/pullet/internal/safetext"
	"github.com/pullet/pullet/render"
)

// Outcome is what became of a step.
type Outcome string

// The outcomes of a step.
const (
	OK      Outcome = "ok"      // right already, or done in this run before it was cut off
	Changed Outcome = "changed" // changed; in a plan: would change
	Failed  Outcome = "failed"
	Skipped Outcome = "skipped" // its condition said no
	Unmet   Outcome = "unmet"   // what it requires did not succeed
	Pending Outcome = "pending" // its condition was not met in time
)

// StepReport is what became of one step.
type StepReport struct {
	Job        string          `json:"job"`
	Step       string          `json:"step"`
	Item       string          `json:"item,omitempty"` // of the forEach that made it, where its name is short
	Action     string          `json:"action"`
	Validation bool            `json:"validation,omitempty"`
	Pos        render.Position `json:"pos"`
	Outcome    Outcome         `json:"outcome"`
	Summary    string          `json:"summary,omitempty"` // what changed or would change
	Diff       string          `json:"diff,omitempty"`
	Reason     string          `json:"reason,omitempty"` // why it failed, was skipped or waits
	Fault      Fault           `json:"fault,omitempty"`  // whose fault a failure is
	// the targeted step because of whose unknown result it failed
	Unsettled string `json:"unsettled,omitempty"`
	// in the plan of a work tree: the command of the repository that was not run
	Unevaluated string `json:"unevaluated,omitempty"`
	// the host was changed by something else: the step says what it said before
	Drift   bool              `json:"drift,omitempty"`
	Unknown bool              `json:"unknown,omitempty"` // in a plan: whether it changes something is known only in a run
	Made    []string          `json:"made,omitempty"`    // the resources that were not on the host before
	Lost    bool              `json:"lost,omitempty"`    // it removed what cannot be put back
	Held    bool              `json:"held,omitempty"`    // it waits for other nodes, and so does what comes after it
	stays   bool              // it waits for what others offer, and what comes after it stays behind; validations do not
	others  bool              // other nodes have a part in its result, which this run has not asked for
	hidden  bool              // it was sensitive when it ended, by what is on record
	open    Outcome           // what its action did, while its conditions after it are still asked for
	awaits  *Awaited          // the condition that it waits for; nil: none
	closed  string            // the step whose continue did not hold: what comes after it in its job is not run
	Reacted bool              `json:"reacted,omitempty"` // it did what it does when something that it watches changed
	Result  render.StepResult `json:"result"`
	Seconds float64           `json:"seconds,omitempty"`
	Began   time.Time         `json:"-"` // in this process; zero: it did not
}

// waits reports a step whose action succeeded and that did not get through what comes behind that.
func (r *StepReport) waits(step string, j *journal.Journal) bool {
	var did StepReport
	return r != nil && (r.Outcome == Pending || r.Outcome == Failed) && j.Ended(step, &did) && did.Outcome != Failed
}

// Ended reports a step that ran to its end, whatever came of it: nothing kept it from that.
func (r *StepReport) Ended() bool {
	return r.Outcome != Skipped && r.Outcome != Unmet && r.Outcome != Pending
}

// Title names the step for people: job/step, and the item of its forEach.
func (r *StepReport) Title() string {
	return safetext.OneLine(strings.TrimSpace(r.Job + "/" + r.Step + " " + r.Item))
}

// Report is what came of one run, or of a plan.
type Report struct {
	Run      string    `json:"run"`
	Node     string    `json:"node"`
	Version  string    `json:"version"`
	Release  string    `json:"release,omitempty"`
	Reaction string    `json:"reaction,omitempty"` // that the run is of; "": the host is brought to a version
	Event    string    `json:"event,omitempty"`    // that it answers
	Commits  []string  `json:"commits,omitempty"`  // of the version, in a line each
	Plan     bool      `json:"plan,omitempty"`     // nothing was touched
	Resumed  bool      `json:"resumed,omitempty"`
	Started  time.Time `json:"started"`
	Ended    time.Time `json:"ended"`
	Seconds  float64   `json:"seconds"`            // that it took, also where the clock was set meanwhile
	Stopped  string    `json:"stopped,omitempty"`  // why steps were left out at the end
	Reboot   bool      `json:"reboot,omitempty"`   // the host has to boot before the run goes on
	Leaving  bool      `json:"leaving,omitempty"`  // a command of a step asked for the boot: the run goes on after it
	HandOver bool      `json:"handOver,omitempty"` // the run goes on in the program that took the place of this one
	// NeedsTurn is set when the host has to boot, or to follow a new result of the fleet, and it was not its turn.
	NeedsTurn bool            `json:"needsTurn,omitempty"`
	Steps     []*StepReport   `json:"steps"`
	Counts    map[Outcome]int `json:"counts"`

	Leftovers []Leftover `json:"leftovers,omitempty"` // on the host, and no longer declared
	late      int        // failures of steps whose failure stops nobody before every node ran them
	Restored  bool       `json:"restored,omitempty"`  // files of jobs were put back
	NotUndone []string   `json:"notUndone,omitempty"` // steps whose changes stayed when their job's files were restored
	// Errors are what was wrong beside the steps, in a report that is kept: a commit that does not compile.
	Errors []string `json:"errors,omitempty"`
	// Repeated is how many runs just before this one failed in the same way, in a report that is kept.
	Repeated int `json:"repeated,omitempty"`
}

// Repeats reports that a run failed as the last one did, and changed nothing.
func (r *Report) Repeats(last *Report) bool {
	said := func(r *Report) (all []string) {
		for _, s := range r.Steps {
			if s.Outcome != OK {
				all = append(all, s.Title()+" "+string(s.Outcome)+" "+s.Reason)
			}
		}
		return append(all, r.Errors...)
	}
	failed := r.Failed() || len(r.Errors) > 0
	return failed && r.Changed() == 0 && r.Version == last.Version && slices.Equal(said(r), said(last))
}

func (r *Report) add(s *StepReport) {
	r.Steps = append(r.Steps, s)
	r.Counts[s.Outcome]++
}

// Failed reports that a step failed, or could not run because of one that did.
func (r *Report) Failed() bool { return r.Counts[Failed] > 0 || r.Counts[Unmet] > 0 }

// OnlyValidationsFailed reports that all that failed are validations: everything was applied.
func (r *Report) OnlyValidationsFailed() bool {
	return r.Failed() && !slices.ContainsFunc(r.Steps, func(s *StepReport) bool {
		return !s.Validation && (s.Outcome == Failed || s.Outcome == Unmet)
	})
}

// Pending reports that something is waited for and nothing failed.
func (r *Report) Pending() bool { return !r.Failed() && (r.Counts[Pending] > 0 || r.Stopped != "") }

// Late reports that all that failed are steps whose failure stops nobody before every node ran them.
func (r *Report) Late() bool { return r.Counts[Failed] > 0 && r.Counts[Failed] == r.late }

// Waits reports a step that waits for other nodes at a gate.
func (r *Report) Waits() bool {
	return slices.ContainsFunc(r.Steps, func(s *StepReport) bool { return s.Held })
}

// Changed is the number of steps that changed the host.
func (r *Report) Changed() int { return r.Counts[Changed] }

// First is the first step with an outcome, or nil.
func (r *Report) First(o Outcome) *StepReport {
	for _, s := range r.Steps {
		if s.Outcome == o {
			return s
		}
	}
	return nil
}

// Unsettled is the targeted step because of whose unknown result the run failed: an operator says what became of it. ""
// is none.
func (r *Report) Unsettled() string {
	if s := r.First(Failed); s != nil {
		return s.Unsettled
	}
	return ""
}

// Why is why the step failed or waits, in one line: the step, its place, and the reason.
func (r *StepReport) Why() string {
	place := ""
	if at := r.Pos.String(); at != "" { // of a step of the repository
		place = " (" + at + ")"
	}
	return r.Title() + place + ": " + r.Reason
}

// Why is a failed or waiting run in one line: the step, its place, and the reason, and that the host is at fault.
func (r *Report) Why() string {
	for _, o := range []Outcome{Failed, Unmet, Pending} {
		if s := r.First(o); s != nil {
			return r.Fault().Says(s.Why())
		}
	}
	return r.Stopped
}
