package event

import (
	"context"
	"errors"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	logtest "github.com/sirupsen/logrus/hooks/test"

	"github.com/pullet/pullet/state"
)

// TestUnseenFleet: an event whose hosts cannot be looked up is not taken for one about hosts that nobody knows: it
// waits until they can.
func TestUnseenFleet(t *testing.T) {
	store := openStore(t)
	fix := &Reaction{
		Name: "fix", PerHost: true, Limiter: Limiter{Window: time.Hour}, Matches: func(string) bool { return true },
		Hosts: func(about []string) []string { return about },
		Holds: func(context.Context, state.Reacted) (bool, error) { return true, nil },
	}
	r, unseen := reactorOf(store, "web1", fix), os.ErrDeadlineExceeded
	rules := r.Rules
	r.Rules = func(ctx context.Context) (Rules, error) {
		out, err := rules(ctx)
		if unseen != nil {
			out.Find = func(string) (string, bool) { return "", false }
		}
		out.Unseen = func() error { return unseen }
		return out, err
	}
	storm(t, store, 1)
	if err := r.Once(t.Context()); err != unseen {
		t.Fatal(err)
	}
	if waiting, err := store.EventLog.Waiting(t.Context()); len(waiting) != 1 || err != nil {
		t.Fatal(waiting, err)
	}
	unseen = nil
	if err := r.Once(t.Context()); err != nil {
		t.Fatal(err)
	}
	runs, err := store.Reactions.List(t.Context())
	if err != nil || len(runs) != 1 || len(runs[0].Hosts) != 1 || runs[0].Hosts[0] != "web00000" {
		t.Errorf("%+v %v", runs, err)
	}
}

// TestReactorThatCannotWork: it says why once it lets another host, unless it only waits for the fleet's version.
func TestReactorThatCannotWork(t *testing.T) {
	for _, why := range []error{os.ErrPermission, ErrBehind} {
		store := openStore(t)
		storm(t, store, 1)
		r := reactorOf(store, "web1")
		log, hook := logtest.NewNullLogger()
		r.Log, r.patience = logrus.NewEntry(log), time.Nanosecond
		r.Rules = func(context.Context) (Rules, error) { return Rules{}, why }
		if err := r.term(t.Context(), r.work); !errors.Is(err, why) {
			t.Fatal(err)
		}
		var warned []string
		for _, e := range hook.AllEntries() {
			if e.Level == logrus.WarnLevel {
				warned = append(warned, e.Message)
			}
		}
		want := []string{"events wait: this host was the reactor and could not read them"}
		if why == ErrBehind {
			want = nil
		}
		if !slices.Equal(warned, want) {
			t.Errorf("%v: %q, want %q", why, warned, want)
		}
	}
}
