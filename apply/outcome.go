package apply

import "errors"

// fail files an error as the step's end.
func (r *StepReport) fail(err error) {
	r.Outcome, r.Reason, r.Fault = Failed, err.Error(), FaultOf(err)
	if unsettled, ok := errors.AsType[*UnsettledError](err); ok {
		r.Unsettled = unsettled.Step
	}
}

// wait leaves the step pending until what its action waits for is there. What comes after a step that only waits was
// written to come after it.
func (s *running) wait(p *PendingError) {
	s.r.Outcome, s.r.Reason, s.r.stays = Pending, p.Reason, s.step.spec.Passive
}

// waitOrFail leaves the outcome of a gate that did not open.
func (s *running) waitOrFail(err error) {
	var pending *PendingError
	if errors.As(err, &pending) {
		s.r.Outcome, s.r.Reason, s.r.Held = Pending, pending.Reason, true
		return
	}
	s.r.fail(err)
}

// also is an error at a gate behind what came of the step: it does not hide a failure.
func (s *running) also(err error) {
	if s.r.Outcome != Failed {
		s.waitOrFail(err)
	} else if s.x.options.Log != nil {
		s.x.options.Log.WithError(err).Warn("step " + s.step.ID() + " failed, and so did telling the others")
	}
}

// failRun fails the step and ends the run with it: what happened cannot be put on record.
func (s *running) failRun(err error) {
	s.r.fail(err)
	s.x.stopBecause(err)
}

// endRun ends the run at this step, which stays pending: that is no failure of the step.
func (s *running) endRun(why error) {
	s.r.Outcome, s.r.Reason = Pending, why.Error()
	s.x.stopBecause(why)
}
