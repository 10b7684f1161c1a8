package event

import (
	"slices"
	"time"

	"github.com/pullet/pullet/state"
)

// Limiter says after how many occurrences of an event a reaction starts, and how often.
type Limiter struct {
	MinOccurrences int           // so many occurrences make a reaction ready; 0 and 1 are the same
	Window         time.Duration // occurrences that are older do not count for that
	Delay          time.Duration // between two starts
	Timeout        time.Duration // so long is waited for more occurrences once it is ready
	Reset          bool          // each further occurrence has the timeout begin anew
	Max            time.Duration // longer is not waited for more
}

// Verdict is what a limiter says of a tally.
type Verdict struct {
	Starts      bool
	Occurrences int
	Look        time.Time // when the answer may be another one although nothing more happens; zero: never
	Why         string    // it does not start, for people
}

// Count counts so many occurrences at a time.
func Count(t state.Tally, at time.Time, n int) state.Tally {
	t.Seen = append(slices.Clone(t.Seen), state.Seen{At: at, N: n})
	slices.SortStableFunc(t.Seen, func(a, b state.Seen) int { return a.At.Compare(b.At) })
	for len(t.Seen) > state.MaxSeen {
		i := closest(t.Seen)
		t.Seen[i+1].N += t.Seen[i].N // the later time counts for both: none goes out of the window too early
		t.Seen = slices.Delete(t.Seen, i, i+1)
	}
	return t
}

// closest is the first of the two that are least apart.
func closest(seen []state.Seen) (at int) {
	for i := range len(seen) - 1 {
		if seen[i+1].At.Sub(seen[i].At) < seen[at+1].At.Sub(seen[at].At) {
			at = i
		}
	}
	return at
}

// Judge says whether a reaction starts now, or when it is looked at again. It returns the tally without occurrences
// that do not count any more, and is a pure function. A start is recorded with Start.
func (l Limiter) Judge(t state.Tally, now time.Time) (state.Tally, Verdict) {
	t = within(t, now)
	if t.Ready.IsZero() { // those that made it ready count until it starts
		t.Seen = slices.DeleteFunc(slices.Clone(t.Seen), func(s state.Seen) bool { return !s.At.After(now.Add(-l.Window)) })
	}
	v := Verdict{}
	for _, s := range t.Seen {
		v.Occurrences += s.N
	}
	if v.Occurrences < max(1, l.MinOccurrences) {
		t.Ready = time.Time{}
		if len(t.Seen) > 0 {
			v.Look, v.Why = t.Seen[0].At.Add(l.Window), "it occurred too rarely"
		}
		return t, v
	}
	if t.Ready.IsZero() {
		t.Ready = now
	}
	v.Look, v.Why = l.due(t), "it waits for more occurrences"
	if free := t.Reacted.Add(l.Delay); !t.Reacted.IsZero() && free.After(v.Look) {
		v.Look, v.Why = free, "it is limited: it was started lately"
	}
	if !v.Look.After(now) {
		v = Verdict{Starts: true, Occurrences: v.Occurrences}
	}
	return t, v
}

// due is until when more occurrences are waited for.
func (l Limiter) due(t state.Tally) time.Time {
	last := t.Seen[len(t.Seen)-1].At
	from := t.Ready
	if l.Reset && last.After(from) {
		from = last
	}
	due := from.Add(l.Timeout)
	if most := t.Ready.Add(l.Max); due.After(most) {
		return most
	}
	return due
}

// within returns the tally without times that lie ahead. The fleet's clock may have gone back, and older records have
// times by the clock of a host. A time that is far ahead would hold the reaction back for good.
func within(t state.Tally, now time.Time) state.Tally {
	t.Seen = slices.Clone(t.Seen)
	for i := range t.Seen {
		t.Seen[i].At = earlier(t.Seen[i].At, now)
	}
	t.Ready, t.Reacted = earlier(t.Ready, now), earlier(t.Reacted, now)
	return t
}

func earlier(a, b time.Time) time.Time {
	if a.After(b) {
		return b
	}
	return a
}

// Start is a tally from which a reaction was started: it begins anew.
func Start(t state.Tally, now time.Time) state.Tally {
	return state.Tally{Host: t.Host, Reacted: now}
}

// Rests reports a tally that says nothing any more: nothing occurred lately, and a start would not be limited.
func (l Limiter) Rests(t state.Tally, now time.Time) bool {
	return len(t.Seen) == 0 && !now.Before(t.Reacted.Add(l.Delay))
}
