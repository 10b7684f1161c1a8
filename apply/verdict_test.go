package apply_test

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/render"
)

// judged is a command whose parameters say what comes of it, and what counts as that.
type judged struct {
	Name    string             `yaml:"name,required"`
	Exit    int                `yaml:"exit"`
	Bad     string             `yaml:"bad"`
	Changed *render.Expression `yaml:"changed"`
	Failed  *render.Expression `yaml:"failed"`
	lab     *lab
}

func (a *judged) Verdict() (changed, failed *render.Expression) { return a.Changed, a.Failed }
func (a *judged) Unchecked() bool                               { return true }

func (a *judged) Check(context.Context, *apply.Host) (apply.Change, error) {
	return apply.Change{Summary: "run"}, nil
}

func (a *judged) Apply(context.Context, *apply.Host, apply.Change) (apply.Output, error) {
	out, err := a.lab.apply(a.Name)
	out.ExitCode = a.Exit
	switch {
	case a.Bad != "":
		err = errors.New(a.Bad)
	case a.Exit != 0:
		err = &apply.ExitError{Command: "do it", Output: out}
	}
	return out, err
}

// column is where in its line an expression stands.
var column = regexp.MustCompile(`(jobs/a.yaml:2):\d+`)

// TestVerdictOfACommand: what a command's own expressions make of its exit code and its output.
func TestVerdictOfACommand(t *testing.T) {
	for params, want := range map[string]string{
		"":                                       "changed ",
		"exit: 3":                                "failed do it: exit code 3: err of j",
		"exit: 3, failed: 'result.ExitCode > 3'": "changed ",
		"exit: 4, failed: 'result.ExitCode > 3'": "failed failed: result.ExitCode > 3: exit code 4: err of j",
		"failed: 'result.ExitCode == 0'":         "failed failed: result.ExitCode == 0: exit code 0: err of j",
		"failed: 'vars.x.y == 1'":                "failed failed: jobs/a.yaml:2: expression: cannot fetch y from <nil>",
		"exit: 3, failed: 'vars.x.y == 1'":       "failed failed: jobs/a.yaml:2: expression: cannot fetch y from <nil>",
		"bad: no room, failed: 'false', changed: 'false'": "failed no room",
		"changed: 'false'": "ok ",
		"changed: \"result.StdOut == 'out of j' and result.StdErr == 'err of j'\"": "changed ",
		"changed: 'vars.x.y == 1'":                                                 "failed changed: jobs/a.yaml:2: expression: cannot fetch y from <nil>",
		"exit: 3, changed: 'true'":                                                 "failed do it: exit code 3: err of j",
		"exit: 3, changed: 'false', failed: 'false'":                               "ok ",
		"exit: 3, changed: 'result.ExitCode == 3', failed: 'result.ExitCode != 3'": "changed ",
		"exit: 3, changed: 'vars.x.y == 1', failed: 'result.ExitCode == 3'":        "failed failed: result.ExitCode == 3: exit code 3: err of j",
	} {
		t.Run(params, func(t *testing.T) {
			l := newLab(t)
			l.more = []apply.Spec{{Name: "t.judged", New: func() apply.Action { return &judged{lab: l} }}}
			r := l.run(one("{name: j, action: t.judged, parameters: {" + strings.Join([]string{"name: j", params}, ", ") + "}}"))
			if got := string(r.Steps[0].Outcome) + " " + column.ReplaceAllString(r.Steps[0].Reason, "$1"); got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
			if r.Steps[0].Result.StdOut != "out of j" {
				t.Errorf("it printed %q", r.Steps[0].Result.StdOut)
			}
		})
	}
}

// TestPlanOfWhatDependsOnARun: what a step would do whose condition reads what only a run returns is said, with that
// condition; what would be in its way is not, since another step may be for that. What is right already is.
func TestPlanOfWhatDependsOnARun(t *testing.T) {
	const maybe = "if its condition holds, which depends on what a/a returns"
	reads := when("steps['a'].StdOut == 'out of a'")
	l := newLab(t)
	l.values["right"] = ""
	l.checks["broken"] = "there is no directory"
	l.more = []apply.Spec{{Name: "t.needy", New: func() apply.Action { return &needy{} }}}
	plan := l.program(one(cmds("a"), puts("b", reads), puts("broken", reads), puts("right", reads), thing("t.needy", "n", reads), thing("t.wait", "w", reads))).
		Plan(t.Context(), l.options())
	l.wantRan()
	for name, want := range map[string]apply.StepReport{
		"b":      {Outcome: apply.Changed, Summary: "put b (" + maybe + ")", Diff: "+\n", Unknown: true},
		"broken": {Outcome: apply.Changed, Summary: maybe, Unknown: true},
		"right":  {Outcome: apply.OK},
		"n":      {Outcome: apply.Changed, Summary: "write (" + maybe + ")", Unknown: true},
		"w":      {Outcome: apply.OK, Summary: "run w (" + maybe + ")", Unknown: true},
	} {
		s := step(t, plan, name)
		if s.Outcome != want.Outcome || s.Summary != want.Summary || s.Diff != want.Diff || s.Unknown != want.Unknown || s.Reason != "" {
			t.Errorf("%s: %s %q %q, unknown %v: %s", name, s.Outcome, s.Summary, s.Diff, s.Unknown, s.Reason)
		}
	}
}

// TestEndsThatMayBeLost: the end of a step of a group that was not made durable holds if the host is as the step left
// it. If it is not, because the power was cut, the step does it again. Who watches it reacts once.
func TestEndsThatMayBeLost(t *testing.T) {
	for _, lost := range []bool{false, true} {
		l := newLab(t)
		l.root = t.TempDir()
		log := l.files()
		l.more = append(l.more, apply.Spec{Name: "t.daemon", New: func() apply.Action { return &daemon{put{lab: l}} }})
		js := one(file("f"), file("g"), thing("t.daemon", "svc", "watch: [f]"))
		l.values["svc"] = ""
		left := filepath.Join(t.TempDir(), "left")
		o := l.options()
		var bad error
		o.Watch = func(s *apply.StepReport) {
			if s.Step == "f" {
				bad = os.CopyFS(left, os.DirFS(l.dir))
			}
		}
		r, err := l.program(js).Run(t.Context(), o)
		if err = errors.Join(err, bad); err != nil {
			t.Fatal(err)
		}
		l.want(r, "f changed, g changed, svc changed")
		l.dir, l.ran = left, nil
		before := maps.Clone(log.counts)
		if lost {
			if err := os.Remove(filepath.Join(l.root, "f")); err != nil {
				t.Fatal(err)
			}
		}
		r = l.run(js)
		for name, want := range map[string]apply.Outcome{"f": apply.Changed, "g": apply.OK, "svc": apply.Changed} {
			if got := step(t, r, name).Outcome; got != want { // what was lost waits for its group, and ends last
				t.Errorf("lost %v: %s is %s, want %s", lost, name, got, want)
			}
		}
		l.wantRan("svc!")
		if placed := log.counts["place"] - before["place"]; placed != map[bool]int{true: 1}[lost] || !r.Resumed {
			t.Errorf("lost %v: %d files were placed, resumed %v", lost, placed, r.Resumed)
		}
		l.want(l.run(js), "f ok, g ok, svc ok")
	}
}

// linked is a value in a file at a path.
type linked struct {
	put `yaml:",inline"`
	At  string `yaml:"at"`
}

func (a *linked) Manages() []apply.Resource {
	return []apply.Resource{{ID: "other " + a.Name}, {ID: "file " + a.At, Path: a.At}}
}

// TestFoundAfterACut: what a step that was cut off has done is made durable by the next run, if it is there. A path
// that cannot be reached fails the step.
func TestFoundAfterACut(t *testing.T) {
	for at, want := range map[string]error{"/x": nil, "/dir": nil, "/none/x": nil, "/none": nil, "/loop/x": syscall.ELOOP} {
		l := newLab(t)
		l.root = t.TempDir()
		l.more = []apply.Spec{{Name: "t.linked", New: func() apply.Action { return &linked{put: put{lab: l}} }}}
		err := errors.Join(os.WriteFile(filepath.Join(l.root, "x"), nil, 0o600), os.Mkdir(filepath.Join(l.root, "dir"), 0o700),
			os.Symlink("loop", filepath.Join(l.root, "loop")))
		if err != nil {
			t.Fatal(err)
		}
		left := filepath.Join(t.TempDir(), "left")
		var bad error
		l.onApply = func(string) { bad = os.CopyFS(left, os.DirFS(l.dir)) }
		js := one("{name: a, action: t.linked, parameters: {name: a, at: " + at + "}}")
		l.run(js)
		if bad != nil {
			t.Fatal(bad)
		}
		l.dir, l.onApply = left, nil
		r := l.run(js)
		if s := r.Steps[0]; want == nil && s.Outcome != apply.OK || want != nil && (s.Outcome != apply.Failed || !strings.Contains(s.Reason, want.Error())) {
			t.Errorf("%s: %s %s", at, s.Outcome, s.Reason)
		}
	}
}
