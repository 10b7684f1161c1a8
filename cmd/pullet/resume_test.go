package main

import (
	"context"
	"strings"
	"testing"

	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/pullet/pullet/state"
)

// TestUnreadableGate: a gate whose record cannot be read is halted. Nobody knows since when, nor, of a serialized step,
// its name.
func TestUnreadableGate(t *testing.T) {
	s, err := state.Open(context.Background(), state.Config{Fleet: "f", Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	o := &state.Overview{Gates: map[string]state.Gate{}}
	for _, group := range []string{"web", "step-" + state.StepHash("site/restart")} {
		name, g := s.Rollouts.ReadGate(&mvccpb.KeyValue{Key: []byte(s.Rollouts.GateKey("v1", group)), Value: []byte("{")})
		o.Gates[name] = g
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
