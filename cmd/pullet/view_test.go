package main

import (
	"testing"
	"time"

	"github.com/pullet/pullet/state"
)

// TestStepThatEnded: a node that waits since it was in a step says for what it waits, and not which step that was.
func TestStepThatEnded(t *testing.T) {
	now := time.Now()
	node := state.Node{Name: "web1", Role: "web", LastSeen: now}
	for _, c := range []struct {
		waits time.Time
		want  string
	}{
		{now, "a command that outlived its pull"}, {now.Add(-time.Minute), "step 3 of 7: web/quick"},
	} {
		line := func(value string, s state.Status) state.StatusLine {
			s.Version = "v2"
			return state.StatusLine{State: value, Status: s}
		}
		o := &state.Overview{
			Current: &state.Version{ID: "v2"}, Nodes: map[string]state.Node{"web1": node}, Alive: map[string]bool{"web1": true}, Running: map[string]string{"web1": "v1"},
			Statuses: map[string]map[string]state.StatusLine{"web1": {
				state.Rollout:    line(state.Pending, state.Status{Kind: state.WaitOrphan, Reason: "a command that outlived its pull", Time: c.waits}),
				state.Configured: line(state.Running, state.Status{Step: "step 3 of 7: web/quick", Time: now.Add(-time.Second)}),
			}},
		}
		if got := viewOf(o).Nodes[0]; got.Why != c.want {
			t.Errorf("%q, want %q", got.Why, c.want)
		}
	}
}
