package event

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pullet/pullet/internal/etcdmodel"
	"github.com/pullet/pullet/state"
)

const day = 24 * time.Hour

// TestWrongClock: the reactor is a host whose clock is days ahead of that of the first reactor, or behind it. Events
// come from hosts whose clocks are wrong. Windows, limits and how long something is kept are the same as ever. People
// see times by the clock of the host that shows them.
func TestWrongClock(t *testing.T) {
	for _, off := range []time.Duration{0, -8 * day, 8 * day} {
		t.Run(off.String(), func(t *testing.T) {
			inVirtualTime(t, off, func(t *testing.T, f *oldFleet) {
				a := reaction("a", "x", false)
				a.Limiter.MinOccurrences, a.Limiter.Window, a.Limiter.Delay = 2, time.Hour, 2*time.Hour
				r := reactorOf(f.Store, "web1", a)
				runs := func(want int, then string) {
					t.Helper()
					if err := r.Once(t.Context()); err != nil {
						t.Fatal(err)
					}
					if got := f.runs(); len(got) != want {
						t.Fatalf("%d runs, want %d: %s", len(got), want, then)
					}
				}
				f.tell(-2 * time.Hour)
				runs(0, "one of two")
				time.Sleep(50 * time.Minute)
				f.tell(2 * day)
				runs(1, "two within the window")
				run := f.runs()[0]
				if run.Event.Occurrences != 2 || time.Until(run.At).Abs() > time.Minute {
					t.Errorf("%d occurrences, given %s ago", run.Event.Occurrences, time.Since(run.At))
				}
				f.end(run)
				f.tell(-2 * time.Hour)
				f.tell(-2 * time.Hour)
				runs(1, "it was started lately")
				g, err := f.EventLog.Counted(t.Context())
				if err != nil || time.Until(g[0].Tallies[0].Next).Round(time.Minute) != 2*time.Hour {
					t.Errorf("%+v %v", g, err)
				}
				time.Sleep(2*time.Hour + time.Second)
				runs(2, "it is not limited any more")
				f.tell(0)
				runs(2, "one of two")
				time.Sleep(time.Hour + time.Second)
				f.tell(0)
				runs(2, "one within the window")

				f.end(f.runs()[1])
				since := f.lead("web1")
				kept := func(runs, pages int) {
					t.Helper()
					if err := r.tidy(t.Context(), since); err != nil {
						t.Fatal(err)
					}
					log, err := f.EventLog.Newest(t.Context(), 0, 100)
					if got := f.runs(); err != nil || len(got) != runs || len(log) != pages {
						t.Errorf("%d runs and %d pages are kept, want %d and %d: %v", len(got), len(log), runs, pages, err)
					}
				}
				kept(2, 5)
				time.Sleep(state.KeptEvents - 3*time.Hour)
				kept(1, 2)
				time.Sleep(3 * time.Hour)
				kept(0, 0)
			})
		})
	}
}

// TestClockOfTheFleet: the clock continues while no host is the reactor, and through a term of any length. A reactor
// saves it again and again: if etcd changes its leader, and counts leases from the start, little is lost.
func TestClockOfTheFleet(t *testing.T) {
	inVirtualTime(t, -8*day, func(t *testing.T, f *oldFleet) {
		r := reactorOf(f.Store, "web1")
		time.Sleep(30 * day)
		since := f.lead("web1")
		for range 10 {
			now, err := r.readClock(t.Context(), since)
			if off := now.Sub(time.Now().Add(-8 * day)); err != nil || off.Abs() > 2*time.Second {
				t.Errorf("it is %s off: %v", off, err)
			}
			if on, err := f.Events.Time(t.Context()); err != nil || on.Age > saveClock {
				t.Errorf("it was saved %s ago: %v", on.Age, err)
			}
			time.Sleep(saveClock * 2 / 3)
		}
		time.Sleep(saveClock)
		f.lead("web2")
		if _, err := r.readClock(t.Context(), since); err != errNotReactor {
			t.Error(err)
		}
	})
}

// oldFleet is a fleet in virtual time whose clock was begun by a host whose own clock was off.
type oldFleet struct {
	*state.Store
	t    *testing.T
	told int
}

// inVirtualTime runs a test in a bubble, over the model of etcd.
func inVirtualTime(t *testing.T, off time.Duration, do func(t *testing.T, f *oldFleet)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c := etcdmodel.New(rand.New(rand.NewPCG(1, 1)))
		defer c.Close()
		began := time.Now()
		store := state.Over(c.Connect("web1").Client(), "f", func() time.Duration { return time.Since(began) })
		f := &oldFleet{t: t, Store: store}
		first := state.FleetTime{Now: time.Now().UTC().Add(off)}
		if _, done, err := f.Events.SaveTime(t.Context(), f.lead("web9"), first); err != nil || !done {
			t.Fatal(done, err)
		}
		f.vacant()
		do(t, f)
	})
}

// vacant ends the time of the reactor.
func (f *oldFleet) vacant() {
	f.t.Helper()
	if _, err := f.Client.Delete(f.t.Context(), "/pullet/f/reactor/leader"); err != nil {
		f.t.Fatal(err)
	}
}

// lead makes a host the reactor, after the one before it.
func (f *oldFleet) lead(node string) (since int64) {
	f.t.Helper()
	f.vacant()
	lease, err := f.Client.Grant(f.t.Context(), 10*int64(state.KeptEvents.Seconds()))
	if err != nil {
		f.t.Fatal(err)
	}
	if since, _, err = f.Events.Lead(f.t.Context(), node, lease.ID); err != nil || since == 0 {
		f.t.Fatal(since, err)
	}
	return since
}

// tell has a host tell an event whose clock is off.
func (f *oldFleet) tell(off time.Duration) {
	f.t.Helper()
	f.told++
	e := state.Event{ID: fmt.Sprint("e", f.told), Name: "x", By: "web2", Time: time.Now().UTC().Add(off)}
	if n, err := f.Events.Tell(f.t.Context(), e.By, []state.Event{e}, 0); n != 1 || err != nil {
		f.t.Fatal(n, err)
	}
}

func (f *oldFleet) runs() []state.ReactionStatus {
	f.t.Helper()
	out, err := f.Reactions.List(f.t.Context())
	if err != nil {
		f.t.Fatal(err)
	}
	return out
}

// end ends a run on all of its hosts.
func (f *oldFleet) end(run state.ReactionStatus) {
	f.t.Helper()
	for _, host := range run.Hosts {
		done := state.ReactionResult{Node: host, State: state.ReactionDone}
		if _, err := f.Client.Txn(f.t.Context()).Then(f.Reactions.EndOps(run.ID, done)...).Commit(); err != nil {
			f.t.Fatal(err)
		}
	}
	if err := f.Reactions.Ended(f.t.Context(), run.ReactionRun); err != nil {
		f.t.Fatal(err)
	}
}
