package apply_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/pullet/pullet/apply"
)

// TestPlanOfReactions: a plan says that a step would react, why, and does nothing.
func TestPlanOfReactions(t *testing.T) {
	t.Parallel()
	a := newAssets(t)
	a.values["d"] = ""
	daemon := func(watch string) string { return "{name: d, action: t.daemon, parameters: {name: d}, " + watch + "}" }
	for watch, want := range map[string]string{
		"watch: [one]":                          "restart (because a/one changed)",
		"watch: [one, two, three]":              "restart (because a/one, a/two, a/three changed)",
		"watch: [one, two, three, four, five]":  "restart (because a/one, a/two, a/three and 2 more changed)",
		"watch_any: [two, same]":                "restart (because a/two changed)",
		"watch: [same]":                         "",
		"require: [one]":                        "",
		"watch: [one], watch_any: [two, three]": "restart (because a/one, a/two, a/three changed)",
	} {
		a.values["same"] = ""
		p := a.program(jobs{{"a", list(puts("one"), puts("two"), puts("three"), puts("four"), puts("five"), puts("same"), daemon(watch))}})
		d := step(t, p.Plan(t.Context(), a.options()), "d")
		if d.Summary != want || (d.Outcome == apply.Changed) != (want != "") || d.Reacted != (want != "") {
			t.Errorf("%s: %s %q", watch, d.Outcome, d.Summary)
		}
	}
	a.wantRan()
}

// TestPlanOfConditionsOnResults: a condition that reads what only a run returns counts as true, and the plan says so.
func TestPlanOfConditionsOnResults(t *testing.T) {
	t.Parallel()
	depends := " (if its condition holds, which depends on what a/c returns)"
	for name, c := range map[string]struct {
		job           jobs
		want, summary string
		unknown       bool
	}{
		"a step's":                    {one(cmds("c"), puts("s", when("steps['c'].StdOut == 'x'"))), "c changed, s changed", "put s" + depends, true},
		"a step's that cannot be met": {one(cmds("c"), puts("bad", when("steps['c'].StdOut == 'x'"))), "c changed, bad changed", strings.Trim(depends, " ()"), true},
		"of a step that is right":     {one(puts("there"), puts("s", when("steps['there'].StdOut == 'x'"))), "there ok, s skipped", "", false},
		"what needs no run":           {one(cmds("c"), puts("s", when("steps['c'].Result == 'ok'"))), "c changed, s changed", "put s", false},
		"a job's": {jobs{{"a", list(cmds("c"))}, {"b , " + when("steps['a/c'].StdOut == 'x'"), list(puts("s"))}},
			"c changed, s changed", "put s" + depends, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			l.values["there"] = ""
			l.checks["bad"] = "cannot look"
			r := l.program(c.job).Plan(t.Context(), l.options())
			l.want(r, c.want)
			last := r.Steps[len(r.Steps)-1]
			if last.Summary != c.summary || last.Unknown != c.unknown {
				t.Errorf("%q, unknown %v", last.Summary, last.Unknown)
			}
			l.wantRan()
		})
	}
}

// TestPrereqLooks: the target of a prereq is compared before it runs. Where that cannot be, the step fails or runs.
func TestPrereqLooks(t *testing.T) {
	t.Parallel()
	target := func(more ...string) string { return puts("t", more...) }
	drain := cmds("s", "prereq: [t]")
	for name, c := range map[string]struct {
		steps []string
		want  map[string]apply.Outcome
		why   string
	}{
		"it would change":            {[]string{drain, target()}, map[string]apply.Outcome{"s": apply.Changed, "t": apply.Changed}, ""},
		"it cannot be compared":      {[]string{drain, strings.Replace(target(), "{name: t}", "{name: bad}", 1)}, map[string]apply.Outcome{"s": apply.Failed, "t": apply.Unmet}, "prereq a/t: cannot look"},
		"its condition says no":      {[]string{drain, target(when("false"))}, map[string]apply.Outcome{"s": apply.Skipped, "t": apply.Skipped}, "runs only when one of a/t is about to change"},
		"its parameters are to come": {[]string{cmds("c"), drain, "{name: t, action: t.put, parameters: {name: there, value: '{{ (step `c`).StdErr }}'}}"}, map[string]apply.Outcome{"s": apply.Changed, "t": apply.OK}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			l.checks["bad"], l.values["there"] = "cannot look", "err of c"
			r := l.run(one(c.steps...))
			for name, want := range c.want {
				if s := step(t, r, name); s.Outcome != want {
					t.Errorf("%s: %s %s, want %s", name, s.Outcome, s.Reason, want)
				}
			}
			if why := step(t, r, "s").Reason; why != c.why {
				t.Errorf("why %q", why)
			}
		})
	}
}

// TestListenersThatMayNot: a step that listens does not react in a run that was stopped, or whose host may not be
// changed; the next run owes the reaction.
func TestListenersThatMayNot(t *testing.T) {
	t.Parallel()
	a := newAssets(t)
	a.values["d"] = ""
	js := one(puts("one"), "{name: d, action: t.daemon, parameters: {name: d}, listen: [one]}")
	a.onApply = func(name string) { a.held = errors.New("the slot is gone") }
	r := a.run(js)
	a.wantRan("one")
	if r.Stopped != "the slot is gone" {
		t.Errorf("stopped %q: %s", r.Stopped, outcomes(r))
	}
	a.held, a.onApply = nil, nil
	a.want(a.run(js), "one changed, d ok, d (listen) changed") // it goes on
	a.wantRan("d!")
	delete(a.values, "one")
	ctx, stop := context.WithCancel(t.Context())
	a.onApply = func(string) { stop() }
	a.want(a.runContext(ctx, js), "one changed")
	a.wantRan("one")
	a.onApply = nil
	a.want(a.run(js), "one changed, d ok, d (listen) changed")
	a.wantRan("d!")
}

// TestFailureClasses: the step says whose fault its failure is, for all exit codes or for some.
func TestFailureClasses(t *testing.T) {
	t.Parallel()
	for class, want := range map[string]apply.Fault{
		"host": apply.HostFault, "commit": apply.CommitFault, "{3: host}": apply.HostFault, "{4: host}": apply.CommitFault,
	} {
		t.Run(class, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			l.root = t.TempDir()
			r := l.run(one("{name: s, action: t.ask, parameters: {cmd: exit 3}, runOptions: {failureClass: " + class + "}}"))
			if s := step(t, r, "s"); s.Outcome != apply.Failed || s.Fault != want || r.Fault() != want {
				t.Errorf("%s %s, the run %s", s.Outcome, s.Fault, r.Fault())
			}
		})
	}
}

// TestBegun: who watches the run learns of each step that begins to change the host, with its place in the run.
func TestBegun(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.values["there"] = ""
	var got []string
	o := l.options()
	o.Begin = func(b apply.Begun) {
		got = append(got, strings.Join([]string{b.ID, b.Title, b.Doing, b.Place()}, ", "))
		if b.Pos.File != "jobs/a.yaml" || b.Pos.Line == 0 {
			t.Errorf("at %s", b.Pos)
		}
	}
	secret := puts("p", "sensitive: true")
	if _, err := l.program(one(puts("there"), puts("a", when("false")), cmds("c"), secret)).Run(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	want := "a/c, a/c, run c, step 3 of 4; a/p, a/p, (sensitive: not shown), step 4 of 4"
	if all := strings.Join(got, "; "); all != want {
		t.Errorf("got  %s\nwant %s", all, want)
	}
}

// TestWithoutEtcd: what waits for other nodes waits, or is left to them, while nobody can ask them.
func TestWithoutEtcd(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ steps, want, why string }{
		"a target":              {cmds("s", "runOptions: {target: {limit: 1}}"), "s skipped", "etcd is unreachable, so who takes it is not known"},
		"a target of others":    {cmds("s", "runOptions: {target: {limit: 1, hosts: other}}"), "s skipped", "it is for other"},
		"a turn":                {cmds("s", "runOptions: {serialize: {count: 1}}"), "s pending", "waiting for its turn: etcd is unreachable"},
		"a barrier":             {cmds("s", "runOptions: {sync: true}"), "s changed", ""},
		"the result of another": {cmds("t", "runOptions: {target: {limit: 1, hosts: other}}") + "\n- " + puts("s", when("steps['t'].Result == 'ok'")), "t skipped, s pending", "waiting for the result of a/t: etcd is unreachable"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			o := l.options()
			o.Gates = nil
			r, err := l.program(one(c.steps)).Run(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			l.want(r, c.want)
			if why := step(t, r, "s").Reason; why != c.why {
				t.Errorf("why %q, want %q", why, c.why)
			}
		})
	}
}

// TestPlanOfTargets: a plan does not know who will be chosen, and leaves what is for others to them. What reads a
// result that others make, or make too, depends on it.
func TestPlanOfTargets(t *testing.T) {
	t.Parallel()
	const known, depends = "put r", "put r (if its condition holds, which depends on what a/s returns)"
	for target, want := range map[string]struct{ outcomes, reader string }{
		"limit: 1":               {"s changed, r changed", known},
		"limit: 2":               {"s changed, r changed", depends},
		"limit: 1, hosts: n1":    {"s changed, r changed", known},
		"limit: 2, hosts: n1":    {"s changed, r changed", depends},
		"limit: 1, hosts: other": {"s skipped, r changed", depends},
		"limit: 2, hosts: other": {"s skipped, r changed", depends},
	} {
		l := newLab(t)
		o := l.options()
		o.Gates = nil // as plans are made
		steps := one(cmds("s", "runOptions: {target: {"+target+"}}"), puts("r", when("steps['s'].Result == 'ok'")))
		r := l.program(steps).Plan(t.Context(), o)
		l.want(r, want.outcomes)
		if s := step(t, r, "r"); s.Summary != want.reader {
			t.Errorf("%s: %q", target, s.Summary)
		}
	}
}

// TestBehindAGate: what comes behind a step that waits for other nodes waits as well; another job goes on.
func TestBehindAGate(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	o := l.options()
	waits := map[string]error{"Serialize": &apply.PendingError{Reason: "waiting for n2"}}
	o.Gates = &gatebook{holds: holds{ask: func(context.Context) error { return nil }}, says: waits}
	r, err := l.program(one(cmds("s", "runOptions: {serialize: {count: 1}}"), puts("b"), puts("c", "require: b"))).Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	l.want(r, "s pending, b pending, c pending")
	for name, why := range map[string]string{"s": "waiting for n2", "b": "behind a/s, which waits"} {
		if s := step(t, r, name); s.Reason != why || !s.Held {
			t.Errorf("%s: %q, held %v", name, s.Reason, s.Held)
		}
	}
	l.wantRan()
}
