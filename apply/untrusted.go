package apply

import "errors"

// MayRun returns an *UntrustedError if nothing may run on the host that the state repository wrote. What is its kind.
func (h *Host) MayRun(what string) error {
	if h.Untrusted {
		return &UntrustedError{what}
	}
	return nil
}

// leftOut notes, in a plan, a step of which nobody knows whether it changes something, or is wanted, because of what
// was not run: it counts as a change.
func (s *running) leftOut(err error) bool {
	left, is := errors.AsType[*UntrustedError](err)
	if is {
		s.r.Unevaluated, s.r.Unknown = left.What, true
		s.r.Outcome, s.r.Summary = Changed, "unknown because "+left.Error()
	}
	return is
}
