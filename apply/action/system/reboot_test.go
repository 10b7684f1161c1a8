package system

import (
	"strings"
	"testing"

	"github.com/pullet/pullet/apply"
)

// TestRebootWithoutAnswer: a host does not boot where nothing can tell whether it should, and the step is not green.
func TestRebootWithoutAnswer(t *testing.T) {
	t.Parallel()
	h := &apply.Host{Root: "/"}
	for line, want := range map[string]string{"true": "boots", "false": "stays", "no-such-program -r": "exit code 127", "kill -9 $$": "killed"} {
		a := &Reboot{OnlyIf: line}
		change, err := a.Check(t.Context(), h)
		have := "stays"
		if err == nil && !change.Empty() {
			var out apply.Output
			if out, err = a.Apply(t.Context(), h, change); out.Reboot {
				have = "boots"
			}
		}
		if err != nil {
			have = err.Error()
		}
		if !strings.Contains(have, want) {
			t.Errorf("%s: %s, want %s", line, have, want)
		}
	}
}
