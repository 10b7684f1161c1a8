package apply

import (
	"context"
	"strings"
	"testing"
	"time"
)

// TestLock: one has it at a time, who waits gets it next, and who is stopped waits no longer.
func TestLock(t *testing.T) {
	h := &Host{Root: "/"}
	unlock, err := h.Lock(t.Context(), "/etc/fstab")
	if err != nil {
		t.Fatal(err)
	}
	other, err := h.Lock(t.Context(), "/etc/hosts")
	if err != nil {
		t.Fatalf("another file: %v", err)
	}
	other()
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, err := h.Lock(ctx, "/etc/fstab"); err == nil || !strings.Contains(err.Error(), "/etc/fstab: another step edits it: timed out") {
		t.Errorf("while it is held: %v", err)
	}
	got := make(chan error)
	go func() {
		second, err := h.Lock(t.Context(), "/etc/fstab")
		if err == nil {
			second()
		}
		got <- err
	}()
	unlock()
	if err := <-got; err != nil {
		t.Error(err)
	}
}
