package apply_test

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/internal/patience"
)

// hangs reads a named pipe that nobody writes to: its open blocks in the kernel, whatever ctx says.
type hangs struct {
	Name  string `yaml:"name,required"`
	pipe  string
	where string // check, change or reaction
	calls *atomic.Int32
}

func (a *hangs) block(where string) (apply.Output, error) {
	if a.where != where {
		return apply.Output{}, nil
	}
	a.calls.Add(1)
	_, err := os.ReadFile(a.pipe)
	return apply.Output{}, err
}

func (a *hangs) Check(context.Context, *apply.Host) (apply.Change, error) {
	_, err := a.block("check")
	if a.where == "reaction" {
		return apply.Change{}, err
	}
	return apply.Change{Summary: "read"}, err
}

func (a *hangs) Apply(context.Context, *apply.Host, apply.Change) (apply.Output, error) {
	return a.block("change")
}
func (a *hangs) React(context.Context, *apply.Host) (apply.Output, error) { return a.block("reaction") }
func (a *hangs) Reaction() string                                         { return "read again" }
func (a *hangs) Manages() []apply.Resource                                { return []apply.Resource{{ID: "pipe " + a.Name}} }

// swamp is a lab whose action t.hang hangs until the swamp is drained.
type swamp struct {
	*lab
	pipe      string
	calls     atomic.Int32
	abandoned apply.Abandoned
}

func newSwamp(t *testing.T, where string) *swamp {
	s := &swamp{lab: newLab(t), pipe: filepath.Join(t.TempDir(), "pipe"), abandoned: apply.Abandoned{Grace: time.Millisecond}}
	s.root = "/"
	if err := unix.Mkfifo(s.pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	s.more = []apply.Spec{{Name: "t.hang", New: func() apply.Action { return &hangs{pipe: s.pipe, where: where, calls: &s.calls} }}}
	t.Cleanup(s.drain)
	return s
}

// drain gives what hangs its end: the pipe becomes a file, and whoever waits at the pipe gets a writer.
func (s *swamp) drain() {
	old := s.pipe + ".old"
	if os.Rename(s.pipe, old) != nil || os.WriteFile(s.pipe, nil, 0o600) != nil {
		return
	}
	if w, err := os.OpenFile(old, os.O_RDWR, 0); err == nil { // does not wait for a reader
		s.t.(*testing.T).Cleanup(func() { _ = w.Close() })
		_ = w.Close()
	}
}

func (s *swamp) pull(ctx context.Context, js jobs) *apply.Report {
	s.t.Helper()
	o := s.options()
	o.Host.Abandoned = &s.abandoned
	r, err := s.program(js).Run(ctx, o)
	if err != nil {
		s.t.Fatalf("run: %v", err)
	}
	return r
}

// soon is a step's time.
const soon = "runOptions: {timeout: 20ms}"

var hung = regexp.MustCompile(`^a/h: its (check|change|reaction) has not returned since \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ and is abandoned; a file system of the host may hang: see ps \(state D\) and dmesg$`)

// TestAbandoned: a step that hangs in a system call fails when its time is over, as a fault of the host; the run goes
// on. Later runs leave the step, and others that work on the same, alone until it returns.
func TestAbandoned(t *testing.T) {
	for _, where := range []string{"check", "change", "reaction"} {
		t.Run(where, func(t *testing.T) {
			s := newSwamp(t, where)
			steps := one(cmds("first", "runOptions: {runs: always}"), thing("t.hang", "h", soon, "watch: first"), puts("b"))
			r := s.pull(t.Context(), steps)
			s.want(r, "first changed, h failed, b changed")
			why := step(t, r, "h").Reason
			if m := hung.FindStringSubmatch(why); m == nil || m[1] != where {
				t.Errorf("reason %q", why)
			}
			if step(t, r, "h").Fault != apply.HostFault || r.Fault() != apply.HostFault {
				t.Errorf("fault of the step %q, of the run %q", step(t, r, "h").Fault, r.Fault())
			}
			r = s.pull(t.Context(), steps)
			if again := step(t, r, "h").Reason; again != why || s.calls.Load() != 1 {
				t.Errorf("the next run: %q after %d calls, want %q after one", again, s.calls.Load(), why)
			}
			other := strings.Replace(thing("t.hang", "h", soon, "watch: first"), "name: h", "name: other", 1)
			r = s.pull(t.Context(), one(cmds("first", "runOptions: {runs: always}"), other))
			if got := step(t, r, "other").Reason; got != why || s.calls.Load() != 1 {
				t.Errorf("another step for the same: %q after %d calls, want %q", got, s.calls.Load(), why)
			}
			s.drain()
			patience.Until(t, "the step is free", func() bool {
				return step(t, s.pull(t.Context(), steps), "h").Outcome == apply.Changed
			})
		})
	}
}

// TestAbandonedRun: the run's own end bounds a step without a time of its own, in a plan as well.
func TestAbandonedRun(t *testing.T) {
	s := newSwamp(t, "check")
	steps := one(puts("b"), thing("t.hang", "h"))
	ctx, cancel := context.WithTimeout(t.Context(), patience.Stretch(500*time.Millisecond))
	defer cancel()
	r := s.pull(ctx, steps)
	if h := step(t, r, "h"); h.Outcome != apply.Failed || !hung.MatchString(h.Reason) || r.Stopped != "timed out" {
		t.Errorf("%s: %q, stopped %q", h.Outcome, h.Reason, r.Stopped)
	}
	o := s.options()
	o.Host.Abandoned = &apply.Abandoned{Grace: time.Millisecond}
	ctx, cancel = context.WithTimeout(t.Context(), patience.Stretch(500*time.Millisecond))
	defer cancel()
	plan := s.program(steps).Plan(ctx, o)
	if h := step(t, plan, "h"); h.Outcome != apply.Failed || !hung.MatchString(h.Reason) {
		t.Errorf("plan: %s: %q", h.Outcome, h.Reason)
	}
}

// TestAbandonedOnce: what must not run twice is not run again after it was abandoned, even when it has returned.
func TestAbandonedOnce(t *testing.T) {
	s := newSwamp(t, "change")
	steps := one(thing("t.hang", "h", "runOptions: {timeout: 20ms, idempotent: false}"))
	first := step(t, s.pull(t.Context(), steps), "h")
	if first.Outcome != apply.Failed || !strings.Contains(first.Reason, "is abandoned") || !strings.Contains(first.Reason, "; its result is unknown: ") || first.Fault != apply.HostFault {
		t.Errorf("%s, fault %s: %q", first.Outcome, first.Fault, first.Reason)
	}
	s.drain()
	if again := step(t, s.pull(t.Context(), steps), "h"); again.Reason != first.Reason || s.calls.Load() != 1 {
		t.Errorf("again: %q after %d calls", again.Reason, s.calls.Load())
	}
}

// TestActionsAreBounded: nothing but abandon.go calls an action, so nothing waits for one without an end.
func TestActionsAreBounded(t *testing.T) {
	calls := regexp.MustCompile(`\bact\.(Check|CheckAt|Apply|ApplyTogether)\(|\.React\(`)
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		n := len(calls.FindAll(text, -1))
		if name == "abandon.go" {
			found = n
		} else if n > 0 && !strings.HasSuffix(name, "_test.go") {
			t.Errorf("%s calls an action: use compare, change, answer or changeTogether", name)
		}
	}
	if found != 5 {
		t.Errorf("abandon.go has %d calls, want 5: what this test looks for is gone", found)
	}
}
