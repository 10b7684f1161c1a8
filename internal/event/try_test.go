package event

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/pullet/pullet/state"
)

// TestTry: what would come of an event, reaction by reaction. What is on the desk stays as it is.
func TestTry(t *testing.T) {
	later := reaction("later", "x", false)
	later.Limiter.Timeout, later.Limiter.Max = time.Minute, time.Hour
	often := reaction("often", "x", true)
	often.Limiter.MinOccurrences = 3
	never := reaction("never", "x", false)
	never.Holds = func(context.Context, state.Reacted) (bool, error) { return false, nil }
	d := desk(reaction("all", "*", false), reaction("each", "x", true), later, often, never, reaction("held", "x", false),
		reaction("busy", "x", true), reaction("other", "y", false))
	d.In.Paused["held"] = state.PausedReaction{By: "ada"}
	d.In.Busy["busy"] = map[string]bool{"web3": true}
	d.In.Groups = []state.Group{{Reaction: "often", Event: "x", Tallies: []state.Tally{{Host: "web3", Seen: []state.Seen{{At: d.Now, N: 1}}}}}}
	d.tells("y", "web1", nil) // that waits, and is no matter here
	before := fmt.Sprintf("%+v", *d.In)
	tries := func(e state.Event) (lines []string) {
		for _, one := range d.Try(t.Context(), e) {
			line := fmt.Sprintf("%s %v %v %d %s", one.Reaction, one.Starts, one.Hosts, one.Occurrences, one.Why)
			if !one.Next.IsZero() {
				line += fmt.Sprintf(" %s", one.Next.Sub(d.Now))
			}
			lines = append(lines, line)
		}
		return lines
	}
	e := state.Event{ID: "new", Name: "x", By: "web1", Time: d.Now, Hosts: []string{"web3"}, Dedupe: "d"}
	want := []string{
		"all true [web1 web2] 1 ", "each true [web3] 1 ", "busy false [] 0 its last run is not over 30s",
		"held false [] 0 paused by ada 30s", "later false [] 0 it waits for more occurrences 1m0s",
		"never false [] 0 its condition does not hold 30s", "often false [] 0 it occurred too rarely 1h0m0s",
	}
	if got := tries(e); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if after := fmt.Sprintf("%+v", *d.In); !reflect.DeepEqual(before, after) {
		t.Errorf("the desk is another one:\n%s\n%s", before, after)
	}
	d.In.Told[state.TellsOf(e)] = d.Now
	if got := tries(e); len(got) != 7 || got[0] != "all false [] 0 it was told before, by its dedupe, and counts for nothing" {
		t.Errorf("%q", got)
	}
	e.Hosts, e.Dedupe = []string{"db1"}, ""
	if got := tries(e); got[1] != "busy true [] 1 the event is about hosts that the fleet does not have: db1" {
		t.Errorf("%q", got)
	}
	if got := tries(state.Event{ID: "new", Name: "z", By: "web1", Time: d.Now}); !slices.Equal(got, []string{"all true [web1 web2] 1 "}) {
		t.Errorf("%q", got)
	}
	e.Chain = []state.Cause{{Run: "r", Reaction: "all"}}
	if got := tries(e); !slices.Contains(got, "all false [] 0 it does not count the event: a reaction of its own chain caused it, or too many do") {
		t.Errorf("%q", got)
	}
}
