package state

import (
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// TestHoldEndsByEtcdsClock: how long a version is held is counted by etcd: neither the clock of who set it nor that of
// who looks ends it.
func TestHoldEndsByEtcdsClock(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir())
	propose(t, s, "v1")
	propose(t, s, "v2")
	current, rev, err := s.Versions.Current(ctx)
	must(t, err)
	set, err := s.Versions.Undo(ctx, current, rev, "ada", "", time.Hour)
	must(t, err)
	shown := func(want bool) {
		t.Helper()
		if o, err := s.Views.Fleet(ctx, false); err != nil || o.Held != want {
			t.Errorf("shown as held: %v, %v", o.Held, err)
		}
	}
	shown(true)
	for _, until := range []time.Duration{-24 * time.Hour, 24 * time.Hour} {
		set.Until = time.Now().Add(until) // as a clock that is a day off has it
		if held, err := s.Versions.Holds(ctx, set); !held || err != nil {
			t.Errorf("%s: %v %v", until, held, err)
		}
	}
	end(t, s, s.key("hold", set.Hold))
	if held, err := s.Versions.Holds(ctx, set); held || err != nil {
		t.Errorf("the time is over: %v %v", held, err)
	}
	shown(false)
	if _, held, err := s.Versions.Follow(ctx); held || err != nil {
		t.Errorf("it holds for nobody: %v %v", held, err)
	}
	if held, err := s.Versions.Holds(ctx, &Version{ID: "v3", Held: true}); !held || err != nil {
		t.Errorf("for good: %v %v", held, err)
	}
}

// TestCommandEndsByEtcdsClock: whether nodes may begin with a command, too.
func TestCommandEndsByEtcdsClock(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir())
	open := func() bool {
		all, _, err := s.Commands.List(ctx)
		must(t, err)
		return all[0].Open
	}
	at := time.Now().Add(-24 * time.Hour)
	must(t, s.Commands.Give(ctx, Command{ID: "c", At: at, Until: at.Add(time.Hour)}))
	if !open() {
		t.Error("it was given just now, by a clock that is a day behind")
	}
	end(t, s, s.Commands.openKey("c"))
	if open() {
		t.Error("its hour is over")
	}
}

// TestFreezeAway: a node that cannot ask etcd counts the time of a freeze from when it learned of it, whatever the
// clocks say.
func TestFreezeAway(t *testing.T) {
	for _, off := range []time.Duration{-24 * time.Hour, 24 * time.Hour} {
		at := time.Now().Add(off) // by the clock of who set it
		f := NewFreeze(Switch{AllChanges: true, At: at, Until: at.Add(time.Hour)}, GlobalScope(), "this boot")
		f.Seen = f.Seen.Add(off) // as this host's clock was
		if f.Ended("this boot") {
			t.Errorf("%s: it was set for an hour, just now", off)
		}
		f.Up -= 2 * time.Hour
		if !f.Ended("this boot") {
			t.Errorf("%s: its hour is over", off)
		}
		f.Until = time.Time{}
		if f.Ended("this boot") || f.Ended("another boot") {
			t.Errorf("%s: it has no end", off)
		}
	}
}

// end ends the lease of a key, as time does.
func end(t *testing.T, s *Store, key string) {
	t.Helper()
	got, err := s.Client.Get(ctx, key)
	must(t, err)
	if len(got.Kvs) != 1 {
		t.Fatalf("%d keys %s", len(got.Kvs), key)
	}
	_, err = s.Client.Revoke(ctx, clientv3.LeaseID(got.Kvs[0].Lease))
	must(t, err)
}

// TestSincePull: within a boot a clock that was set does not make the gap between two pulls, and with it the lease,
// longer or shorter.
func TestSincePull(t *testing.T) {
	for _, off := range []time.Duration{-24 * time.Hour, 24 * time.Hour} {
		var l Local
		l.Pulls(time.Now().Add(off), "this boot")
		if gap := l.SincePull("this boot"); gap < 0 || gap > time.Minute {
			t.Errorf("%s: %s", off, gap)
		}
		if gap := l.SincePull("another boot") + off; gap < -time.Minute || gap > time.Minute {
			t.Errorf("%s: %s", off, gap)
		}
	}
}
