package systemd_test

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/apply/action/actiontest"
)

// pull runs a job on a whole host, with the state directory of the scene, and gives the reports of its steps.
func pull(s *actiontest.Scene, job string) map[string]*apply.StepReport {
	s.T.Helper()
	p, err := s.BindText(job)
	if err != nil {
		s.T.Fatal(err)
	}
	out := map[string]*apply.StepReport{}
	for _, r := range s.RunAll(context.Background(), p).Steps {
		out[r.Step] = r
	}
	return out
}

const watching = `
steps:
- name: start vnstat
  action: service.ensure
  parameters: {name: w-vnstat, state: started, watch: [{file: /etc/w-vnstat.a}, {file: /etc/w-vnstat.b}]}
- name: a
  action: file.managed
  parameters: {name: /etc/w-vnstat.a, content: "A"}
- name: b
  action: file.managed
  parameters: {name: /etc/w-vnstat.b, content: "B"}
- name: look
  action: test.succeed
  parameters: {require: [{service: w-vnstat}]}
  conditions:
    success: {condition: "steps['start vnstat'].State == 'running'"}
`

// TestServiceWatches: what it watches restarts a service once, however much of it changed, and not when it was just
// started. Conditions read its state also when nothing was to be done.
func TestServiceWatches(t *testing.T) {
	s := actiontest.OnHost(t, "rm -f /run/w-starts; "+actiontest.WholeUnit("w-vnstat.service", `ExecStart=/bin/sh -c "echo started >>/run/w-starts; exec sleep 1d"`))
	for _, c := range []struct {
		name, a, b string
		outcome    apply.Outcome
		starts     int
	}{
		{"started", "1", "1", apply.Changed, 1},
		{"nothing changed", "1", "1", apply.OK, 1},
		{"both files changed", "2", "2", apply.Changed, 2},
		{"one file changed", "2", "3", apply.Changed, 3},
		{"nothing changed again", "2", "3", apply.OK, 3},
	} {
		got := pull(s, strings.NewReplacer("A", c.a, "B", c.b).Replace(watching))
		starts, err := os.ReadFile("/run/w-starts")
		if err != nil {
			t.Fatal(err)
		}
		step := got["start vnstat"]
		if n := strings.Count(string(starts), "started"); n != c.starts || step.Outcome != c.outcome || step.Result.State != "running" {
			t.Errorf("%s: %d starts, %s, state %q (%s); want %d, %s, running", c.name, n, step.Outcome, step.Result.State, step.Reason, c.starts, c.outcome)
		}
		if r := got["look"]; r.Outcome != apply.OK {
			t.Errorf("%s: the condition on the state: %s %s", c.name, r.Outcome, r.Reason)
		}
	}
}

// TestServiceFromNothing is a service from its unit file on, as a job describes it: the file is read, the service
// started, and restarted when the file changes; when it does not stay up the step fails, and what requires it does not
// run.
func TestServiceFromNothing(t *testing.T) {
	s := actiontest.OnHost(t, "systemctl disable -q --now w-new 2>/dev/null || true; rm -f /etc/systemd/system/w-new.service; systemctl daemon-reload")
	job := func(program string) string {
		return `
steps:
- name: unit
  action: file.managed
  parameters:
    name: /etc/systemd/system/w-new.service
    content: "[Service]\nExecStart=` + program + `\n[Install]\nWantedBy=multi-user.target\n"
- name: service
  action: service.ensure
  parameters: {name: w-new, state: [started, enabled], watch: [{file: unit}]}
- name: after
  action: test.succeed
  parameters: {require: [{service: w-new}]}
`
	}
	for _, c := range []struct {
		program, summary, state string
		outcome, after          apply.Outcome
	}{
		{"/usr/bin/sleep 1d", "enable (multi-user.target), start", "running", apply.Changed, apply.OK},
		{"/usr/bin/sleep 2d", "restart (because a/unit changed)", "running", apply.Changed, apply.OK},
		{"/bin/false", "restart (because a/unit changed)", "failed", apply.Failed, apply.Unmet},
		{"/bin/false", "start", "failed", apply.Failed, apply.Unmet},
		{"/usr/bin/sleep 3d", "start", "running", apply.Changed, apply.OK},
	} {
		got := pull(s, job(c.program))
		r := got["service"]
		if r.Summary != c.summary || r.Outcome != c.outcome || r.Result.State != c.state || got["after"].Outcome != c.after {
			t.Errorf("%s: %q %s, state %q (%s), then %s; want %q %s, %q, then %s",
				c.program, r.Summary, r.Outcome, r.Result.State, r.Reason, got["after"].Outcome, c.summary, c.outcome, c.state, c.after)
		}
	}
}

// TestServiceEnabledAndChanged: a service that is enabled in the same pull in which a file of it changes restarts as
// well.
func TestServiceEnabledAndChanged(t *testing.T) {
	s := actiontest.OnHost(t, "rm -f /run/w-starts; "+actiontest.WholeUnit("w-vnstat.service",
		`ExecStart=/bin/sh -c "echo started >>/run/w-starts; exec sleep 1d"`))
	job := strings.NewReplacer("A", "1", "B", "1").Replace(watching)
	pull(s, job)
	got := pull(s, strings.NewReplacer("state: started", "state: [started, enabled]", `"1"`, `"2"`).Replace(job))
	starts, err := os.ReadFile("/run/w-starts")
	if err != nil {
		t.Fatal(err)
	}
	step := got["start vnstat"]
	if n := strings.Count(string(starts), "started"); n != 2 || step.Outcome != apply.Changed || step.Result.State != "running" {
		t.Errorf("%d starts, want 2: %s %q %s", n, step.Outcome, step.Summary, step.Reason)
	}
}
