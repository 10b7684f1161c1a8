package apply

import (
	"github.com/pullet/pullet/render"
	"github.com/pullet/pullet/state"
)

// Record is what the fleet knows of a step on the node that was chosen for it. It decides what ran: the node may have been reinstalled, or its
// disk reverted.
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

// standing is what becomes of a step that the fleet's record is asked for.
type standing string

const (
	stands        standing = "stands"  // its result is on record, there or here
	standsUnknown standing = "unknown" // it was started, and nobody knows what came of it
	standsOpen    standing = "open"    // it runs
)

// standing compares the record with what the node's journal knows of its last attempt, and whether that has a success.
func (r Record) standing(known state.Attempt, done, repeatable bool) standing {
	switch {
	case r.final(), done:
		return stands
	case repeatable:
		return standsOpen
	case known.Began: // and has no end
		return standsUnknown
	case r.Attempt == "", r.Attempt == known.ID: // never started, or this node knows that it failed or did not begin
		return standsOpen
	case r.Of == r.Attempt && r.Result.Result != unknown: // it told how it ended
		return standsOpen
	}
	return standsUnknown
}
