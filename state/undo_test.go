package state

import (
	"slices"
	"testing"
	"time"
)

// undo goes back to the last good version.
func undo(t *testing.T, s *Store) *Version {
	t.Helper()
	current, rev, err := s.Versions.Current(ctx)
	must(t, err)
	set, err := s.Versions.Undo(ctx, current, rev, "ada", "", 0)
	must(t, err)
	return set
}

// TestUndoOverHalted: who goes back over a version that halted leaves that one, too. Hosts that run it would refuse to
// go back else.
func TestUndoOverHalted(t *testing.T) {
	s := open(t, t.TempDir())
	propose(t, s, "v1")
	propose(t, s, "v2")
	_, _, err := s.Versions.Halt(ctx, "ada", "")
	must(t, err)
	propose(t, s, "v3")
	set := undo(t, s)
	if slices.Sort(set.Bad); set.ID != "v1" || !slices.Equal(set.Bad, []string{"v2", "v3"}) {
		t.Errorf("back to %s, bad are %q", set.ID, set.Bad)
	}
}

// TestUndoPastALaterHalt: a version that halted when it was set again counts as good where its first rollout did not
// halt.
func TestUndoPastALaterHalt(t *testing.T) {
	s := open(t, t.TempDir())
	propose(t, s, "v1")
	propose(t, s, "v2")
	undo(t, s)
	_, _, err := s.Versions.Halt(ctx, "ada", "")
	must(t, err)
	current, rev, err := s.Versions.Current(ctx)
	must(t, err)
	is, err := s.Versions.Propose(ctx, Version{ID: "v3", Previous: current.ID, Bad: current.Bad}, current, rev)
	if !is.Done || err != nil {
		t.Fatal(err)
	}
	if set := undo(t, s); set.ID != "v1" || slices.Contains(set.Bad, "v1") || !slices.Contains(set.Bad, "v3") {
		t.Errorf("back to %s, bad are %q", set.ID, set.Bad)
	}
}

// TestUndoOverForgotten: who goes back in a restored record leaves the versions that nodes run and the record forgot,
// too.
func TestUndoOverForgotten(t *testing.T) {
	s := open(t, t.TempDir())
	propose(t, s, "v1")
	propose(t, s, "v3") // v2 was set before a restore
	for version, node := range map[string]string{"v1": "web1", "v2": "web2"} {
		_, err := s.Client.Put(ctx, s.Statuses.RunningKey(version, node), "2000-01-01T00:00:00Z")
		must(t, err)
	}
	set := undo(t, s)
	if slices.Sort(set.Bad); set.ID != "v1" || !slices.Equal(set.Bad, []string{"v2", "v3"}) {
		t.Errorf("back to %s, bad are %q", set.ID, set.Bad)
	}
}

// TestUndoInDoubt: what nodes say that doubt a restored record counts as well, and a second undo names no version
// twice.
func TestUndoInDoubt(t *testing.T) {
	s := open(t, t.TempDir())
	for _, version := range []string{"v1", "v2", "v4"} { // v3 was set before a restore
		propose(t, s, version)
	}
	back := &WentBackError{Seen: Origin{Revision: 9}, Is: Origin{Revision: 3}}
	must(t, doubt(ctx, s, "web1", back.What(), time.Time{}))
	must(t, s.Doubts.Tell(ctx, "web1", back, &Version{ID: "v3"}, time.Minute))
	undo(t, s)
	if set := undo(t, s); set.ID != "v1" || !slices.Equal(slices.Sorted(slices.Values(set.Bad)), []string{"v2", "v3", "v4"}) {
		t.Errorf("back to %s, bad are %q", set.ID, set.Bad)
	}
}
