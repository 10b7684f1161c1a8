package apply_test

import (
	"strings"
	"testing"
)

// TestLateParameter: a parameter that waits for a result has it when the step runs; where that cannot be, the step
// fails and changes nothing.
func TestLateParameter(t *testing.T) {
	late := func(value string) string {
		return "{name: b, action: t.put, parameters: {name: b, value: \"{{ " + value + " }}\"}}"
	}
	l := newLab(t)
	l.want(l.run(one(cmds("a"), late("(step `a`).StdOut"))), "a changed, b changed")
	if got := l.values["b"]; got != "out of a" {
		t.Errorf("b is %q", got)
	}
	l.wantRan("a", "b")
	r := l.run(one(cmds("a"), late("required `there is no data` (step `a`).Data")))
	l.want(r, "a ok, b failed")
	if !strings.Contains(r.Why(), "there is no data") {
		t.Errorf("why: %q", r.Why())
	}
	l.wantRan()
}
