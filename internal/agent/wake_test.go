package agent

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/lock"
	"github.com/pullet/pullet/state"
)

// TestPatience: the first change of a service is answered at once; one that goes on changing takes longer and longer.
func TestPatience(t *testing.T) {
	t.Parallel()
	for eager, want := range map[int]time.Duration{0: 0, 1: time.Second, 2: 2 * time.Second, 5: 16 * time.Second, 100: maxBackoff} {
		if got := (&fleetWatch{eager: eager}).patience(); got != want {
			t.Errorf("after %d: %s, want %s", eager, got, want)
		}
	}
}

// TestSpread: ten thousand agents do not come at once, and few do not wait.
func TestSpread(t *testing.T) {
	t.Parallel()
	if few, many := spread(5), spread(10000); few > 10*time.Millisecond || many != 20*time.Second {
		t.Errorf("five come within %s, ten thousand within %s", few, many)
	}
}

// TestRemember: a pull that ended shows what is read; one that waits may have left some out, and one that saw nothing
// says nothing.
func TestRemember(t *testing.T) {
	t.Parallel()
	done, waiting := &apply.Report{}, &apply.Report{Stopped: "for db"}
	f := &fleetWatch{}
	for _, c := range []struct {
		out   Outcome
		names []string
		at    int64
	}{
		{Outcome{Report: done, asked: []string{"a", "b"}, viewed: 5}, []string{"a", "b"}, 5},
		{Outcome{Report: waiting, asked: []string{"b", "c"}, viewed: 7}, []string{"a", "b", "c"}, 7},
		{Outcome{asked: []string{"d"}, viewed: 8}, []string{"a", "b", "c", "d"}, 8},
		{Outcome{}, []string{"a", "b", "c", "d"}, 8},
		{Outcome{Report: done, asked: []string{"c"}, viewed: 9}, []string{"c"}, 9},
	} {
		f.remember(&c.out)
		if !reflect.DeepEqual(f.names, c.names) || f.viewed != c.at {
			t.Errorf("%v at %d, want %v at %d", f.names, f.viewed, c.names, c.at)
		}
	}
}

// TestCountFleet: the nodes of the fleet are counted at the loop's first pull and then rarely.
func TestCountFleet(t *testing.T) {
	t.Parallel()
	h := newHost(t, job("one", "true"))
	a, err := New(h.Config, "test", h.entry())
	if err != nil {
		t.Fatal(err)
	}
	pull := func(want int) {
		t.Helper()
		if _, err := a.Pull(context.Background(), Options{loop: true, Waiting: func(*lock.Wait) {}}); err != nil {
			t.Fatal(err)
		}
		if a.size.nodes != want {
			t.Errorf("%d nodes, want %d", a.size.nodes, want)
		}
	}
	pull(1)
	other, err := h.OpenStore(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	_, err = other.Presences.Register(context.Background(), state.Node{Name: "web2"}, state.Alive{Owner: "another"}, nil, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	pull(1)
	a.size.counted = a.size.counted.Add(-2 * time.Hour)
	pull(2)
	if err := errors.Join(other.Close(), a.Close()); err != nil {
		t.Fatal(err)
	}
}
