package command_test

import (
	"strings"
	"testing"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/apply/action/actiontest"
)

// TestGuardOfALaterProgram: a plan does not fail for the program of a guard that an earlier step may bring. If it is
// still missing, a run fails, and does not run the command.
func TestGuardOfALaterProgram(t *testing.T) {
	t.Parallel()
	for install, want := range map[string]apply.Outcome{"touch installed": apply.Failed, "cp /bin/true tool": apply.Changed} {
		s := actiontest.New(t)
		p, err := s.BindText("steps:\n- {name: install, action: cmd.run, parameters: {cmd: " + install + "}}\n" +
			"- {name: it, action: cmd.run, parameters: {cmd: touch made, onlyif: ./tool}}\n")
		if err != nil {
			t.Fatal(err)
		}
		if r := p.Plan(t.Context(), s.Options()).Steps[1]; r.Outcome != apply.Changed || r.Summary != "run touch made" {
			t.Errorf("%s: the plan: %s %q %s", install, r.Outcome, r.Summary, r.Reason)
		}
		r := s.RunAll(t.Context(), p).Steps[1]
		if r.Outcome != want || want == apply.Failed && !strings.Contains(r.Reason, "onlyif: ./tool: exit code 127") {
			t.Errorf("%s: the run: %s %q, want %s", install, r.Outcome, r.Reason, want)
		}
		if _, made := s.Tree()[s.Path("made")]; made != (want == apply.Changed) {
			t.Errorf("%s: the command ran: %v", install, made)
		}
	}
}
