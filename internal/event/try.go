package event

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/pullet/pullet/state"
)

// Trial is what would come of an event for a reaction that answers its name.
type Trial struct {
	Reaction    string    `json:"reaction"`
	Starts      bool      `json:"starts"`
	Hosts       []string  `json:"hosts,omitempty"`       // that would run it
	Occurrences int       `json:"occurrences,omitempty"` // that it would answer
	Why         string    `json:"why,omitempty"`         // it would not start, or no host would do anything
	Next        time.Time `json:"next,omitzero"`         // when it would be looked at again, by the clock of this host
}

// Try says what would come of an event if it were the next one that the reactor reads, for each reaction that answers
// its name. Nothing is written.
func (d Desk) Try(ctx context.Context, e state.Event) (out []Trial) {
	in := *d.In
	in.Events = []state.Sent{{Event: e}}
	d.In = &in
	entry, _ := d.Step(ctx)
	for _, r := range d.Reactions {
		if r.Matches(e.Name) {
			out = append(out, tried(r, e, entry, d.Ahead))
		}
	}
	slices.SortStableFunc(out, func(a, b Trial) int { // those that start first
		if a.Starts == b.Starts {
			return strings.Compare(a.Reaction, b.Reaction)
		}
		return map[bool]int{true: -1, false: 1}[a.Starts]
	})
	return out
}

// tried is what a step says of one reaction, with times by a clock that is ahead of the fleet's.
func tried(r *Reaction, e state.Event, entry state.Entry, ahead time.Duration) Trial {
	t := Trial{Reaction: r.Name}
	for _, run := range entry.Runs {
		if run.Reaction == r.Name && run.Event.Name == e.Name {
			t.Starts, t.Hosts, t.Occurrences, t.Why = true, run.Hosts, run.Event.Occurrences, run.Why
			return t
		}
	}
	t.Why = "it does not count the event: a reaction of its own chain caused it, or too many do"
	if slices.ContainsFunc(entry.Page, func(h state.Happened) bool { return h.Again }) {
		t.Why = "it was told before, by its dedupe, and counts for nothing"
	}
	for _, g := range entry.Groups {
		if g.Reaction != r.Name || g.Event != e.Name {
			continue
		}
		for _, tally := range g.Tallies {
			if len(tally.Seen) > 0 && slices.Contains(append(tally.IDs, lastID(tally)), e.ID) {
				if t.Why = tally.Why; !tally.Next.IsZero() {
					t.Next = tally.Next.Add(ahead)
				}
			}
		}
	}
	return t
}

func lastID(t state.Tally) string {
	if t.Last == nil {
		return ""
	}
	return t.Last.ID
}
