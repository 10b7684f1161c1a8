package main

import (
	"context"
	"testing"

	"github.com/pullet/pullet/state"
)

// TestHistoryOfSettled: after v1, v2 and v1 again, a settlement is shown for the move to v1 in which it was made, and
// for no other.
func TestHistoryOfSettled(t *testing.T) {
	for at, want := range map[int]string{0: "001", 1: "010", 2: "100"} { // the newest first
		ctx := context.Background()
		s, err := state.Open(ctx, state.Config{Fleet: "f", Dir: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		must := func(_ any, err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		for i, id := range []string{"v1", "v2", "v1"} {
			current, rev, err := s.Versions.Current(ctx)
			must(current, err)
			must(s.Versions.Propose(ctx, state.Version{ID: id}, current, rev))
			if i == at {
				must(s.Client.Do(ctx, state.Put(s.Steps.Key(id, state.StepHash("init"), "result", "n1"), state.StepResult{Node: "n1", Step: "init", Result: "unknown"})))
				must(s.Steps.Settle(ctx, "init", "ada", state.Settling{Done: true}))
			}
		}
		past, err := history(ctx, s)
		must(past, err)
		got := ""
		for _, v := range past {
			got += string(rune('0' + len(v.Settled)))
		}
		if got != want {
			t.Errorf("settled in move %d: %s, want %s", at, got, want)
		}
	}
}
