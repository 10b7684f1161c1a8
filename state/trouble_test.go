package state

import "testing"

// TestTroublesOfOthers: a repository that the configuration does not name any more is in no trouble; what the fleet's
// version is refused for stays.
func TestTroublesOfOthers(t *testing.T) {
	var l Local
	for _, repo := range []string{"main", "old", ""} {
		l.Trouble(repo, Trouble{Kind: WaitRefused})
	}
	before := l
	l.OnlyTroubles([]string{"main"})
	if _, old := l.Troubles["old"]; old || len(l.Troubles) != 2 {
		t.Errorf("%v", l.Troubles)
	}
	if len(before.Troubles) != 3 {
		t.Errorf("a copy has changed: %v", before.Troubles)
	}
}
