package apply

import "fmt"

// hide keeps what a sensitive step read and wrote out of reports.
func (r *StepReport) hide() {
	if r.Diff != "" {
		r.Diff = "(sensitive: not shown)\n"
	}
	r.hideText()
	r.Result = r.Result.Outcome()
}

// hideText keeps the command of a sensitive step, which what is said about it may quote, out of reports and the
// journal.
func (r *StepReport) hideText() {
	if r.Summary != "" {
		r.Summary = "(sensitive: not shown)"
	}
	if r.Outcome == Failed {
		how := ""
		if r.Result.ExitCode != 0 {
			how = fmt.Sprintf(" with exit code %d", r.Result.ExitCode)
		}
		r.Reason = "failed" + how + " (sensitive: the output is not shown)"
	}
}

// publicReason is why the step ended as it did, as others may know it.
func (s *running) publicReason() string {
	line := *s.r
	if s.step.Sensitive || holdsSecret(s.x.program.catalog, s.step, s.r) {
		line.hideText()
	}
	return line.Reason
}
