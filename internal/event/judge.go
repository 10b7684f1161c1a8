package event

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/pullet/pullet/internal/safetext"
	"github.com/pullet/pullet/state"
)

// judgeAll asks the limiters of all groups, and starts what is to be started. Groups that were counted in are written
// in any case, others as far as one step can.
func (s *step) judgeAll(ctx context.Context) {
	s.written = s.size
	for _, group := range s.changed {
		s.written += group.size
	}
	counted := slices.Sorted(maps.Keys(s.changed))
	for _, hash := range counted {
		s.written -= s.changed[hash].size
		s.write(s.judge(ctx, *s.groups[hash], true))
	}
	for _, hash := range slices.Sorted(maps.Keys(s.groups)) {
		if _, done := s.changed[hash]; done {
			continue
		}
		if s.written > groupsSize || s.full() {
			s.looksAt(s.Now)
			return
		}
		was := s.groups[hash]
		if now := s.judge(ctx, *was, false); !reflect.DeepEqual(*was, now) {
			s.write(now)
		}
	}
}

func (s *step) write(g state.Group) {
	s.entry.Groups, s.written = append(s.entry.Groups, g), s.written+sizeOf(g)
}

// full reports that there is no room for a further group or run in this step.
func (s *step) full() bool { return len(s.entry.Groups)+2*len(s.entry.Runs) >= state.MaxChanged }

func (s *step) looksAt(at time.Time) {
	if !at.IsZero() && (s.look.IsZero() || at.Before(s.look)) {
		s.look = at
	}
}

// judge asks the limiter of a group about each of its tallies. Those that start together start one run.
func (s *step) judge(ctx context.Context, g state.Group, counted bool) state.Group {
	r := s.reaction(g)
	if r == nil { // it is no longer in the repository
		return state.Group{Reaction: g.Reaction, Event: g.Event}
	}
	out := state.Group{Reaction: g.Reaction, Event: g.Event, Dropped: g.Dropped}
	var starts []int
	for _, was := range g.Tallies {
		t, v := r.Limiter.Judge(was, s.Now)
		switch {
		case r.Limiter.Rests(t, s.Now):
			continue
		case v.Starts && !counted && isCondition(was.Why) && s.rechecks(was):
			t = was // it is asked again in a while
		case v.Starts:
			starts = append(starts, len(out.Tallies))
		default:
			t.Next, t.Why = v.Look, v.Why
			if len(t.Seen) == 0 {
				t.Next = t.Reacted.Add(r.Limiter.Delay)
			}
		}
		out.Tallies = append(out.Tallies, t)
	}
	if len(starts) > 0 {
		s.start(ctx, r, &out, starts)
	}
	for i := range out.Tallies {
		t := &out.Tallies[i]
		s.looksAt(t.Next)
		if len(out.Tallies) > plenty {
			t.Next, t.Why, t.Ready = time.Time{}, "", t.Ready.Truncate(time.Second)
		}
	}
	return out
}

func (s *step) reaction(g state.Group) *Reaction {
	for _, r := range s.Reactions {
		if r.Name == g.Reaction && r.Matches(g.Event) {
			return r
		}
	}
	return nil
}

// start starts a run for tallies of a group, unless something keeps it from being started.
func (s *step) start(ctx context.Context, r *Reaction, g *state.Group, tallies []int) {
	var free []int
	for _, i := range tallies {
		if why := s.holds(r, g.Tallies[i]); why != "" {
			s.hold(&g.Tallies[i], why)
		} else {
			free = append(free, i)
		}
	}
	if len(free) == 0 {
		return
	}
	run, begun := s.begin(r, g, free)
	for s.written+sizeOf(run)+sizeOf(begun) > stepSize {
		if len(free) == 1 {
			s.hold(&g.Tallies[free[0]], othersFirst)
			return
		}
		for _, i := range free[len(free)/2:] {
			s.hold(&g.Tallies[i], othersFirst)
		}
		free = free[:len(free)/2]
		run, begun = s.begin(r, g, free)
	}
	yes, err := r.Holds(ctx, run.Event)
	if err != nil || !yes {
		why := conditionFalse
		if err != nil {
			why = fmt.Sprintf("%s: %v", conditionUnknown, err)
		}
		for _, i := range free {
			g.Tallies[i].Ready = time.Time{}
			s.hold(&g.Tallies[i], why)
		}
		return
	}
	s.entry.Runs, s.begun[r.Name] = append(s.entry.Runs, run), append(s.begun[r.Name], run.Hosts...)
	*g, s.written = begun, s.written+sizeOf(run)
}

// begin is the run for some tallies of a group, and the group when it is started.
func (s *step) begin(r *Reaction, g *state.Group, tallies []int) (state.ReactionRun, state.Group) {
	begun := *g
	begun.Tallies = slices.Clone(g.Tallies)
	for _, i := range tallies {
		begun.Tallies[i] = Start(g.Tallies[i], s.Now)
		begun.Tallies[i].Next = s.Now.Add(r.Limiter.Delay)
	}
	begun.Tallies = slices.DeleteFunc(begun.Tallies, func(t state.Tally) bool { return r.Limiter.Rests(t, s.Now) })
	return s.run(r, g, tallies), begun
}

// What keeps a tally from starting, beside its limiter.
const (
	conditionFalse   = "its condition does not hold"
	conditionUnknown = "its condition cannot be judged"
	othersFirst      = "others come first"
)

func isCondition(why string) bool {
	return why == conditionFalse || strings.HasPrefix(why, conditionUnknown)
}

// hold keeps a tally from starting for a while. What was said before is not said anew: each step would write it again.
func (s *step) hold(t *state.Tally, why string) {
	if t.Why != why || !s.rechecks(*t) {
		t.Why, t.Next = why, s.Now.Add(recheck)
	}
}

// rechecks reports whether a tally is to be judged again later. A time that is further ahead comes from a clock that
// was wrong.
func (s *step) rechecks(t state.Tally) bool {
	return t.Next.After(s.Now) && !t.Next.After(s.Now.Add(recheck))
}

// holds is what holds a start back; "" is nothing.
func (s *step) holds(r *Reaction, t state.Tally) string {
	busy := s.In.Busy[r.Name]
	paused, isPaused := s.In.Paused[r.Name]
	switch {
	case isPaused:
		return "paused by " + paused.By + because(paused.Reason)
	case r.PerHost && (busy[t.Host] || slices.Contains(s.begun[r.Name], t.Host)),
		!r.PerHost && len(busy)+len(s.begun[r.Name]) > 0:
		return "its last run is not over"
	case s.In.Runs+len(s.entry.Runs) >= maxRuns:
		return fmt.Sprintf("%d runs of reactions are not over", s.In.Runs+len(s.entry.Runs))
	case s.full():
		return othersFirst
	}
	return ""
}

func because(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + reason
}

// run is the run for some tallies of a group.
func (s *step) run(r *Reaction, g *state.Group, tallies []int) state.ReactionRun {
	run := state.ReactionRun{
		ID: s.NewID(), Reaction: r.Name, OnChange: r.OnChange, Version: s.Version, By: s.Node,
		At: s.Now.Add(s.Ahead).UTC(), Clock: s.Now.UTC(),
	}
	e := &run.Event
	for _, i := range tallies {
		t := g.Tallies[i]
		for _, seen := range t.Seen {
			e.Occurrences += seen.N
			if at := seen.At.Add(s.Ahead); at.After(e.Time) && e.ID == "" {
				e.Time = at
			}
		}
		if e.About = append(e.About, t.Hosts...); t.Host != "" {
			e.About = append(e.About, t.Host)
		}
		e.Unknown = add(e.Unknown, maxFrom, t.Unknown...)
		e.IDs = add(e.IDs, state.MaxIDs, t.IDs...)
		if t.Last != nil && (e.ID == "" || len(t.Last.Chain) > len(e.Chain)) {
			e.Event = *t.Last
		}
	}
	if e.ID == "" { // of so many hosts the group says only that it happened
		e.ID, e.Name, e.By = run.ID, g.Event, s.Node
	}
	slices.Sort(e.About)
	e.About = slices.Compact(e.About)
	run.Chain = append(slices.Clone(e.Chain), state.Cause{Run: run.ID, Reaction: r.Name})
	if run.Hosts = slices.Sorted(slices.Values(r.Hosts(e.About))); len(run.Hosts) == 0 {
		run.Why = "no host of the fleet runs it"
		if len(e.Unknown) > 0 {
			run.Why = fmt.Sprintf("the event is about hosts that the fleet does not have: %s", safetext.Some(e.Unknown, 5))
		}
	}
	return run
}
