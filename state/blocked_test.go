package state

import (
	"testing"
	"time"
)

// TestFollow: a wait is followed through the nodes that it names to one that others cannot end, and ends also where nodes wait for each other.
func TestFollow(t *testing.T) {
	window := Status{Version: "v2", Reason: "maintenance window of role db: it is closed", Clear: "it opens Mon 22:00 UTC"}
	on := func(node string) Status {
		return Status{Version: "v2", Clear: NoAction, Holders: []Holder{{Node: node}}}
	}
	behind := func(node string) Status { return Status{Version: "v2", Clear: NoAction, Ahead: node} }
	older := window
	older.Version = "v1"
	for name, c := range map[string]struct {
		waits map[string]Status
		want  string
	}{
		"nobody waits":     {nil, ""},
		"at once":          {map[string]Status{"a": window}, "a waits itself for maintenance window of role db: it is closed; it opens Mon 22:00 UTC"},
		"through others":   {map[string]Status{"a": behind("b"), "b": on("c"), "c": window}, "c waits itself for maintenance window of role db: it is closed; it opens Mon 22:00 UTC"},
		"in a circle":      {map[string]Status{"a": on("b"), "b": on("a")}, ""},
		"for an old one":   {map[string]Status{"a": older}, ""},
		"needs no action":  {map[string]Status{"a": {Version: "v2", Clear: NoAction}}, ""},
		"behind one alive": {map[string]Status{"a": behind("b")}, ""},
	} {
		b, err := Follow(on("a"), "v2", func(nodes []string) (map[string]Status, error) { return c.waits, nil })
		got := ""
		if b != nil {
			got = b.Why + "; " + b.Clear
		}
		if got != c.want || err != nil {
			t.Errorf("%s: got %q, %v, want %q", name, got, err, c.want)
		}
	}
}

// TestIdle: a lease that nobody renews says that no pull is at work, and when it ends; one that is renewed says nothing.
func TestIdle(t *testing.T) {
	now := time.Date(2026, 1, 2, 12, 0, 0, 0, time.Local)
	if b := idle("web1", now, 90, 70); b != nil {
		t.Errorf("renewed 20 s ago: %v", b)
	}
	if b := idle("web1", now, 90, -1); b != nil {
		t.Errorf("ended: %v", b)
	}
	b := idle("web1", now, 900, 840)
	if b == nil || b.Why != "no pull of web1 is at work since 11:59:00" || b.Clear != "its next pull goes on, or it counts as lost from 12:14:00" {
		t.Errorf("renewed a minute ago: %+v", b)
	}
}
