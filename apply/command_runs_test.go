package apply

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/pullet/pullet/apply/proc"
	"github.com/pullet/pullet/internal/patience"
)

// TestRunsOK: a command that has to succeed says what it printed when it does not, and why it could not start.
func TestRunsOK(t *testing.T) {
	h := &Host{Root: "/"}
	for want, args := range map[string][]string{
		"": {"true"},
		"sh -c echo one; echo two >&2; exit 3: exit code 3: two": {"sh", "-c", "echo one; echo two >&2; exit 3"},
		"sh -c echo one; exit 3: exit code 3: one":               {"sh", "-c", "echo one; exit 3"},
		"false: exit code 1":                                     {"false"},
		"cannot start no-such-program: there is no such program on this host (PATH is /usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin)": {"no-such-program"},
	} {
		if err := h.RunOK(t.Context(), args...); want == "" && err != nil || want != "" && (err == nil || err.Error() != want) {
			t.Errorf("%q: %v", args, err)
		}
	}
	if _, err := h.Run(t.Context(), Command{Args: []string{"true"}, User: "no-such-user"}); err == nil || !strings.HasPrefix(err.Error(), `user "no-such-user": `) {
		t.Errorf("a user that is not there: %v", err)
	}
	if _, err := h.Run(t.Context(), Command{Args: []string{"true"}, Dir: "/no/such/dir"}); err == nil || !strings.HasPrefix(err.Error(), "cannot start true: ") {
		t.Errorf("a directory that is not there: %v", err)
	}
	out, err := h.Run(t.Context(), Command{Args: []string{"sh", "-c", "id -un; echo $HOME; pwd; cat; echo $X"}, User: "nobody", Dir: "/tmp", Stdin: "in\n", Env: map[string]string{"X": "y"}})
	if lines := strings.Fields(out.StdOut); err != nil || len(lines) != 5 || lines[0] != "nobody" || lines[2] != "/tmp" || lines[3] != "in" || lines[4] != "y" {
		t.Errorf("%v: %q", err, out.StdOut)
	}
}

// TestWhyACommandEnded: its time, or who ended it.
func TestWhyACommandEnded(t *testing.T) {
	over, cancel := context.WithTimeout(t.Context(), 0)
	defer cancel()
	stopped, stop := context.WithCancelCause(t.Context())
	stop(errors.New("SIGTERM"))
	for want, ctx := range map[string]context.Context{"timed out": over, "SIGTERM": stopped} {
		if why := WhyEnded(ctx); why.Error() != want {
			t.Errorf("%v, want %s", why, want)
		}
	}
	h := &Host{Root: "/"}
	for want, ctx := range map[string]context.Context{"timed out; it was ended with its children": over, "the run was stopped; it was ended with its children": stopped} {
		if _, err := h.Run(ctx, Command{Args: []string{"sleep", "60"}}); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// TestTailOfOutput: the last part is kept, and what is missing is counted.
func TestTailOfOutput(t *testing.T) {
	for _, c := range []struct{ writes, size, left int }{
		{1, maxCommandOutput, 0}, {1, maxCommandOutput + 1, 1}, {2, maxCommandOutput, maxCommandOutput},
		{3, maxCommandOutput, 2 * maxCommandOutput}, {2, maxCommandOutput + 5, maxCommandOutput + 10},
	} {
		var kept tail
		for i := range c.writes {
			text := strings.Repeat(string(rune('a'+i)), c.size)
			if n, err := kept.Write([]byte(text)); n != c.size || err != nil {
				t.Fatal(n, err)
			}
		}
		last := strings.Repeat(string(rune('a'+c.writes-1)), maxCommandOutput)
		text := kept.String()
		head, body, cut := strings.Cut(text, "\n")
		if !cut {
			head, body = "", text
		}
		want := ""
		if c.left > 0 {
			want = "[" + strconv.Itoa(c.left) + " bytes left out]"
		}
		if head != want || body != last || (Output{StdOut: text}).Truncated() != (c.left > 0) || kept.buf.Len() > 2*maxCommandOutput {
			t.Errorf("%+v: %q, %d bytes", c, head, len(body))
		}
	}
	if (Output{StdOut: "x\n[3 bytes left out]\n"}).Truncated() {
		t.Error("a command that says so is not cut")
	}
}

// TestLastLines: at most three, of the errors where there are any, without the carriage returns of terminals.
func TestLastLines(t *testing.T) {
	for want, out := range map[string]Output{
		"":            {},
		"a":           {StdOut: "a\n"},
		"b | c | d":   {StdOut: "x", StdErr: "a\r\nb\r\nc\r\n d\n\n"},
		"one | three": {StdOut: "one\n  three", StdErr: " \n"},
	} {
		if got := LastLines(out); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestChildrenOfOtherSessions: what left the session of a command, and its children, end with it.
func TestChildrenOfOtherSessions(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var pids atomic.Value
	h := &Host{Root: "/", Live: func(_, line string) { pids.Store(line); cancel() }}
	_, err := h.Run(context.WithValue(ctx, liveStep{}, watched{"a/s", strings.Clone}), Command{Args: Shell("setsid sh -c 'setsid sleep 60 & echo $$ $!; wait' & wait")})
	if !errors.Is(err, errStopped) {
		t.Fatal(err)
	}
	for _, pid := range strings.Fields(pids.Load().(string)) {
		patience.Until(t, "process "+pid+" ends", func() bool {
			p, runs := proc.Read(pid)
			return !runs || p.Ended()
		})
	}
}
