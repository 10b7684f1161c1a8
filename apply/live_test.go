package apply

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
)

// watchedHost collects what it is told while commands run.
func watchedHost(t *testing.T) (*Host, func() []string) {
	t.Helper()
	var mu sync.Mutex
	var seen []string
	h := &Host{Root: t.TempDir(), Live: func(step, line string) {
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, step+": "+line)
	}}
	return h, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(seen)
	}
}

func inStep(name string) context.Context {
	return context.WithValue(context.Background(), liveStep{}, watched{name, strings.Clone})
}

// TestLiveLines: whole lines of both outputs arrive, bounded, without what would move a terminal's cursor; what is kept
// is the same as ever.
func TestLiveLines(t *testing.T) {
	h, seen := watchedHost(t)
	out, err := h.Run(inStep("a/b"), Command{Args: Shell(`printf 'one\ntw'; printf 'o\n\033[31mred\n10%%\r20%%\r\n'; head -c 3000 /dev/zero | tr '\0' x; printf '\nno end'`)})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"a/b: one", "a/b: two", "a/b: [31mred", "a/b: 20%", "a/b: " + strings.Repeat("x", maxLiveLine) + "...", "a/b: no end"}
	if got := seen(); !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if !strings.HasPrefix(out.StdOut, "one\ntwo\n\x1b[31mred\n10%\r20%\r\nxxx") || !strings.HasSuffix(out.StdOut, "x\nno end") {
		t.Errorf("kept: %.60q", out.StdOut)
	}
}

// TestLiveAsItComes: a line is shown before the command ends, which here waits for the one who saw it.
func TestLiveAsItComes(t *testing.T) {
	h, _ := watchedHost(t)
	shown := make(chan string, 1)
	h.Live = func(_, line string) { shown <- line }
	ctx, cancel := context.WithCancel(inStep("a/b"))
	defer cancel()
	done := make(chan error, 1)
	go func() {
		_, err := h.Run(ctx, Command{Args: Shell("echo working >&2; sleep 60")})
		done <- err
	}()
	if line := <-shown; line != "working" {
		t.Errorf("%q", line)
	}
	cancel()
	<-done
}

// TestLiveIsForSteps: what a command prints that is quiet, or that no step runs, is not shown.
func TestLiveIsForSteps(t *testing.T) {
	h, seen := watchedHost(t)
	for ctx, c := range map[context.Context]Command{
		context.Background(): {Args: Shell("echo no step")},
		inStep("a/b"):        {Args: Shell("echo quiet"), Quiet: true},
	} {
		if _, err := h.Run(ctx, c); err != nil {
			t.Fatal(err)
		}
	}
	if got := seen(); len(got) > 0 {
		t.Errorf("shown: %q", got)
	}
}

// TestLiveTogether: commands of several steps at once do not mix their lines.
func TestLiveTogether(t *testing.T) {
	h, _ := watchedHost(t)
	seen := map[string]int{} // no lock of its own: lines come one at a time
	h.Live = func(step, line string) { seen[step+" "+line]++ }
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			_, err := h.Run(inStep(fmt.Sprint("s", i)), Command{Args: Shell("for i in $(seq 200); do echo out; echo err >&2; done")})
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if len(seen) != 8 || seen["s0 out"] != 200 || seen["s3 err"] != 200 {
		t.Errorf("%v", seen)
	}
}
