package apply_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/internal/patience"
)

func when(expression string, more ...string) string {
	return condition("when", expression, more...)
}

func condition(kind, expression string, more ...string) string {
	return `conditions: {` + kind + `: {condition: "` + expression + `"` + strings.Join(append([]string{""}, more...), ", ") + `}}`
}

// retry is short enough for a test.
const retry = "retry: {interval: 1ms, limit: 3}"

// TestOutcomes: what becomes of the steps around one that does not succeed.
func TestOutcomes(t *testing.T) {
	for _, c := range []struct {
		name  string
		jobs  jobs
		fails string // the step whose action fails
		want  string
		why   string // part of the report's Why
	}{
		{"all well", one(puts("a"), cmds("b"), thing("t.wait", "c")), "", "a changed, b changed, c ok", ""},
		{"the rest goes on", one(puts("a"), puts("b")), "a", "a failed, b changed", "a/a (jobs/a.yaml:2:3): broken"},
		{"unmet", one(puts("a"), puts("b", "require: a"), puts("c", "require: b"), puts("d")), "a",
			"a failed, b unmet, c unmet, d changed", "broken"},
		{"failHard", one(puts("a", "runOptions: {failHard: true}"), puts("b")), "a", "a failed", "broken"},
		{"failHard, all well", one(puts("a", "runOptions: {failHard: true}"), puts("b")), "", "a changed, b changed", ""},
		{"when says no", one(puts("a", when("false")), puts("b", "require: a")), "", "a skipped, b changed", ""},
		{"when cannot be evaluated", one(puts("a", when("fromJSON(string(now())) == 1")), puts("b", "require: a")), "", "a failed, b unmet", "jobs/a.yaml:2:83: expression: "},
		{"unmet is not asked", one(puts("a"), puts("b", "require: a", when("fromJSON(string(now())) == 1"))), "a", "a failed, b unmet", "broken"},
		{"pending", one(puts("a", when("false", retry)), puts("b", "require: a"), puts("c")), "", "a pending, b pending, c changed",
			"condition is still false after 3 attempts"},
		{"success says no", one(puts("a", condition("success", "false")), puts("b", "require: a")), "", "a failed, b unmet", "success: condition is false"},
		{"success is exhausted", one(puts("a", condition("success", "false", retry))), "", "a failed", "success: condition is still false after 3 attempts"},
		{"success says yes", one(puts("a", condition("success", "steps['a'].Changed"))), "", "a changed", ""},
		{"continue is exhausted", one(puts("a", condition("continue", "false", retry)), puts("b", "require: a")), "", "a failed, b unmet", "continue: "},
		{"the job's when", jobs{{"one , conditions: {when: {condition: 'false'}}", list(puts("a"), puts("b"))}, {"two", list(puts("c", "require: a"))}}, "",
			"a skipped, b skipped, c changed", ""},
		{"the job's when waits", jobs{{"one , conditions: {when: {condition: 'false', " + retry + "}}", list(puts("a"))}, {"two", list(puts("c", "require: a"))}}, "",
			"a pending, c pending", "3 attempts"},
		{"a result is read", one(puts("a"), puts("b", when("steps['a'].Result == 'ok' && steps['a/a'].Changed")), puts("c", when("step('a').Result == 'failed'"))), "",
			"a changed, b changed, c skipped", ""},
		{"a failed result is read", one(puts("a"), puts("b", when("steps['a'].Result == 'failed'"))), "a", "a failed, b changed", "broken"},
		{"a state is read", one(puts("a", when("false")), puts("b", when("steps['a'].State == 'skipped'"))), "", "a skipped, b changed", ""},
		{"a failed state is read", one(puts("a"), puts("b", when("steps['a'].State == 'failed'"))), "a", "a failed, b changed", "broken"},
		{"a validation fails", jobs{{"one", list(puts("a"))}, {"check", list(cmds("v"))}}, "v", "a changed, v failed", "broken"},
		{"a validation never counts as a change", jobs{{"one", list(puts("a"))}, {"check", list(cmds("v"), puts("w"))}}, "", "a changed, v ok, w ok", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newLab(t)
			if c.fails != "" {
				l.fails[c.fails] = "broken"
			}
			r := l.run(c.jobs)
			l.want(r, c.want)
			if got := r.Why(); (got == "") != (c.why == "") || !strings.Contains(got, c.why) {
				t.Errorf("why: %q, want %q", got, c.why)
			}
			checkCounts(t, r)
		})
	}
}

// checkCounts: the sums are those of the steps, and a report is one of failed, pending, or neither.
func checkCounts(t *testing.T, r *apply.Report) {
	t.Helper()
	counts := map[apply.Outcome]int{}
	for _, s := range r.Steps {
		counts[s.Outcome]++
		if s.Outcome == apply.Failed && s.Reason == "" || s.Result.Result == "" {
			t.Errorf("%s: reason %q, result %q", s.Step, s.Reason, s.Result.Result)
		}
	}
	for outcome, n := range r.Counts {
		if counts[outcome] != n {
			t.Errorf("%d %s counted, %d in the steps", n, outcome, counts[outcome])
		}
	}
	if failed := counts[apply.Failed]+counts[apply.Unmet] > 0; r.Failed() != failed || r.Pending() && failed {
		t.Errorf("failed %v, pending %v, steps %v", r.Failed(), r.Pending(), counts)
	}
}

// TestFailedCheck: a step that cannot be compared fails and is not applied.
func TestFailedCheck(t *testing.T) {
	l := newLab(t)
	l.checks["a"] = "cannot look"
	l.want(l.run(one(puts("a"), puts("b"))), "a failed, b changed")
	l.wantRan("b")
}

// TestRetryUntilTrue: a condition is asked until it holds, and what its macro runs is run afresh each time.
func TestRetryUntilTrue(t *testing.T) {
	l := newLab(t)
	l.root = t.TempDir()
	l.macros = "count: {t.ask: [{cmd: 'echo x >> asked; wc -l < asked'}]}\n"
	for _, kind := range []string{"when", "success", "continue"} {
		l.want(l.run(one(cmds(kind, condition(kind, "macros['count'] >= 3", "retry: {interval: 1ms, limit: 0}")))), kind+" changed")
		asked, err := os.ReadFile(filepath.Join(l.root, "asked"))
		if err != nil || string(asked) != "x\nx\nx\n" {
			t.Errorf("%s: asked %q %v, want three times", kind, asked, err)
		}
		if err := os.Remove(filepath.Join(l.root, "asked")); err != nil {
			t.Fatal(err)
		}
	}
	l.macros = "count: {t.ask: [{cmd: 'echo no such thing >&2; exit 4'}]}\n"
	r := l.run(one(cmds("a", when("macros['count'] >= 3"))))
	if got := r.Why(); !strings.Contains(got, `macro "count": exit code 4: no such thing`) {
		t.Errorf("why: %q", got)
	}
	l.macros = "count: {t.ask: [{cmd: 'echo 3'}, {timeout: soon}]}\n"
	r = l.run(one(cmds("b", when("macros['count'] >= 3"))))
	if got := r.Why(); r.Changed() != 0 || !strings.Contains(got, `macro "count": timeout: `) {
		t.Errorf("why: %q", got)
	}
}

// TestPlan: it says what a run will do and touches nothing, not even the journal.
func TestPlan(t *testing.T) {
	steps := jobs{{"one", list(puts("a"), puts("b"), cmds("c"), puts("d", when("steps['a'].Changed")), thing("t.wait", "e"), puts("f", when("false")))}, {"check", list(puts("v"))}}
	l := newLab(t)
	l.values["b"] = ""
	l.held = errors.New("a plan asks nobody")
	plan := l.program(steps).Plan(context.Background(), l.options())
	l.wantRan()
	if found, err := os.ReadDir(l.dir); err != nil || len(found) > 0 {
		t.Errorf("the plan left %v %v", found, err)
	}
	l.held = nil
	run := l.run(steps)
	if outcomes(plan) != outcomes(run) {
		t.Errorf("planned %s\nran     %s", outcomes(plan), outcomes(run))
	}
	l.wantRan("a", "c", "d", "e", "v")
}

// TestRuns: when a step that is right, or done, is done again.
func TestRuns(t *testing.T) {
	for _, c := range []struct {
		name string
		step string
		want string // outcomes of: v1, v1 again, v2, v2 without an upgrade
	}{
		{"a checked step", puts("a"), "changed ok ok ok"},
		{"a command, once for each version", cmds("a"), "changed ok changed ok"},
		{"a command that always runs", cmds("a", "runOptions: {runs: always}"), "changed changed changed changed"},
		{"a command, once", cmds("a", "runOptions: {runs: once}"), "changed ok ok ok"},
		{"onUpdate", cmds("a", "runOptions: {runs: onUpdate}"), "changed ok changed skipped"},
		{"onUpdate, checked", puts("a", "runOptions: {runs: onUpdate}"), "changed ok ok skipped"},
		{"a wait, once for each version", thing("t.wait", "a"), "ok ok ok ok"},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newLab(t)
			for i, want := range strings.Fields(c.want) {
				if i == 2 {
					l.version = "v2"
				}
				l.upgrade = i < 3
				if got := outcomes(l.run(one(c.step))); got != "a "+want {
					t.Errorf("run %d: %s, want %s", i+1, got, want)
				}
			}
		})
	}
}

// TestDoneForGood: a success on record holds for its parameters; its result is kept for later steps; a failure is none.
func TestDoneForGood(t *testing.T) {
	l := newLab(t)
	reads := puts("r", when("steps['a'].StdOut == 'out of a'"))
	l.want(l.run(one(cmds("a"), reads)), "a changed, r changed")
	delete(l.values, "r")
	l.want(l.run(one(cmds("a"), reads)), "a ok, r changed")
	l.wantRan("a", "r", "r")
	l.want(l.run(one(strings.Replace(cmds("a"), "parameters: {name: a}", "parameters: {name: a2}", 1))), "a changed")
	l.wantRan("a2")
	l.fails["b"] = "broken"
	for range 2 {
		l.want(l.run(one(cmds("b"))), "b failed")
	}
	delete(l.fails, "b")
	l.want(l.run(one(cmds("b"))), "b changed")
	l.wantRan("b", "b", "b")
	l.want(l.run(one(puts("x"))), "x changed") // the catalog has no b any more
	l.want(l.run(one(cmds("b"))), "b changed")
}

// TestDriftIsCorrected: what was changed by hand is changed back, with the same version.
func TestDriftIsCorrected(t *testing.T) {
	l := newLab(t)
	l.run(one(puts("a"), puts("b")))
	l.values["a"] = "by hand"
	l.want(l.run(one(puts("a"), puts("b"))), "a changed, b ok")
}

// TestNoChangeWritesNothing: where everything is right, a run leaves the state directory alone, to the byte and the
// time.
func TestNoChangeWritesNothing(t *testing.T) {
	l := newLab(t)
	steps := jobs{{"one", list(puts("a"), cmds("b"), puts("c", when("false")))}, {"check", list(cmds("v"))}}
	l.run(steps)
	before := files(t, l.dir)
	l.want(l.run(steps), "a ok, b ok, c skipped, v ok")
	after := files(t, l.dir)
	if len(before) != len(after) {
		t.Errorf("before %v, after %v", before, after)
	}
	for name, was := range before {
		if after[name] != was {
			t.Errorf("%s was written", name)
		}
	}
}

// files are a directory's entries, and itself, with their times and contents.
func files(t tb, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
		if err != nil {
			return err
		}
		data := []byte(nil)
		if info.Mode().IsRegular() {
			data, err = os.ReadFile(path)
		}
		out[path] = info.ModTime().Format(time.RFC3339Nano) + string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestSensitive: neither the report nor what is published shows what the step read or wrote. The journal has it, for a
// run that resumes and for the steps that read it: for the agent's user alone.
func TestSensitive(t *testing.T) {
	for name, fails := range map[string]string{"well": "", "failed": "the password is out of a"} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			l.fails["a"] = fails
			sensitive := strings.Replace(cmds("a", "sensitive: true"), "{name: a}", "{name: a}", 1)
			shown := ""
			o := l.options()
			o.Watch = func(s *apply.StepReport) { shown += s.Reason + s.Diff + s.Result.StdOut + s.Result.StdErr }
			r, err := l.program(one(sensitive, puts("p", "sensitive: true"))).Run(context.Background(), o)
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range r.Steps {
				shown += s.Reason + s.Diff + s.Result.StdOut + s.Result.StdErr
			}
			for path, data := range files(t, l.dir) {
				private := strings.HasSuffix(path, "done.json") && strings.Contains(mode(t, path), "-rw-------")
				if !private && (strings.Contains(data, "out of a") || strings.Contains(data, "err of a")) {
					t.Errorf("%s holds the output", path)
				}
			}
			if strings.Contains(shown, "out of a") || strings.Contains(shown, "err of") || strings.Contains(shown, "+\n") {
				t.Errorf("shown: %s", shown)
			}
		})
	}
}

// TestHold: it is asked before what changes, and stops the run only there.
func TestHold(t *testing.T) {
	l := newLab(t)
	l.values["a"] = ""
	steps := jobs{{"one", list(puts("a"), puts("b", when("false")), puts("c"), puts("d"))}, {"check", list(puts("v"))}}
	l.held = errors.New("the slot is gone")
	r := l.run(steps)
	l.want(r, "a ok, b skipped, c pending")
	if r.Stopped != "the slot is gone" || !r.Pending() || r.Failed() {
		t.Errorf("stopped %q, pending %v, failed %v", r.Stopped, r.Pending(), r.Failed())
	}
	l.wantRan()
	if found, err := filepath.Glob(filepath.Join(l.dir, "[jd]o*")); err != nil || len(found) > 0 {
		t.Errorf("nothing was started, and there is %v %v", found, err)
	}
	l.values["c"], l.values["d"] = "", ""
	l.want(l.run(steps), "a ok, b skipped, c ok, d ok, v ok") // nothing changes, nothing is held
}

// TestToldToStop: no step is started after it, and what is told is pending, not failed.
func TestToldToStop(t *testing.T) {
	for name, text := range map[string]string{
		"between steps":             puts("a"),
		"while a condition waits":   puts("a", condition("continue", "false", "retry: {interval: 1h}")),
		"the same, nothing to do":   puts("z", condition("continue", "steps['first'].Result != 'ok'", "retry: {interval: 1h}")),
		"before an action, in when": puts("a", when("false", "retry: {interval: 1h}")),
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			l.values["z"] = ""
			ctx, cancel := context.WithCancel(context.Background())
			l.onApply = func(string) { time.AfterFunc(20*time.Millisecond, cancel) }
			if name == "between steps" {
				l.onApply = func(string) { cancel() }
			}
			began := time.Now()
			r := l.runContext(ctx, one(puts("first"), text, puts("last")))
			if r.Stopped == "" || r.Failed() || !r.Pending() || time.Since(began) > patience.Stretch(2*time.Second) {
				t.Errorf("%s: stopped %q, failed %v (%s)", outcomes(r), r.Stopped, r.Failed(), r.Why())
			}
			if _, ok := l.values["last"]; ok {
				t.Error("a step was started after the run was told to stop")
			}
			l.onApply = nil
			r = l.run(one(puts("first"), puts("last")))
			if r.Failed() || l.values["last"] != "" {
				t.Errorf("the next run: %s", outcomes(r))
			}
		})
	}
}

// TestStepTimeout: a step that takes too long has failed, and the others go on.
func TestStepTimeout(t *testing.T) {
	l := newLab(t)
	slow := puts("a", condition("success", "false", "retry: {interval: 1h}"), "runOptions: {timeout: 20ms}")
	l.want(l.run(one(slow, puts("b"))), "a failed, b changed")
}

func mode(t *testing.T, path string) string {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Mode().String()
}
