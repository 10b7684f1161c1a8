package state

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"
)

// TestDigestFits: a digest takes a kilobyte at most, whatever a step printed, and keeps the head of it as text.
func TestDigestFits(t *testing.T) {
	for name, text := range map[string]string{
		"short": "site/motd (jobs/site.yaml:2:3): exit code 7", "long": "head " + strings.Repeat("x", 1<<20), "control characters": "head " + strings.Repeat("\x1b<", 1<<16),
		"no text": "head " + strings.Repeat("\xff\xfe", 1<<16), "wide": "head " + strings.Repeat("日本語", 1<<16),
	} {
		d := Digest{Counts: map[string]int{"ok": 1 << 30, "changed": 1 << 30, "failed": 1 << 30, "skipped": 1 << 30, "unmet": 1 << 30, "pending": 1 << 30}, Failed: text, Seconds: 12345.678901}
		data, err := json.Marshal(d.Fit())
		var back Digest
		must(t, err, json.Unmarshal(data, &back))
		whole := len(text) < 100
		if len(data) > 1024 || !strings.HasPrefix(back.Failed, text[:5]) || whole != (back.Failed == text) || !whole && !strings.HasSuffix(back.Failed, "...") || len(back.Counts) != 6 {
			t.Errorf("%s: %d bytes, %.200q", name, len(data), back.Failed)
		}
	}
}

// statusOf is what the record says of a node in a category.
func statusOf(t *testing.T, s *Store, node, category string) StatusLine {
	t.Helper()
	o, err := s.Views.Fleet(ctx, false)
	must(t, err)
	return o.Statuses[node][category]
}

// TestProvisioned: a node that pulls is provisioned, unless something else said how far it is; who comes back is so
// again.
func TestProvisioned(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir())
	register(t, s, "n1", "web", "x", time.Minute)
	first := statusOf(t, s, "n1", Provisioned)
	if first.State != Success || first.Reason == "" || first.Time.IsZero() {
		t.Errorf("%+v", first)
	}
	register(t, s, "n1", "web", "x", time.Minute)
	if got := statusOf(t, s, "n1", Provisioned); !got.Time.Equal(first.Time) {
		t.Errorf("the time moved with a later pull: %s, %s", first.Time, got.Time)
	}
	must(t, s.Statuses.Set(ctx, "n1", Provisioned, Failed, Status{Reason: "cloud-init"}))
	register(t, s, "n1", "web", "x", time.Minute)
	if got := statusOf(t, s, "n1", Provisioned); got.State != Failed {
		t.Errorf("%+v", got)
	}
	_, err := s.Nodes.Decommission(ctx, "n1", "x", true)
	must(t, err)
	if got := statusOf(t, s, "n1", Provisioned); got.State != "" {
		t.Errorf("a decommissioned node is %+v", got)
	}
	register(t, s, "n1", "web", "x", time.Minute)
	if got := statusOf(t, s, "n1", Provisioned); got.State != Success {
		t.Errorf("%+v", got)
	}
}

// TestBeginRun: a run is seen, a failure stands until a run ended otherwise, and a host that lost the name says
// nothing.
func TestBeginRun(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir())
	old := register(t, s, "n1", "web", "x", time.Minute)
	p := register(t, s, "n1", "web", "x", time.Minute)
	for _, c := range []struct {
		p        *Presence
		was, now string
	}{{p, Success, Running}, {p, Pending, Running}, {p, Running, Running}, {p, Failed, Failed}, {old, Success, Success}, {old, Pending, Pending}} {
		must(t, s.Statuses.Set(ctx, "n1", Configured, c.was, Status{Run: "before"}), s.Statuses.BeginRun(ctx, c.p, Status{Run: "r"}))
		if got := statusOf(t, s, "n1", Configured); got.State != c.now || (got.Run == "r") != (c.now == Running) {
			t.Errorf("%s became %+v, want %s", c.was, got, c.now)
		}
	}
	if err := s.Statuses.Tell(ctx, old, s.Statuses.Ops("n1", Configured, Failed, Status{Reason: "x"})...); !errors.Is(err, ErrLeaseLost) {
		t.Errorf("another host has the name: %v", err)
	}
	if got := statusOf(t, s, "n1", Configured); got.State != Pending {
		t.Errorf("another host has the name: %+v", got)
	}
	must(t, s.Statuses.Tell(ctx, p, s.Statuses.Ops("n1", Configured, Failed, Status{Reason: strings.Repeat("x", 1<<20)})...))
	if got := statusOf(t, s, "n1", Configured); got.State != Failed || len(got.Reason) != maxReason {
		t.Errorf("%.100v", got)
	}
}

// TestLinkLog: the link stands where the run is the last word, and nowhere else.
func TestLinkLog(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir())
	for _, c := range []struct{ node, category, state, run string }{
		{"n1", Configured, Failed, "r1"}, {"n1", Rollout, Failed, "r1"}, {"n1", Validated, Pending, "r2"}, {"n2", Configured, Failed, "r1"},
	} {
		must(t, s.Statuses.Set(ctx, c.node, c.category, c.state, Status{Run: c.run, Reason: "why", Digest: &Digest{Seconds: 1}}))
	}
	must(t, s.Statuses.LinkLog(ctx, "n1", "r1", "https://logs/1"), s.Statuses.LinkLog(ctx, "n1", "r0", "https://logs/0"), s.Statuses.LinkLog(ctx, "nobody", "r1", "https://logs/1"))
	for _, c := range []struct{ node, category, want string }{
		{"n1", Configured, "https://logs/1"}, {"n1", Rollout, "https://logs/1"}, {"n1", Validated, ""}, {"n2", Configured, ""},
	} {
		if got := statusOf(t, s, c.node, c.category); got.Log != c.want || got.Reason != "why" || got.Digest == nil {
			t.Errorf("%s %s: %+v", c.node, c.category, got)
		}
	}
}
