package main

import (
	"context"
	"strings"
	"testing"

	"github.com/pullet/pullet/state"
)

// TestUnreadableGate: a gate whose record cannot be read is halted. Nobody knows since when, nor, of a serialized step, its name.
func TestUnreadableGate(t *testing.T) {
	ctx := context.Background()
	s, err := state.Open(ctx, state.Config{Fleet: "f", Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.Propose(ctx, state.Version{ID: "v1", By: "web1"}, nil, 0); err != nil {
		t.Fatal(err)
	}
	current, _, err := s.Current(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, group := range []string{"web", "step-" + state.StepHash("site/restart")} {
		if _, err := s.Client.Put(ctx, s.GateKey(current.Rollout(), group), "{"); err != nil {
			t.Fatal(err)
		}
	}
	o, err := s.Overview(ctx, false)
	if err != nil {
		t.Fatal(err)
	}
	lines := stopsOf(o).lines()
	for i, want := range [][2]string{
		{"a serialized step was halted: etcd key rollout/", "; to lift that: pullet rollout resume --halts"},
		{"role web was halted: etcd key rollout/", "; to lift that: pullet rollout resume --role web"},
	} {
		if len(lines) != 2 || !strings.HasPrefix(lines[i], want[0]) || !strings.HasSuffix(lines[i], want[1]) {
			t.Errorf("%q", lines)
		}
	}
}
