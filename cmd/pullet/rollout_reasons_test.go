package main

import (
	"bytes"
	"testing"

	"github.com/pullet/pullet/state"
)

// TestReasonOnce: what many nodes wait for is said once, with the first of them; -o wide names all.
func TestReasonOnce(t *testing.T) {
	var nodes []nodeStatus
	for _, name := range []string{"a1", "a2", "b1", "a3", "a4", "a5", "a6"} {
		n := nodeStatus{Node: name, Why: "role web (halted): the upgrade of web1 failed: no route", Remedy: state.Act("push a commit")}
		if name == "b1" {
			n.Why, n.Clear = "the window", ""
		}
		nodes = append(nodes, n)
	}
	for all, want := range map[bool]string{
		false: "  a1, a2, a3, a4, a5 and 1 more: role web (halted): the upgrade of web1 failed: no route; push a commit\n  b1: the window\n",
		true:  "  a1, a2, a3, a4, a5, a6: role web (halted): the upgrade of web1 failed: no route; push a commit\n  b1: the window\n",
	} {
		var out bytes.Buffer
		if printByReason(&out, nodes, all); out.String() != want {
			t.Errorf("all %v:\n%s\nwant\n%s", all, out.String(), want)
		}
	}
}
