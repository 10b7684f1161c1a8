package apply

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
)

// carried takes over what a run that was cut off has on record of the step.
func (x *execution) carried(s *boundStep, r *StepReport) bool {
	if x.plan {
		return false
	}
	var before StepReport
	if x.Journal.Ended(s.ID(), &before) {
		r.Outcome, r.Summary, r.Reason, r.Result = before.Outcome, before.Summary, before.Reason, before.Result
		return true
	}
	if !s.repeatable() && x.Journal.CutOff(s.ID()) {
		r.fail(errors.New("it was started before and its end is not on record, so its result is unknown; " +
			"it is idempotent: false and is not repeated: look at the host, then commit a change to the step"))
		x.record(s, r, true)
		return true
	}
	return false
}

// repeatable reports a step that may run again when its end is not on record.
func (s *boundStep) repeatable() bool { return s.Options.Idempotent == nil || *s.Options.Idempotent }

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
	// Encoding cannot fail: parameters are plain data from YAML.
	data, _ := json.Marshal([]any{version, s.Action, s.Params.Value()})
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:16])
}

// begin asks whether the step may change the host now, and writes that it starts. Validations change nothing.
func (x *execution) begin(ctx context.Context, s *boundStep, r *StepReport) bool {
	if s.job.Validation {
		return true
	}
	if x.Hold != nil {
		if err := x.Hold(ctx); err != nil {
			r.Outcome, r.Reason = Pending, "not started: "+err.Error()
			x.report.Stopped = err.Error()
			return false
		}
	}
	if err := x.Journal.Start(s.ID()); err != nil {
		r.fail(err)
		x.report.Stopped = err.Error()
		return false
	}
	return true
}

// record writes how the step ended; what is kept stands for the step until its parameters or the version change.
func (x *execution) record(s *boundStep, r *StepReport, kept bool) {
	if s.job.Validation {
		return
	}
	line := *r
	line.Diff = ""
	if s.Sensitive {
		line.hide()
	}
	if err := x.Journal.End(s.ID(), s.doneKey(x.catalog.Version), kept, line); err != nil {
		r.fail(err)
		x.report.Stopped = err.Error()
	}
}
