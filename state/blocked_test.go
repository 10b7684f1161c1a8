package state

import (
	"testing"
	"time"
)

// TestFollow: a wait is followed through the nodes that it names to one that others cannot end, and ends also where
// nodes wait for each other.
func TestFollow(t *testing.T) {
	window := Status{Version: "v2", Reason: "maintenance window of role db: it is closed", Remedy: InTime("it opens Mon 22:00 UTC")}
	on := func(node string) Status {
		return Status{Version: "v2", Remedy: NoAction(), Holders: []Holder{{Node: node}}}
	}
	behind := func(node string) Status { return Status{Version: "v2", Remedy: NoAction(), Ahead: node} }
	failed := Status{Version: "v2", Kind: WaitSlot, Reason: "slot web: c holds it (failed)", Remedy: Act("fix c"), Holders: []Holder{{Node: "c"}}}
	meet := Status{Version: "v2", Kind: WaitBarrier, Reason: "barrier x", Remedy: Act("start c"), Holders: []Holder{{Node: "c"}}}
	older := window
	older.Version = "v1"
	for name, c := range map[string]struct {
		waits map[string]Status
		want  string
	}{
		"nobody waits":    {nil, ""},
		"at once":         {map[string]Status{"a": window}, "a waits itself for maintenance window of role db: it is closed; it opens Mon 22:00 UTC"},
		"through others":  {map[string]Status{"a": behind("b"), "b": on("c"), "c": window}, "c waits itself for maintenance window of role db: it is closed; it opens Mon 22:00 UTC"},
		"in a circle":     {map[string]Status{"a": on("b"), "b": on("a")}, ""},
		"for an old one":  {map[string]Status{"a": older}, ""},
		"needs no action": {map[string]Status{"a": {Version: "v2", Remedy: NoAction()}}, ""},
		"behind one who waits for a place that stays taken": {map[string]Status{"a": behind("b"), "b": failed}, "b waits itself for slot web: c holds it (failed); fix c"},
		"the holder waits itself":                           {map[string]Status{"a": failed, "c": window}, "c waits itself for maintenance window of role db: it is closed; it opens Mon 22:00 UTC"},
		"behind one who waits for others at a barrier":      {map[string]Status{"a": meet}, ""},
		"behind one alive":                                  {map[string]Status{"a": behind("b")}, ""},
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

// TestIdle: a lease that nobody renews says that no pull is at work. Each lease says when it ends, and what is to do
// then.
func TestIdle(t *testing.T) {
	now := time.Date(2026, 1, 2, 12, 0, 0, 0, time.Local)
	for name, c := range map[string]struct {
		lease LeaseTimes
		frees bool
		want  string
		ends  Ends
	}{
		"renewed 20 s ago": {LeaseTimes{20 * time.Second, 70 * time.Second}, false,
			"|no action needed; if no pull of web1 is at work, it counts as lost from 12:01:10: then start web1 again, or give it up: pullet decommission web1", EndsItself},
		"renewed 20 s ago, and places of lost nodes are freed": {LeaseTimes{20 * time.Second, 70 * time.Second}, true,
			"|no action needed; if no pull of web1 is at work, it counts as lost from 12:01:10: then its place is freed", EndsItself},
		"renewed a minute ago": {LeaseTimes{time.Minute, 14 * time.Minute}, false,
			"no pull of web1 is at work since 11:59:00|its next pull goes on, or it counts as lost from 12:14:00: then start web1 again, or give it up: pullet decommission web1", EndsInTime},
	} {
		b := idle("web1", now, c.lease, c.frees)
		if got := b.Why + "|" + b.Clear; got != c.want || b.Ends != c.ends {
			t.Errorf("%s: got  %s (%s)\nwant %s (%s)", name, got, b.Ends, c.want, c.ends)
		}
	}
}

// TestIdleOf: of several holders the one is named where no pull is at work; one whose lease ended just now is not.
func TestIdleOf(t *testing.T) {
	st := Status{Holders: []Holder{{Node: "gone"}, {Node: "busy"}, {Node: "killed"}, {Node: "unknown"}}}
	times := map[string]LeaseTimes{"gone": {Left: -time.Second}, "busy": {Left: time.Minute}}
	if b := idleOf(st, time.Now(), times); b == nil || b.Node != "busy" || b.Why != "" {
		t.Errorf("one is at work: %+v", b)
	}
	times["killed"] = LeaseTimes{Age: time.Minute, Left: time.Minute}
	if b := idleOf(st, time.Now(), times); b == nil || b.Node != "killed" || b.Why == "" {
		t.Errorf("one was killed: %+v", b)
	}
	if b := idleOf(Status{Holders: st.Holders[:1]}, time.Now(), times); b != nil {
		t.Errorf("the lease ended: %+v", b)
	}
}
