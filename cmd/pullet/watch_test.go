package main

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/pullet/pullet/state"
)

// TestWatchOutlastsEtcd: the picture stays while etcd is away, and says how old it is; what cannot be read for good
// ends it.
func TestWatchOutlastsEtcd(t *testing.T) {
	var out, errs strings.Builder
	w := &watch{app: &app{out: &out, err: &errs, output: "table"}, screen: newScreen(&out)}
	away := &state.UnreachableError{Err: errors.New("no answer")}
	if _, err := w.take(reading{err: away}); !errors.Is(err, error(away)) {
		t.Errorf("without a picture: %v", err)
	}
	picture := &fleetStatus{Nodes: []nodeStatus{{Node: "web1", State: upToDate}}}
	for _, r := range []reading{{picture: picture}, {err: away}, {err: away}} {
		if done, err := w.take(r); done || err != nil {
			t.Errorf("%+v: %v %v", r, done, err)
		}
	}
	w.at = time.Now().Add(-3 * time.Minute)
	if foot := lineOfSpans(w.foot()).text; !strings.Contains(foot, ", 3m ago; q ends; ") || !strings.Contains(foot, "no answer") {
		t.Errorf("the foot is %q", foot)
	}
	if w.now == nil || strings.Count(errs.String(), "no answer") != 1 {
		t.Errorf("%v, said %q", w.now, errs.String())
	}
	if _, err := w.take(reading{picture: picture}); err != nil || !strings.HasSuffix(errs.String(), "etcd answers again\n") {
		t.Errorf("%v, said %q", err, errs.String())
	}
	if foot := lineOfSpans(w.foot()).text; !strings.HasSuffix(foot, "; q ends") {
		t.Errorf("the foot is %q", foot)
	}
	if done, err := w.take(reading{err: errors.New("denied")}); !done || err == nil {
		t.Errorf("an error that stays: %v %v", done, err)
	}
}

// TestQuietPoll: how often a record is read is bounded on both sides, and grows with what a reading costs.
func TestQuietPoll(t *testing.T) {
	for took, want := range map[time.Duration]time.Duration{
		0: 15 * time.Second, 100 * time.Millisecond: 30 * time.Second, time.Minute: 2 * time.Minute,
	} {
		if got := quietPoll(took); got != want {
			t.Errorf("a reading that takes %s is made every %s, want %s", took, got, want)
		}
	}
	if got := pauseAfter(time.Minute); got != 30*time.Second {
		t.Errorf("after a minute: %s", got)
	}
}

// TestEstimate: how long the rest takes is said only where that is no guess.
func TestEstimate(t *testing.T) {
	now := time.Now()
	v := func(change func(*rolloutView)) string {
		r := &rolloutView{Version: &state.Version{At: now.Add(-time.Hour)}, State: "running", States: map[string][]nodeStatus{}, status: &fleetStatus{}}
		for i := range 6 {
			r.Upgraded = append(r.Upgraded, nodeStatus{Since: now.Add(-time.Duration(i) * time.Minute)})
		}
		r.status.Nodes = make([]nodeStatus, 16)
		change(r)
		return rolloutPicture{r}.estimate()
	}
	if got := v(func(*rolloutView) {}); got != "; about 9m more at the pace of the last 6 nodes" && got != "; about 10m more at the pace of the last 6 nodes" {
		t.Errorf("%q", got)
	}
	for why, change := range map[string]func(*rolloutView){
		"halted":       func(r *rolloutView) { r.State = state.Halted },
		"few nodes":    func(r *rolloutView) { r.Upgraded = r.Upgraded[:4] },
		"a small part": func(r *rolloutView) { r.status.Nodes = make([]nodeStatus, 100) },
		"somebody":     func(r *rolloutView) { r.States[failed] = make([]nodeStatus, 1) },
		"a window":     func(r *rolloutView) { r.Groups = []rolloutGroup{{State: closed}} },
		"standing": func(r *rolloutView) {
			for i := range r.Upgraded {
				r.Upgraded[i].Since = now.Add(-time.Duration(30+i) * time.Minute)
			}
		},
	} {
		if got := v(change); got != "" {
			t.Errorf("%s: %q", why, got)
		}
	}
}

// TestBars: a bar is as long as it is to be, and a state that one node has is seen among thousands.
func TestBars(t *testing.T) {
	for _, c := range []struct {
		nodes, done int
		behind      map[rune]int
		want        string
	}{
		{4, 4, map[rune]int{}, "##########"},
		{4, 0, map[rune]int{waitSign: 4}, ".........."},
		{4, 1, map[rune]int{workSign: 1, waitSign: 2}, "##>>......"},
		{3, 1, map[rune]int{failedSign: 1, lostSign: 1}, "####!!!???"},
		{10000, 9998, map[rune]int{workSign: 1, failedSign: 1}, "########>!"},
		{0, 0, map[rune]int{}, ""},
	} {
		if got := (rolloutGroup{Nodes: c.nodes, Done: c.done}).bar(c.behind, 10); got != c.want {
			t.Errorf("%d of %d, %v: %q, want %q", c.done, c.nodes, c.behind, got, c.want)
		}
	}
}
