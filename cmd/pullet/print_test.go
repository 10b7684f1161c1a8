package main

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/state"
)

func TestAgo(t *testing.T) {
	now := time.Now()
	for ago0, want := range map[time.Duration]string{
		5 * time.Second: "5s", 90 * time.Second: "1m", 3 * time.Hour: "3h", 72 * time.Hour: "3d",
		-time.Second: "0s", -24 * time.Hour: "0s", -10000 * time.Hour: "0s",
	} {
		if got := ago(now.Add(-ago0)); got != want {
			t.Errorf("%s ago: %q, want %q", ago0, got, want)
		}
	}
	if got := ago(time.Time{}); got != "-" {
		t.Errorf("never: %q", got)
	}
}

// TestStatusOfForeignClocks: nodes whose clocks are a day off, either way, are shown without times that make no sense.
func TestStatusOfForeignClocks(t *testing.T) {
	o := &state.Overview{
		Current: &state.Version{ID: "0123456789abcdef", By: "ahead", At: time.Now().Add(24 * time.Hour), Held: true, Until: time.Now().Add(-time.Hour)},
		Held:    true,
		Nodes:   map[string]state.Node{}, Alive: map[string]bool{"ahead": true, "behind": true}, Running: map[string]string{},
		Statuses: map[string]map[string]state.StatusLine{},
	}
	for name, off := range map[string]time.Duration{"ahead": 24 * time.Hour, "behind": -24 * time.Hour, "lost": 24 * time.Hour} {
		at := time.Now().Add(off)
		o.Nodes[name], o.Running[name] = state.Node{Name: name, FirstSeen: at, LastSeen: at}, o.Current.ID
		o.Statuses[name] = map[string]state.StatusLine{state.Rollout: {State: state.Success, Status: state.Status{Version: o.Current.ID, Time: at}}}
	}
	var out strings.Builder
	viewOf(o).print(&out)
	for _, want := range []string{`set by ahead 0s ago, held there until`, `(?m)^ahead +- +\S+ +ok +0s`, `(?m)^behind +- +\S+ +ok +24h`, `(?m)^lost +- +\S+ +lost +0s`,
		`(?m)^clocks: ahead, lost seen in the future: their clocks are ahead, or this one is behind; pullet doctor$`} {
		if !regexp.MustCompile(want).MatchString(out.String()) {
			t.Errorf("there is no %s in\n%s", want, &out)
		}
	}
	if regexp.MustCompile(`-[0-9]+[smhd]\b`).MatchString(out.String()) {
		t.Errorf("a time is negative:\n%s", &out)
	}
}

// TestCountsWhenTheClockIsSet: how long a run took does not come from a clock that was set meanwhile.
func TestCountsWhenTheClockIsSet(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	r := &apply.Report{Started: at, Ended: at.Add(-24 * time.Hour), Seconds: 1.25, Counts: map[apply.Outcome]int{apply.OK: 2}}
	if got := counts(r); got != "0 changed, 2 unchanged in 1.25s" {
		t.Errorf("%q", got)
	}
}

// TestStepsForgeNoLines: no line of a step's texts can be taken for a line of its own.
func TestStepsForgeNoLines(t *testing.T) {
	const bad = "x\n! failed   a/forged: y\r\u2028"
	var out strings.Builder
	printStep(&out, &apply.StepReport{Job: "a", Step: bad, Outcome: apply.Changed, Summary: bad}, false)
	printStep(&out, &apply.StepReport{Job: "a", Step: "it", Item: bad, Outcome: apply.Failed, Reason: bad}, false)
	printLeftovers(&out, []apply.Leftover{{ID: bad, Job: bad, Why: "nobody knows"}, {ID: bad, Held: true}, {ID: bad, Held: true}})
	if strings.Contains(out.String(), "\n! failed   a/forged") {
		t.Errorf("a line is forged:\n%s", &out)
	}
}
