package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/pullet/pullet/internal/safetext"
	"github.com/pullet/pullet/state"
)

// eventView is an event with what caused it and what came of it, as far as that is on record.
type eventView struct {
	eventLine
	Read    time.Time      `json:"read,omitzero"` // when the reactor had it
	Causes  []eventCause   `json:"causes"`        // the first one first
	Started []runLine      `json:"started"`       // runs that answer it
	Counted []reactionLine `json:"counted"`       // groups that count it still
}

// eventCause is a run of a reaction in the chain of an event.
type eventCause struct {
	state.Cause
	Event *state.Reacted `json:"event,omitempty"` // that the run answers; null: it is not on record any more
	At    time.Time      `json:"at,omitzero"`
}

func eventShowCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "show ID", Args: arguments(cobra.ExactArgs(1)),
		Short: "One event: all of it, what caused it and what it started",
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.onFleet(cmd, func(ctx context.Context, store *state.Store) error {
				v, err := findEvent(ctx, store, args[0])
				if err != nil {
					return err
				}
				if done, err := a.structured(v); done || err != nil {
					return err
				}
				return onPage(a.out, v.print)
			})
		},
	}
}

// findEvent finds an event, in the log or where it waits for the reactor.
func findEvent(ctx context.Context, store *state.Store, id string) (*eventView, error) {
	v, err := loggedEvent(ctx, store, id)
	if err != nil {
		return nil, err
	}
	if v == nil {
		waiting, err := store.EventLog.Waiting(ctx)
		if err != nil {
			return nil, err
		}
		i := slices.IndexFunc(waiting, func(e state.Event) bool { return e.ID == id })
		if i < 0 {
			return nil, fmt.Errorf("there is no event %q on record: see pullet events -o wide", id)
		}
		v = &eventView{eventLine: unread(waiting[i])}
	}
	v.Causes, v.Started, v.Counted = []eventCause{}, []runLine{}, []reactionLine{}
	return v, v.around(ctx, store, id)
}

// loggedEvent finds an event in the log; nil: it is not there.
func loggedEvent(ctx context.Context, store *state.Store, id string) (*eventView, error) {
	for before := 0; ; {
		pages, err := store.EventLog.Newest(ctx, before, pagesAtOnce)
		if err != nil || len(pages) == 0 {
			return nil, err
		}
		for _, p := range pages {
			for _, e := range p.Events {
				if e.ID == id || slices.Contains(e.IDs, id) {
					return &eventView{eventLine: eventLine{Happened: e}, Read: p.At}, nil
				}
			}
			if before = p.Number; before == 0 {
				return nil, nil
			}
		}
	}
}

// around reads what caused an event and what came of it.
func (v *eventView) around(ctx context.Context, store *state.Store, id string) error {
	runs, err := store.Reactions.List(ctx)
	if err != nil {
		return err
	}
	for _, cause := range v.Chain {
		one := eventCause{Cause: cause}
		if i := slices.IndexFunc(runs, func(r state.ReactionStatus) bool { return r.ID == cause.Run }); i >= 0 {
			one.Event, one.At = &runs[i].Event, runs[i].At
		}
		v.Causes = append(v.Causes, one)
	}
	for _, r := range runs {
		if r.Event.ID == id || slices.Contains(r.Event.IDs, id) {
			v.Started = append(v.Started, lineOf(r))
		}
	}
	groups, err := store.EventLog.Counted(ctx)
	for _, g := range groups {
		g.Tallies = slices.DeleteFunc(g.Tallies, func(t state.Tally) bool {
			return !slices.Contains(t.IDs, id) && (t.Last == nil || t.Last.ID != id)
		})
		v.Counted = append(v.Counted, reactionLines(g, nil)...)
	}
	return err
}

func (v *eventView) print(w io.Writer) {
	fmt.Fprintf(w, "%s (%s)\n", v.Name, v.ID)
	told := v.By
	if v.Count > 1 {
		told = fmt.Sprintf("%s; %d of the same kind came together, from %s", v.By, v.Count, safetext.Some(v.From, 10))
	}
	fmt.Fprintf(w, "  happened   %s, %s ago\n  told by    %s\n", stamp(v.Time), ago(v.Time), told)
	if len(v.Hosts) > 0 {
		fmt.Fprintf(w, "  about      %s\n", safetext.Some(v.Hosts, 20))
	}
	if v.Dedupe != "" {
		fmt.Fprintf(w, "  dedupe     %s\n", v.Dedupe)
	}
	switch {
	case v.Waiting:
		fmt.Fprintln(w, "  it waits for the reactor: see pullet reactions")
	case v.Again:
		fmt.Fprintln(w, "  it was told before, by its dedupe, and counts for nothing")
	}
	if len(v.Data) > 0 {
		data, _ := json.MarshalIndent(v.Data, "    ", "  ") // it came from JSON
		fmt.Fprintf(w, "  data\n    %s\n", data)
	}
	v.printAround(w)
}

// printAround says what caused an event and what came of it.
func (v *eventView) printAround(w io.Writer) {
	for _, c := range v.Causes {
		why := "which is no longer on record"
		if c.Event != nil {
			why = fmt.Sprintf("given %s for %s of %s (%s)", when(w, c.At), c.Event.Name, c.Event.By, c.Event.ID)
		}
		fmt.Fprintf(w, "  caused by  run %s of reaction %s, %s\n", c.Run, c.Reaction, why)
	}
	for _, r := range v.Started {
		fmt.Fprintf(w, "  started    run %s of reaction %s: %s %s\n", r.ID, r.Reaction, r.State, r.counts())
	}
	for _, l := range v.Counted {
		fmt.Fprintf(w, "  counts     for reaction %s: %s\n", l.Reaction, l.why())
	}
	if len(v.Started)+len(v.Counted) == 0 && !v.Waiting {
		fmt.Fprintln(w, "  no reaction answers it, or what did is no longer on record")
	}
}
