package agent

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pullet/pullet/puller"
	"github.com/pullet/pullet/render"
	"github.com/pullet/pullet/state"
)

// TestEventOf: the event of a job has what docs/events.md says of it. An alert is told by one host and is about another
// one.
func TestEventOf(t *testing.T) {
	t.Parallel()
	e := state.Reacted{
		Event: state.Event{
			ID: "e1", Name: "prometheus/alert/Down", By: "mon", Time: time.Date(2026, 3, 1, 13, 0, 0, 0, time.FixedZone("", 3600)),
			Hosts: []string{"10.0.0.1"}, Chain: []state.Cause{{Run: "r1", Reaction: "first"}, {Run: "r2", Reaction: "second"}},
		},
		Occurrences: 2, About: []string{"web1"},
	}
	want := map[string]any{
		"id": "e1", "name": "prometheus/alert/Down", "occurrences": 2, "data": map[string]any{}, "node": "web1",
		"hosts": []any{"web1"}, "time": "2026-03-01T12:00:00Z",
		"cause": []any{map[string]any{"run": "r1", "reaction": "first"}, map[string]any{"run": "r2", "reaction": "second"}},
	}
	if diff := cmp.Diff(want, eventOf(e)); diff != "" {
		t.Error(diff)
	}
	e.About, e.Chain, e.Data = []string{"web2", "web1"}, nil, map[string]any{"level": 1}
	want["node"], want["hosts"], want["cause"], want["data"] = "", []any{"web1", "web2"}, []any{}, e.Data
	if diff := cmp.Diff(want, eventOf(e)); diff != "" {
		t.Error(diff)
	}
}

// TestNeverCompiles: a run whose jobs no later pull has ends, so that it does not keep the host's upgrades back for
// ever; what may be over by then is tried again.
func TestNeverCompiles(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err  error
		ends bool
	}{
		"nothing":     {nil, false},
		"mistakes":    {render.ErrorList{{Message: "there is no such job"}}, true},
		"lost commit": {fmt.Errorf("main: %w", &puller.MissingCommitError{Repo: "main", Commit: "c1"}), true},
		"disk":        {os.ErrPermission, false},
	} {
		if got := neverCompiles(c.err); got != c.ends {
			t.Errorf("%s: %v", name, got)
		}
	}
}
