package agent

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/pullet/pullet/internal/event/webhook"
	"github.com/pullet/pullet/puller"
	"github.com/pullet/pullet/render"
	"github.com/pullet/pullet/state"
)

// TestFollowsRef: which pushes concern a host.
func TestFollowsRef(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		source puller.Source
		ref    string
		want   bool
	}{
		{puller.Source{}, "refs/heads/main", true},
		{puller.Source{}, "refs/heads/master", false},
		{puller.Source{}, "refs/tags/main", false},
		{puller.Source{Ref: "a/b"}, "refs/heads/a/b", true},
		{puller.Source{Ref: "a"}, "refs/heads/main", false},
		{puller.Source{Tag: "v*"}, "refs/tags/v1", true},
		{puller.Source{Tag: "v*"}, "refs/tags/w1", false},
		{puller.Source{Tag: "v*"}, "refs/heads/v1", false},
		{puller.Source{Semver: ">1"}, "refs/tags/v1", true},
		{puller.Source{Semver: ">1"}, "refs/heads/main", false},
	} {
		if got := follows(c.source, c.ref); got != c.want {
			t.Errorf("%+v %s: %t", c.source, c.ref, got)
		}
	}
}

// searched is what happens to a search: what is announced, and what a repository has then.
type searched struct {
	at       time.Duration // since the beginning
	rev      int64
	commit   string
	head     string
	hears, n time.Duration // until it is heard, until the next look
}

// TestSearch: a commit is looked for after 2s, 4s, 8s and so on, until it or another one is there, or for five minutes.
// Whoever announces others without end costs no more than that.
func TestSearch(t *testing.T) {
	t.Parallel()
	const s, most = time.Second, time.Minute
	for name, steps := range map[string][]searched{
		"there at once":  {{0, 1, "b", "b", 0, 0}, {s, 1, "b", "b", 0, 0}},
		"there later":    {{0, 1, "b", "a", 0, 2 * s}, {2 * s, 1, "b", "a", 0, 4 * s}, {6 * s, 1, "b", "", 0, 8 * s}, {14 * s, 1, "b", "b", 0, 0}, {15 * s, 1, "b", "a", 0, 0}},
		"another came":   {{0, 1, "b", "a", 0, 2 * s}, {2 * s, 1, "b", "c", 0, 0}},
		"not asked":      {{0, 1, "b", "", 0, 2 * s}, {2 * s, 1, "b", "a", 0, 4 * s}, {6 * s, 1, "b", "c", 0, 0}},
		"never":          {{0, 1, "b", "a", 0, 2 * s}, {100 * s, 1, "b", "a", 0, 4 * s}, {300 * s, 1, "b", "a", 0, 8 * s}, {301 * s, 1, "b", "a", 0, 0}, {302 * s, 1, "b", "a", 0, 0}},
		"at the most":    {{0, 1, "b", "a", 0, 2 * s}, {1, 1, "b", "a", 0, 4 * s}, {2, 1, "b", "a", 0, 8 * s}, {3, 1, "b", "a", 0, 16 * s}, {4, 1, "b", "a", 0, 32 * s}, {5, 1, "b", "a", 0, most}, {6, 1, "b", "a", 0, most}},
		"too often":      {{0, 1, "b", "b", 0, 0}, {3 * s, 2, "c", "b", 7 * s, 0}, {10 * s, 2, "c", "b", 0, 2 * s}, {12 * s, 3, "d", "b", 8 * s, 4 * s}},
		"without end":    {{0, 1, "b", "a", 0, 2 * s}, {10 * s, 2, "c", "a", 0, 4 * s}, {20 * s, 3, "d", "a", 0, 8 * s}, {30 * s, 4, "e", "a", 0, 16 * s}, {320 * s, 4, "e", "a", 0, 32 * s}, {331 * s, 4, "e", "a", 0, 0}},
		"after a search": {{0, 1, "b", "a", 0, 2 * s}, {301 * s, 1, "b", "a", 0, 0}, {302 * s, 2, "c", "a", 0, 2 * s}},
	} {
		one, began := &search{}, time.Now()
		for i, step := range steps {
			now := began.Add(step.at)
			hears := one.hear(state.Announced{Commit: step.commit, Rev: step.rev, At: now}, step.head, now)
			if n := one.again(step.head, now, most); hears != step.hears || n != step.n || one.waits != (hears > 0) {
				t.Errorf("%s, %d: heard in %s, again in %s, want %+v", name, i, hears, n, step)
			}
		}
	}
	for _, off := range []time.Duration{-searchTime - s, searchTime + s} {
		one := &search{}
		if hears, n := one.hear(state.Announced{Commit: "b", Rev: 1, At: time.Now().Add(off)}, "a", time.Now()), one.again("a", time.Now(), most); hears != 0 || n != 0 {
			t.Errorf("%s: %s %s", off, hears, n)
		}
	}
}

// TestAnnouncedLater: an agent looks for a commit that was announced, and again after a while when its repository does
// not have it, long before its next pull is due.
func TestAnnouncedLater(t *testing.T) {
	t.Parallel()
	h := newHost(t, job("one", "true"))
	l := h.loop()
	l.pulled("the start")
	announced := state.Announced{Ref: "refs/heads/main", Commit: strings.Repeat("ab", 20), At: time.Now()}
	if err := h.open().Bells.Announce(t.Context(), "main", announced); err != nil {
		t.Fatal(err)
	}
	l.pulled("an announcement")
	for _, least := range []time.Duration{2 * time.Second, 4 * time.Second} {
		began := time.Now()
		if l.pulled("a pause"); time.Since(began) < least-time.Second {
			t.Errorf("after %s", time.Since(began))
		}
	}
}

// TestAnnounce: a push is told to the fleet where its hosts follow the ref, and nowhere else. While the fleet's record
// is not there, the sender has to come again.
func TestAnnounce(t *testing.T) {
	t.Parallel()
	h := newHost(t, job("one", "true"))
	a, err := New(h.Config, "test", h.entry())
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	commit := strings.Repeat("ab", 20)
	if err := a.announce(t.Context(), webhook.Push{Repository: "main", Ref: "refs/heads/main", Commit: commit}); err == nil || err.Error() != "the fleet's record is not reached now" {
		t.Error(err)
	}
	s, err := a.connection.open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, push := range []webhook.Push{{Repository: "main", Ref: "refs/heads/other", Commit: commit}, {Repository: "site", Ref: "refs/heads/main", Commit: commit}} {
		if err := a.announce(t.Context(), push); err != nil {
			t.Error(err)
		}
	}
	if all, err := s.Bells.Announced(t.Context(), []string{"main", "site"}); err != nil || len(all) > 0 {
		t.Errorf("%+v %v", all, err)
	}
	if err := a.announce(t.Context(), webhook.Push{Repository: "main", Ref: "refs/heads/main", Commit: commit}); err != nil {
		t.Error(err)
	}
	if all, err := s.Bells.Announced(t.Context(), []string{"main"}); err != nil || all["main"].Commit != commit {
		t.Errorf("%+v %v", all, err)
	}
	if next := a.searches.after(t.Context(), &Outcome{}, false); next != 0 {
		t.Errorf("nobody woke it: %s", next)
	}
	a.config.Agent.Interval = render.Duration(time.Hour)
	if next := a.searches.after(t.Context(), &Outcome{}, true); next != searchFirst {
		t.Errorf("%s", next)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if next := a.searches.after(gone, &Outcome{}, false); next != 2*searchFirst { // etcd does not answer
		t.Errorf("%s", next)
	}
	if next := a.searches.after(t.Context(), &Outcome{own: []puller.Head{{Repo: "main", Commit: commit}}}, false); next != 0 || a.searches.on() {
		t.Errorf("%s", next)
	}
}
