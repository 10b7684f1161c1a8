package apply_test

import (
	"testing"

	"github.com/pullet/pullet/apply"
)

// TestAnswer tells a no from no answer, also where a shell says no with the exit code of a missing program.
func TestAnswer(t *testing.T) {
	t.Parallel()
	h := &apply.Host{Root: "/"}
	for line, want := range map[string]string{
		"true": "yes", "false": "no", "exit 125": "no", "exit 128": "no", "exit 255": "no", "exit 126": "lacks", "exit 127": "lacks",
		"no-such-program": "lacks", "no-such-program 2>/dev/null": "lacks", "no-such-program --type x": "lacks", "true; /etc/passwd": "lacks",
		"command -v no-such-program": "no", "command -V no-such-program": "no", "! command -v sh >/dev/null": "no", "type no-such-program": "no",
		"hash no-such-program": "no", "test -e / && type no-such-program": "no", "command -v sh": "yes",
		"kill -9 $$": "error", "kill -SEGV $$": "error", "(kill -9 $(sh -c 'echo $PPID')); exit $?": "error",
	} {
		out, err := h.Run(t.Context(), apply.Command{Args: apply.Shell(line)})
		if err != nil {
			t.Fatal(err)
		}
		yes, lack, err := apply.Answer("onlyif", line, out)
		have := map[bool]string{true: "yes", false: "no"}[yes]
		switch {
		case err != nil:
			have = "error"
		case lack != nil:
			have = "lacks"
		}
		if have != want {
			t.Errorf("%s: %s (exit code %d), want %s", line, have, out.ExitCode, want)
		}
	}
}
