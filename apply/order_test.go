package apply_test

import (
	"strings"
	"testing"
)

// TestOrder: as the steps stand in the files, but what is required comes first; validations come last.
func TestOrder(t *testing.T) {
	for _, c := range []struct {
		name string
		jobs jobs
		want string
	}{
		{"file order", one(puts("c"), puts("a"), puts("b")), "c a b"},
		{"require", one(puts("a", "require: [c]"), puts("b"), puts("c")), "c a b"},
		{"a chain", one(puts("a", "require: [b]"), puts("b", "require: [c]"), puts("c"), puts("d")), "c b a d"},
		{"a diamond", one(puts("a", "require: [b, c]"), puts("b", "require: [d]"), puts("c", "require: [d]"), puts("d")), "d b c a"},
		{"two jobs", jobs{{"one", list(puts("x"))}, {"two", list(puts("y"))}}, "x y"},
		{"across jobs", jobs{{"one", list(puts("x", "require: [z]"))}, {"two", list(puts("y"), puts("z"))}}, "z x y"},
		{"validations last", jobs{{"check", list(puts("v"))}, {"one", list(puts("x"))}}, "x v"},
		{"a validation requires a step", jobs{{"check", list(puts("v", "require: [x]"))}, {"one", list(puts("x"))}}, "x v"},
		{"one required twice", one(puts("a", "require: [b, {step: b}]"), puts("b")), "b a"},
		{"a validation whose result is read stays behind", jobs{{"one", list(puts("a", `conditions: {when: {condition: "steps['v'].Result == ''"}}`))}, {"check", list(puts("v"))}}, "a v"},
		{"its own result", one(puts("a", `conditions: {success: {condition: "steps['a'].Changed"}}`), puts("b")), "a b"},
		{"a job's condition", jobs{{"one , conditions: {when: {condition: \"steps['b'].Changed\"}}", list(puts("a"))}, {"two", list(puts("b"))}}, "b a"},
		{"a step whose result is read", one(puts("a", `conditions: {when: {condition: "steps['b'].Changed"}}`), puts("b")), "b a"},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newLab(t)
			l.run(c.jobs)
			l.wantRan(strings.Fields(c.want)...)
		})
	}
}

// TestCycles: the loop is shown with the place of each step.
func TestCycles(t *testing.T) {
	for _, c := range []struct {
		name string
		jobs jobs
		want string
	}{
		{"two", one(puts("a", "require: [b]"), puts("b", "require: [a]")),
			"jobs/a.yaml:2:3: these steps require each other: a/a (jobs/a.yaml:2:3) -> a/b (jobs/a.yaml:3:3) -> a/a (jobs/a.yaml:2:3)"},
		{"the way to it is not shown", one(puts("x", "require: [a]"), puts("a", "require: [b]"), puts("b", "require: [a]")),
			"jobs/a.yaml:3:3: these steps require each other: a/a (jobs/a.yaml:3:3) -> a/b (jobs/a.yaml:4:3) -> a/a (jobs/a.yaml:3:3)"},
		{"across jobs", jobs{{"one", list(puts("x", "require: [y]"))}, {"two", list(puts("y", "require: [x]"))}},
			"jobs/one.yaml:2:3: these steps require each other: one/x (jobs/one.yaml:2:3) -> two/y (jobs/two.yaml:2:3) -> one/x (jobs/one.yaml:2:3)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := newLab(t).bind(c.jobs)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
		})
	}
}

// TestRequisites: what a reference means, by the order that it forces.
func TestRequisites(t *testing.T) {
	named := func(name, param string, more ...string) string {
		return strings.Replace(thing("t.put", name, more...), "parameters: {name: "+name+"}", "parameters: {name: "+param+"}", 1)
	}
	other := func(name, param string) string {
		return "{name: " + name + ", action: u.put, parameters: {name: " + param + "}}"
	}
	for _, c := range []struct {
		name string
		jobs jobs
		want string // what is applied
	}{
		{"bare", one(puts("a", "require: b"), puts("b")), "b a"},
		{"step", one(puts("a", "require: {step: b}"), puts("b")), "b a"},
		{"module and name", one(puts("a", "require: {t: b}"), puts("b")), "b a"},
		{"module and parameter", one(puts("a", "require: {t: /etc/b}"), named("b", "/etc/b")), "/etc/b a"},
		{"whole action and parameter", one(puts("a", "require: {t.put: /etc/b}"), named("b", "/etc/b")), "/etc/b a"},
		{"another module of the same name", one(puts("a", "require: {u: x}"), named("b", "x"), other("x", "y")), "y a x"},
		{"among the parameters", one("{name: a, action: t.put, parameters: [{name: a}, {require: [{t: b}]}]}", puts("b")), "b a"},
		{"job/step", jobs{{"one", list(puts("a", "require: two/b"))}, {"two", list(puts("x"), puts("b"))}}, "b a x"},
		{"step: job/step", jobs{{"one", list(puts("a", "require: {step: two/b}"))}, {"two", list(puts("x"), puts("b"))}}, "b a x"},
		{"its own job first", jobs{{"one", list(puts("a", "require: b"), named("b", "own"))}, {"two", list(named("b", "other"))}}, "own a other"},
		{"several mean all", jobs{{"one", list(puts("a", "require: b"))}, {"two", list(named("b", "b2"))}, {"three", list(named("b", "b3"))}}, "b2 b3 a"},
		{"a module means all jobs", jobs{{"one", list(puts("a", "require: {t: b}"), named("b", "own"))}, {"two", list(named("b", "other"))}}, "own other a"},
		{"a name with blanks", one(puts("a", "require: 'b c'"), named("b c", "bc")), "bc a"},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newLab(t)
			l.run(c.jobs)
			l.wantRan(strings.Fields(c.want)...)
		})
	}
}

// TestUnknownRequisites: the place, what was looked for, and the nearest name.
func TestUnknownRequisites(t *testing.T) {
	for _, c := range []struct {
		name string
		jobs jobs
		want string
	}{
		{"bare", one(puts("alpha", "require: [bravoo]"), puts("bravo")),
			`jobs/a.yaml:2:69: require: there is no step "bravoo" (did you mean "bravo"?)`},
		{"module", one(puts("alpha", "require: [{t: charlie}]"), puts("charly")),
			`require: no step of t is named "charlie" or manages it (did you mean "charly"?)`},
		{"right name, wrong module", one(puts("a", "require: [{pkg: b}]"), puts("b")), `require: no step of pkg is named "b" or manages it`},
		{"parameter by a bare name", one(puts("a", "require: [/etc/b]"), "{name: b, action: t.put, parameters: {name: /etc/b}}"),
			`require: there is no step "/etc/b"`},
		{"itself", one(puts("a", "require: [a]")), `require: "a" is this step itself`},
		{"a validation from a job", jobs{{"one", list(puts("a", "require: [v]"))}, {"check", list(puts("v"))}}, `require: there is no step "v"`},
		{"nothing near", one(puts("a", "require: [zzzzzzzz]")), `require: there is no step "zzzzzzzz"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := newLab(t).bind(c.jobs)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
		})
	}
}

// TestAllMistakesAtOnce: binding does not stop at the first.
func TestAllMistakesAtOnce(t *testing.T) {
	_, err := newLab(t).bind(one(puts("a", "require: [x1]"), "{name: b, action: t.pt}", "{name: c, action: t.put, parameters: {nam: x}}"))
	for _, want := range []string{`there is no step "x1"`, `there is no action "t.pt" (did you mean "t.put"?)`, `unknown field "nam"`, `"name" is missing`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got  %v\nwant also %s", err, want)
		}
	}
}
