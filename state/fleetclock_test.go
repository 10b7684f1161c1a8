package state

import (
	"testing"
	"time"

	"github.com/pullet/pullet/internal/patience"
)

// TestFleetClock: the clock begins with that of the first host that saves it, and no clock of a later one moves it.
// Only the reactor saves it, on a lease that etcd counts, and leaves no lease behind.
func TestFleetClock(t *testing.T) {
	s := open(t, t.TempDir())
	read := func() FleetTime {
		t.Helper()
		got, err := s.Events.Time(ctx)
		must(t, err)
		return got
	}
	first := read()
	if off := time.Since(first.Now).Abs(); off > time.Minute || first.Saved {
		t.Fatalf("it is %s off; saved: %t", off, first.Saved)
	}
	lease, err := s.Client.Grant(ctx, 60)
	must(t, err)
	since, _, err := s.Events.Lead(ctx, "web1", lease.ID)
	must(t, err)
	save := func(since int64, at FleetTime, want bool) FleetTime {
		t.Helper()
		got, done, err := s.Events.SaveTime(ctx, since, at)
		if must(t, err); done != want {
			t.Errorf("saved: %t, want %t", done, want)
		}
		return got
	}
	save(since+1, first, false)
	for _, off := range []time.Duration{-8 * 24 * time.Hour, 8 * 24 * time.Hour} { // as the fleet's clock is for this host
		at := read()
		at.Now = time.Now().UTC().Add(off)
		save(since, at, true)
		got, slack := read(), patience.Stretch(5*time.Second)
		if late := time.Since(got.Now) + off; late.Abs() > slack || !got.Saved || got.Age > slack {
			t.Errorf("it is %s late, by %s", late, got.Age)
		}
		save(since, at, false) // another process saved it meanwhile
	}
	if leases, err := s.Client.Leases(ctx); err != nil || len(leases.Leases) != 2 {
		t.Errorf("%d leases are left, want those of the clock and of the reactor: %v", len(leases.Leases), err)
	}
	before := read()
	if _, err := s.Client.Revoke(ctx, before.cursor.Clock.Lease); err != nil {
		t.Fatal(err)
	}
	stopped := before.cursor.Clock.At
	if got := read(); got.Saved || !got.Now.Equal(stopped) {
		t.Errorf("without its lease it is at %s, want %s", got.Now, stopped)
	}
	_, err = s.Client.Do(ctx, Put(s.Events.cursorKey(), Cursor{Clock: FleetClock{stopped, lease.ID}}))
	must(t, err)
	if got := read(); got.Saved || !got.Now.Equal(stopped) {
		t.Errorf("with a lease of another kind it is at %s, want %s", got.Now, stopped)
	}
	save(since, read(), true)
	if leases, err := s.Client.Leases(ctx); err != nil || len(leases.Leases) != 2 || !read().Saved {
		t.Errorf("%d leases are left, want those of the clock and of the reactor: %v", len(leases.Leases), err)
	}
}

// TestCountedOnAnyClock: what reactions wait for is shown by the clock of the host that shows it.
func TestCountedOnAnyClock(t *testing.T) {
	s := open(t, t.TempDir())
	lease, err := s.Client.Grant(ctx, 60)
	must(t, err)
	since, _, err := s.Events.Lead(ctx, "web1", lease.ID)
	must(t, err)
	fleet := time.Now().UTC().Add(-8 * 24 * time.Hour)
	_, done, err := s.Events.SaveTime(ctx, since, FleetTime{Now: fleet})
	if must(t, err); !done {
		t.Fatal("it is not the reactor")
	}
	g := Group{Reaction: "a", Event: "x", Tallies: []Tally{{Seen: []Seen{{fleet, 1}}, Next: fleet.Add(time.Hour)}}}
	_, err = s.Client.Txn(ctx).Then(Put(s.Events.groupKey(g), g)).Commit()
	must(t, err)
	got, err := s.EventLog.Counted(ctx)
	must(t, err)
	tally := got[0].Tallies[0]
	if time.Since(tally.Seen[0].At).Abs() > 2*time.Minute || time.Until(tally.Next) < 58*time.Minute || !tally.Reacted.IsZero() {
		t.Errorf("%+v", tally)
	}
}
