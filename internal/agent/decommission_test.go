package agent

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/lock"
	"github.com/pullet/pullet/state"
)

// TestDecommissionedInMidRun: a node that is given up while it runs starts nothing more and does not write itself back;
// its next pull brings it back.
func TestDecommissionedInMidRun(t *testing.T) {
	t.Parallel()
	h := newHost(t, job("one", "true"))
	a, err := New(h.Config, "test", h.entry())
	if err != nil {
		t.Fatal(err)
	}
	giveUp := sync.OnceValue(func() error {
		s, err := h.OpenStore(context.Background())
		if err != nil {
			return err
		}
		_, err = s.Nodes.Decommission(context.Background(), "web1", "op", true)
		return errors.Join(err, s.Close())
	})
	_, err = a.Pull(context.Background(), Options{Waiting: func(*lock.Wait) {}, Watch: func(*apply.StepReport) {
		if err := giveUp(); err != nil {
			t.Error(err)
		}
	}})
	if !errors.Is(err, state.ErrLeaseLost) && !errors.Is(err, lock.ErrFenced) {
		t.Errorf("%v", err)
	}
	if err := a.Close(); err != nil {
		t.Error(err)
	}
	if got := h.statuses(); len(got) > 0 {
		t.Errorf("it is back: %+v", got)
	}
	if out := h.pull(); out.ExitCode() != 0 || h.statuses()[state.Rollout].State != state.Success {
		t.Errorf("%+v %+v", out, h.statuses())
	}
}
