package event

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/pullet/pullet/safetext"
	"github.com/pullet/pullet/state"
)

// judgeAll asks the limiters of all groups, and starts what is to be started. Groups that were counted in are written
// in any case, others as far as one step can.
func (s *step) judgeAll(ctx context.Context) {
	hashes := slices.SortedFunc(maps.Keys(s.groups), func(a, b string) int {
		if s.changed[a] != s.changed[b] {
			if s.changed[a] {
				return -1
			}
			return 1
		}
		return cmp.Compare(a, b)
	})
	for _, hash := range hashes {
		if len(s.entry.Groups)+2*len(s.entry.Runs) >= state.MaxChanged && !s.changed[hash] {
			s.looksAt(s.Now)
			return
		}
		was := s.groups[hash]
		now := s.judge(ctx, *was)
		if s.changed[hash] || !reflect.DeepEqual(*was, now) {
			s.entry.Groups = append(s.entry.Groups, now)
		}
	}
}

func (s *step) looksAt(at time.Time) {
	if !at.IsZero() && (s.look.IsZero() || at.Before(s.look)) {
		s.look = at
	}
}

// judge asks the limiter of a group about each of its tallies. Those that start together start one run.
func (s *step) judge(ctx context.Context, g state.Group) state.Group {
	r := s.reaction(g)
	if r == nil { // it is no longer in the repository
		return state.Group{Reaction: g.Reaction, Event: g.Event}
	}
	out := state.Group{Reaction: g.Reaction, Event: g.Event}
	var starts []int
	for _, was := range g.Tallies {
		t, v := r.Limiter.Judge(was, s.Now)
		if r.Limiter.Rests(t, s.Now) {
			continue
		}
		t.Next, t.Why = v.Look, v.Why
		if v.Starts {
			starts = append(starts, len(out.Tallies))
		} else if len(t.Seen) == 0 {
			t.Next, t.Why = t.Reacted.Add(r.Limiter.Delay), ""
		}
		out.Tallies = append(out.Tallies, t)
	}
	if len(starts) > 0 {
		s.start(ctx, r, &out, starts)
	}
	for _, t := range out.Tallies {
		s.looksAt(t.Next)
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
		t := &g.Tallies[i]
		if t.Why = s.holds(r, *t); t.Why == "" {
			free = append(free, i)
		} else {
			t.Next = s.Now.Add(recheck)
		}
	}
	if len(free) == 0 {
		return
	}
	run := s.run(r, g, free)
	yes, err := r.Holds(ctx, run.Event)
	if err != nil || !yes {
		for _, i := range free {
			t := &g.Tallies[i]
			t.Ready, t.Next, t.Why = time.Time{}, s.Now.Add(recheck), "its condition does not hold"
			if err != nil {
				t.Why = fmt.Sprintf("its condition cannot be judged: %v", err)
			}
		}
		return
	}
	s.entry.Runs, s.begun[r.Name] = append(s.entry.Runs, run), append(s.begun[r.Name], run.Hosts...)
	for _, i := range free {
		g.Tallies[i] = Start(g.Tallies[i], s.Now)
		g.Tallies[i].Next = s.Now.Add(r.Limiter.Delay)
	}
	g.Tallies = slices.DeleteFunc(g.Tallies, func(t state.Tally) bool { return r.Limiter.Rests(t, s.Now) })
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
	case len(s.entry.Groups)+2*len(s.entry.Runs) >= state.MaxChanged:
		return "others come first"
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
		ID: s.NewID(), Reaction: r.Name, OnChange: r.OnChange, Version: s.Version, By: s.Node, At: s.Now.UTC(),
	}
	for _, i := range tallies {
		t := g.Tallies[i]
		_, v := r.Limiter.Judge(t, s.Now)
		run.Event.Occurrences += v.Occurrences
		run.Event.About = add(run.Event.About, len(g.Tallies)*maxFrom, t.Hosts...)
		run.Event.Unknown = add(run.Event.Unknown, maxFrom, t.Unknown...)
		run.Event.IDs = add(run.Event.IDs, state.MaxIDs, t.IDs...)
		if t.Last != nil && (run.Event.ID == "" || len(t.Last.Chain) > len(run.Event.Chain)) {
			run.Event.Event = *t.Last
		}
	}
	run.Chain = append(slices.Clone(run.Event.Chain), state.Cause{Run: run.ID, Reaction: r.Name})
	if run.Hosts = slices.Sorted(slices.Values(r.Hosts(run.Event.About))); len(run.Hosts) == 0 {
		run.Why = "no host of the fleet runs it"
		if len(run.Event.Unknown) > 0 {
			run.Why = fmt.Sprintf("the event is about hosts that the fleet does not have: %s", safetext.Some(run.Event.Unknown, 5))
		}
	}
	return run
}
