package agent

import (
	"context"
	"errors"
	"os"
	"slices"
	"testing"

	"github.com/pullet/pullet/internal/event"
	"github.com/pullet/pullet/render"
	"github.com/pullet/pullet/state"
)

// TestTriggerIsRaisedOnce: what a host cannot keep of a trigger is raised again, and what it kept is not. It forgets
// triggers that the version does not have any more: one that comes back is raised.
func TestTriggerIsRaisedOnce(t *testing.T) {
	t.Parallel()
	h := newHost(t, job("one", "true"))
	h.write("repo/base/events.yaml", "events: {triggers: {'*': [{name: up}, {name: also/up}]}}\n")
	h.write("repo/events/up.yaml", "up: {expression: 'true', data: {a: b}}\nalso/up: {expression: 'true'}\n")
	h.commit(job("one", "true"))
	a, err := New(h.Config, "test", h.entry())
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	if _, err := a.Pull(t.Context(), Options{}); err != nil || a.triggers == nil {
		t.Fatal(err)
	}
	file := a.triggers.file()
	if err := (event.Edges{"gone": {Raised: true}}).Save(file); err != nil {
		t.Fatal(err)
	}
	judge := func(refused string, want ...string) {
		t.Helper()
		var kept []string
		keep := func(_ context.Context, events ...state.Event) error {
			if events[0].Name == refused {
				return os.ErrPermission
			}
			kept = append(kept, events[0].Name)
			return nil
		}
		failed := errors.Join(a.triggers.judge(t.Context(), func(*render.Trigger) bool { return true }, keep)...)
		if !slices.Equal(kept, want) || errors.Is(failed, os.ErrPermission) != (refused != "") {
			t.Errorf("kept %q, not %q: %v", kept, want, failed)
		}
	}
	judge("up", "also/up")
	judge("", "up")
	judge("")
	if edges := event.ReadEdges(file); len(edges) != 2 || !edges["up"].Raised {
		t.Errorf("%+v", edges)
	}
}
