package apply

import (
	"github.com/pullet/pullet/internal/journal"
	"github.com/pullet/pullet/render"
)

// Record is what the fleet knows of a step on the node that was chosen for it. It decides what ran: the node may have
// been reinstalled, or its disk reverted.
type Record struct {
	Attempt string            // the last one that was started; empty is none
	Result  render.StepResult // what was published; its Result is empty where nothing was
	Of      string            // the attempt that ended so
	Fresh   bool              // the result is not older than the step's maxAge
	Again   string            // changes when an operator has the step run again
}

// published reports a result that others may have read.
func (r Record) published() bool {
	return r.Result.Result == "ok" || r.Result.Result == string(Skipped)
}

// final reports a result that stands for the step.
func (r Record) final() bool { return r.published() && r.Fresh }

// Standing is what the fleet's record says of a targeted step.
type Standing string

const (
	Stands        Standing = "stands"  // its result is on record, in the fleet or on the node
	StandsUnknown Standing = "unknown" // it was started, and nobody knows what came of it
	StandsOpen    Standing = "open"    // it may run
)

// Standing compares the record with what the node's journal knows of its last attempt, and with whether the journal has
// a success.
func (r Record) Standing(known journal.Attempt, done, repeatable bool) Standing {
	switch {
	case r.final(), done:
		return Stands
	case repeatable:
		return StandsOpen
	case known.Began: // and has no end
		return StandsUnknown
	case r.Attempt == "", r.Attempt == known.ID: // never started, or this node knows that it failed or did not begin
		return StandsOpen
	case r.Of == r.Attempt && r.Result.Result != unknown: // it told how it ended
		return StandsOpen
	}
	return StandsUnknown
}
