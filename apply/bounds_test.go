package apply_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pullet/pullet/apply"
)

// bounds are what a host told of what began on it.
type bounds struct {
	mu    sync.Mutex
	begun []time.Duration
	open  int
}

func (b *bounds) begins(atMost time.Duration) (over func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.begun = append(b.begun, atMost)
	b.open++
	return sync.OnceFunc(func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.open--
	})
}

func (b *bounds) want(t *testing.T, least, most time.Duration) {
	t.Helper()
	in := func(d time.Duration) bool { return d > least && d <= most }
	if b.open != 0 || !slices.ContainsFunc(b.begun, in) {
		t.Errorf("%s began, and %d of it is not over; want one from %s to %s, and none", b.begun, b.open, least, most)
	}
}

// TestCommandBounds: a command that has an end by itself says how long it may take: until it is killed. It does not
// learn how a service tells systemd how it is.
func TestCommandBounds(t *testing.T) {
	for _, name := range []string{"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"} {
		t.Setenv(name, "1")
	}
	var b bounds
	h := &apply.Host{Root: t.TempDir(), Bounds: b.begins}
	out, err := h.Run(t.Context(), apply.Command{Args: []string{"env"}})
	if err != nil || len(b.begun) > 0 {
		t.Errorf("%v; of a command without an end %s is said", err, b.begun)
	}
	if strings.Contains(out.StdOut, "NOTIFY") || strings.Contains(out.StdOut, "WATCHDOG") {
		t.Errorf("the command sees\n%s", out.StdOut)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := h.Run(ctx, apply.Command{Args: []string{"true"}}); err != nil {
		t.Error(err)
	}
	b.want(t, time.Minute, time.Minute+5*time.Second)
	ctx, cancel = context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := h.Run(ctx, apply.Command{Args: []string{"sleep", "60"}}); err == nil {
		t.Error("a command goes on behind its end")
	}
	b.want(t, 0, 5*time.Second+20*time.Millisecond)
}

// TestStepBounds: a step that changes the host says how long that may take, and that it is over also where it hangs and
// is abandoned. The many that only look say nothing.
func TestStepBounds(t *testing.T) {
	s := newSwamp(t, "change")
	var b bounds
	o := s.options()
	o.Host.Abandoned, o.Host.Bounds = &s.abandoned, b.begins
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	r, err := s.program(one(puts("b"), thing("t.hang", "h", soon))).Run(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	s.want(r, "b changed, h failed")
	if len(b.begun) != 2 {
		t.Errorf("%d changes began: %s", len(b.begun), b.begun)
	}
	b.want(t, time.Hour-time.Minute, time.Hour+time.Minute)
	b.want(t, 0, 21*time.Millisecond)
}
