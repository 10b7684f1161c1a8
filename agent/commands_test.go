package agent

import (
	"context"
	"strings"
	"testing"

	"github.com/pullet/pullet/state"
)

// TestBrokenCommand: a command that cannot be read is told, and keeps the node from nothing.
func TestBrokenCommand(t *testing.T) {
	h := newHost(t, job("one", "true"))
	ctx := context.Background()
	s, err := h.OpenStore(ctx)
	if err != nil {
		t.Fatal(err)
	}
	root, _ := strings.CutSuffix(s.CommandPrefix("c1", ""), "command_/c1/")
	for key, value := range map[string]string{"command/c1/given": "no JSON", "command_pending/c1": ""} {
		if _, err := s.Client.Put(ctx, root+key, value); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	out := h.pull()
	if !out.Upgrade || h.statuses()[state.Rollout].State != state.Success {
		t.Errorf("it did not upgrade: %+v", out)
	}
	if len(out.Failures) != 1 || !strings.Contains(out.Failures[0].Error(), "command/c1/given") || out.ExitCode() != ExitError {
		t.Errorf("%q", out.Failures)
	}
}
