package apply

import (
	"strings"
	"testing"
	"time"

	"github.com/pullet/pullet/render"
)

// TestAwaitedSays: what a condition waits for, how often it is asked, and until when.
func TestAwaitedSays(t *testing.T) {
	since := time.Date(2026, 1, 2, 3, 4, 5, 0, time.Local)
	a := Awaited{
		Of: "a/s", Name: "when", Pos: render.Position{File: "jobs/a.yaml", Line: 2, Col: 3}, Text: "false",
		Every: 5 * time.Second, Since: since,
	}
	in := func(d time.Duration) time.Time { return since.Add(d) }
	for _, c := range []struct {
		attempts int
		watches  []string
		until    time.Time
		within   time.Duration
		want     string
	}{
		{0, nil, time.Time{}, time.Minute, "asked every 5s, from 03:04:05 until 03:05:05"},
		{1, nil, in(time.Second), time.Minute, "asked at most 1 times, every 5s, from 03:04:05 until 03:04:06"},
		{0, []string{"a node"}, in(time.Hour), time.Minute, "asked every 5s and when a node changes, from 03:04:05 until 03:05:05"},
		{0, []string{"a node", "service db"}, in(time.Minute), time.Hour, "asked every 5s and when a node or service db changes, from 03:04:05 until 03:05:05"},
	} {
		a.Attempts, a.Watches, a.Until = c.attempts, c.watches, c.until
		if got := a.Within(in(c.within)).Reason(); got != "jobs/a.yaml:2:3: false is false, "+c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
		if a.Until != c.until {
			t.Errorf("the condition itself has another end: %s", a.Until)
		}
	}
	if got := a.Gate(); got != "condition when of a/s" {
		t.Error(got)
	}
}

// TestReportAwaits: a report that is pending names the first condition that it waits for; another one names none.
func TestReportAwaits(t *testing.T) {
	one, two := &Awaited{Of: "a/one"}, &Awaited{Of: "a/two"}
	waits, other := &StepReport{Outcome: Pending, awaits: one}, &StepReport{Outcome: Pending, awaits: two}
	held := &StepReport{Outcome: OK, awaits: two}
	for name, c := range map[string]struct {
		steps []*StepReport
		want  *Awaited
	}{
		"none":           {nil, nil},
		"nothing waits":  {[]*StepReport{{Outcome: OK}}, nil},
		"a gate":         {[]*StepReport{{Outcome: Pending}}, nil},
		"it came true":   {[]*StepReport{held, {Outcome: Pending}}, nil},
		"one of two":     {[]*StepReport{{Outcome: Pending}, held, waits, other}, one},
		"another failed": {[]*StepReport{waits, {Outcome: Failed}}, nil},
	} {
		r := &Report{Counts: map[Outcome]int{}}
		for _, s := range c.steps {
			r.add(s)
		}
		if got := r.Awaited(); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestFaultSays: only a fault of the host is named before why something failed.
func TestFaultSays(t *testing.T) {
	for fault, want := range map[Fault]string{HostFault: "host fault: no", CommitFault: "no", UnknownFault: "no"} {
		if got := fault.Says("no"); got != want {
			t.Errorf("%s: %s", fault, got)
		}
	}
}

// TestHidden: what a sensitive step read and wrote is hidden, and what it did not say stays empty.
func TestHidden(t *testing.T) {
	const hidden = "(sensitive: not shown)"
	full := render.StepResult{StdOut: "o", StdErr: "e", Data: "d", ExitCode: 3}
	for _, c := range []struct{ have, want StepReport }{
		{StepReport{Outcome: OK}, StepReport{Outcome: OK}},
		{
			StepReport{Outcome: Failed, Summary: "s", Diff: "d", Reason: "r", Result: full},
			StepReport{
				Outcome: Failed, Summary: hidden, Diff: hidden + "\n", Reason: "failed with exit code 3 (sensitive: the output is not shown)",
				Result: render.StepResult{ExitCode: 3},
			},
		},
		{StepReport{Outcome: Skipped, Reason: "r"}, StepReport{Outcome: Skipped, Reason: "r"}},
	} {
		got := c.have
		got.hide()
		if got.Summary != c.want.Summary || got.Diff != c.want.Diff || got.Reason != c.want.Reason ||
			got.Result.StdOut+got.Result.StdErr != "" || got.Result.Data != nil || got.Result.ExitCode != c.want.Result.ExitCode {
			t.Errorf("%+v, want %+v", got, c.want)
		}
	}
}

// TestTitleOfThings: a thing that an action removes has the word of the action, where it has one.
func TestTitleOfThings(t *testing.T) {
	for _, c := range [][3]string{
		{"published service", "service db", "published service db"}, {"", "service db", "service db"}, {"file", "odd", "odd"},
	} {
		if got := (Spec{Removes: c[0]}).Title(c[1]); got != c[2] {
			t.Errorf("%q: %s", c, got)
		}
	}
	what := NamedResource("user", "ada", "user.absent")
	if what.ID != "user ada" || what.Absent != "user.absent" || what.Params["name"] != "ada" || len(what.Params) != 1 {
		t.Errorf("%+v", what)
	}
}

// TestMeets: a group knows the entry that one of its steps is about to change, and what would lie below it.
func TestMeets(t *testing.T) {
	h, g := &Host{Root: t.TempDir()}, newGroup()
	at, err := h.Entry("/d/e")
	if err != nil {
		t.Fatal(err)
	}
	defer at.Close()
	if !g.empty() || !g.add(at, &Prepared{}) || g.empty() || len(g.files) > 0 {
		t.Error("a step that prepared no file is one of the group")
	}
	for name, want := range map[string]bool{"/d/e": true, "/d/e/f": true, "/d/e/f/../g": true, "/d": false, "/d/ee": false, "/d/e2/f": false, "/x": false} {
		other, err := h.Entry(name)
		if err != nil {
			t.Fatal(err)
		}
		if got := g.meets(other.Place(), name); got != want {
			t.Errorf("%s: %v", name, got)
		}
		other.Close()
	}
	g.close()
	if g.add(at, &Prepared{}) {
		t.Error("it is closed")
	}
}

// TestWithin: below a path is not beside it.
func TestWithin(t *testing.T) {
	for pair, want := range map[string]bool{"/a /a": true, "/a/b /a": true, "/a/b /": true, "/ab /a": false, "/ /a": false, "/a /a/": false, "/a/b /a/": true} {
		path, dir, _ := strings.Cut(pair, " ")
		if within(path, dir) != want {
			t.Errorf("%s in %s: %v", path, dir, !want)
		}
	}
}
