package agent

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pullet/pullet/lock"
	"github.com/pullet/pullet/state"
)

// TestJudgedAgain: a wait that lasts is shown anew when a node that it names begins to wait itself for an operator; one
// that is over is not.
func TestJudgedAgain(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s, err := state.Open(ctx, state.Config{Fleet: "f", Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	shown := make(chan string, 100)
	v := &state.Version{ID: "v1"}
	r := &reporter{
		joined: &joined{store: s, current: v}, ctx: ctx, notes: func(*lock.Wait) {}, shows: func(w *lock.Wait) { shown <- w.Error() },
	}
	const as = "waiting for role db: not upgraded yet: db1 (alive)"
	r.waiting(v, true)(&lock.Wait{
		Kind: state.WaitRole, Gate: "role db", Reason: "not upgraded yet: db1 (alive)", Remedy: state.NoAction(), Holders: []state.Holder{{Node: "db1", Alive: true}},
	})
	if got := <-shown; got != as+"; no action needed" {
		t.Error(got)
	}
	var lasts atomic.Bool
	lasts.Store(true)
	stop := r.refreshing(ctx, time.Millisecond, lasts.Load)
	st := state.Status{Version: "v1", Reason: "slot db: its limit is 0", Remedy: state.Act("raise it"), Time: time.Now()}
	if err := s.Statuses.Set(ctx, "db1", state.Rollout, state.Pending, st); err != nil {
		t.Fatal(err)
	}
	if got := <-shown; got != as+"; db1 waits itself for slot db: its limit is 0; raise it" {
		t.Error(got)
	}
	stop()
	st.Remedy = state.Act("something else")
	if err := s.Statuses.Set(ctx, "db1", state.Rollout, state.Pending, st); err != nil {
		t.Fatal(err)
	}
	lasts.Store(false)
	r.refresh(ctx, lasts.Load)
	lasts.Store(true)
	w := &waits{over: func() { r.lastShown.Store(nil) }}
	w.begin()
	w.end()
	r.refresh(ctx, lasts.Load)
	if len(shown) > 0 {
		t.Errorf("a wait that is over is shown: %s", <-shown)
	}
}
