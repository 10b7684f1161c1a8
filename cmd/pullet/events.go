package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pullet/pullet/internal/safetext"
	"github.com/pullet/pullet/render"
	"github.com/pullet/pullet/state"
)

// eventLine is an event in a line. Events that say the same and were read together are one.
type eventLine struct {
	state.Happened
	Waiting bool `json:"waiting,omitempty"` // the reactor does not have it yet
}

// eventsCmd is pullet events.
type eventsCmd struct {
	*app
	follow bool
	since  time.Duration
	limit  int
	names  *render.EventGlob // nil: all
}

func eventsCommand(a *app) *cobra.Command {
	e := eventsCmd{app: a}
	c := &cobra.Command{
		Use: "events [NAME]", GroupID: "fleet", Args: upToOne,
		Short: "What happened in the fleet, the newest last",
		Long: "Events lists what hosts, triggers and other systems told the fleet: failed steps, alerts, what\n" +
			"pullet event emit said. Events that say the same and came together are one line. NAME is the name of\n" +
			"an event, or a glob: * is within a part of the path, and /** at the end is all that follows. -o wide\n" +
			"shows their ids, for pullet events show.",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := e.check(args); err != nil {
				return err
			}
			return a.onFleet(cmd, e.show)
		},
	}
	c.Flags().BoolVar(&e.follow, "follow", false, "go on with what happens from now on, until it is stopped")
	durationVar(c.Flags(), &e.since, "since", 0,
		"only what happened in this time, such as 2h (default: all that is on record)")
	c.Flags().IntVar(&e.limit, "limit", 100, "so many lines at most, the newest")
	c.AddCommand(eventShowCommand(a), sinksCommand(a))
	return c
}

func (a *eventsCmd) check(args []string) error {
	if len(args) == 1 && args[0] != "" {
		glob, err := render.ParseEventGlob(args[0])
		if err != nil {
			return usage(fmt.Errorf("%q is no glob over names of events: write such as backup/* or backup/**", args[0]))
		}
		a.names = &glob
	}
	switch {
	case a.since < 0:
		return usage(fmt.Errorf("--since %s: write a time such as 2h", a.since))
	case a.limit < 1:
		return usage(fmt.Errorf("--limit %d: write a number from 1 on", a.limit))
	case a.follow && a.output != "table" && a.output != "wide" && a.output != "json":
		return usage(errors.New("--follow prints lines: use -o table, wide or json"))
	}
	return nil
}

// matches reports an event that is to be shown.
func (a eventsCmd) matches(e state.Happened) bool {
	if a.since > 0 && time.Since(e.Last) > a.since {
		return false
	}
	return a.names == nil || a.names.Matches(e.Name)
}

// pagesAtOnce is how many pages of the log are read in a request.
const pagesAtOnce = 8

func (a eventsCmd) show(ctx context.Context, store *state.Store) error {
	lines, page, err := a.logged(ctx, store)
	if err != nil {
		return err
	}
	waiting, err := store.EventLog.Waiting(ctx)
	if err != nil {
		return err
	}
	if !a.follow { // they come again when the reactor has them
		for _, e := range waiting {
			if one := unread(e); a.matches(one.Happened) {
				lines = append(lines, one)
			}
		}
	}
	lines = lines[max(0, len(lines)-a.limit):]
	if a.follow {
		return a.goOn(ctx, store, lines, page)
	}
	return a.print(lines)
}

func (a eventsCmd) print(lines []eventLine) error {
	if len(lines) == 0 && (a.output == "table" || a.output == "wide") {
		_, err := fmt.Fprintln(a.out, "nothing of that kind happened")
		return err
	}
	return a.list(lines, a.heading(), func(w io.Writer) { a.rows(w, lines) })
}

// unread is an event that the reactor does not have yet, as a line.
func unread(e state.Event) eventLine {
	return eventLine{state.Happened{Event: e, Count: 1, Last: e.Time, From: []string{e.By}}, true}
}

// logged are the newest events of the log, the newest last, and the number of its newest page.
func (a eventsCmd) logged(ctx context.Context, store *state.Store) (lines []eventLine, newest int, err error) {
	lines = []eventLine{}
	for before := 0; ; {
		pages, err := store.EventLog.Newest(ctx, before, pagesAtOnce)
		if err != nil || len(pages) == 0 {
			slices.Reverse(lines)
			return lines, newest, err
		}
		for _, p := range pages {
			newest, before = max(newest, p.Number), p.Number
			for _, e := range slices.Backward(p.Events) {
				if a.matches(e) {
					lines = append(lines, eventLine{Happened: e})
				}
			}
		}
		old := a.since > 0 && time.Since(pages[len(pages)-1].At) > a.since
		if len(lines) >= a.limit || old || before == 0 {
			slices.Reverse(lines)
			return lines, newest, nil
		}
	}
}

// eventPoll is how long is waited for new events before they are looked for: a watch is never trusted alone.
const eventPoll = 15 * time.Second

// goOn prints lines, and then those of each page that follows.
func (a eventsCmd) goOn(ctx context.Context, store *state.Store, lines []eventLine, page int) error {
	for heading := true; ; heading = false {
		if err := a.more(lines, heading); err != nil {
			return err
		}
		if !store.EventLog.Await(ctx, page, eventPoll) {
			return nil
		}
		pages, err := store.EventLog.After(ctx, page, pagesAtOnce)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		lines = nil
		for _, p := range pages {
			page = p.Number
			for _, e := range p.Events {
				if a.matches(e) {
					lines = append(lines, eventLine{Happened: e})
				}
			}
		}
	}
}

// more prints lines as they come: with -o json each is an object.
func (a eventsCmd) more(lines []eventLine, heading bool) error {
	if a.output == "json" {
		for _, l := range lines {
			data, err := json.Marshal(l)
			if err != nil {
				return err
			}
			if _, err := fmt.Fprintf(a.out, "%s\n", data); err != nil {
				return err
			}
		}
		return nil
	}
	t := columns(a.out)
	if heading {
		fmt.Fprintln(t, a.heading())
	}
	a.rows(t, lines)
	return t.Flush()
}

func (a eventsCmd) heading() string {
	if a.output == "wide" {
		return "ID\tTIME\tNAME\tHOSTS\tCOUNT\tFROM\tDATA"
	}
	return "TIME\tNAME\tHOSTS\tCOUNT\tDATA"
}

func (a eventsCmd) rows(w io.Writer, lines []eventLine) {
	for _, l := range lines {
		hosts, data := orDash(safetext.Some(l.Hosts, 2)), l.data()
		at := age(w, l.Last)
		if a.follow { // the line stays while time goes on
			at = stamp(l.Last)
		}
		if l.Count > 1 && len(l.Hosts) > 2 {
			hosts = fmt.Sprintf("%s and %d more", l.Hosts[0], len(l.Hosts)-1)
		}
		if a.output != "wide" {
			fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%s\n", at, l.Name, hosts, l.Count, data)
			continue
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%d\t%s\t%s\n", l.ID, at, l.Name,
			orDash(strings.Join(l.Hosts, ",")), l.Count, orDash(strings.Join(l.From, ",")), data)
	}
}

// data is what is known of an event in a line, and what is special about it before that.
func (l eventLine) data() string {
	var parts []string
	switch {
	case l.Waiting:
		parts = append(parts, "(not read yet)")
	case l.Again:
		parts = append(parts, "(told before)")
	}
	if len(l.Chain) > 0 {
		parts = append(parts, "(by "+cmp.Or(l.Chain[len(l.Chain)-1].Reaction, "a reaction")+")")
	}
	return orDash(strings.Join(append(parts, pairs(l.Data)...), " "))
}

// pairs are data as KEY=VALUE.
func pairs(data map[string]any) []string {
	var out []string
	for _, key := range slices.Sorted(maps.Keys(data)) {
		value, isText := data[key].(string)
		if !isText {
			text, _ := json.Marshal(data[key]) // it came from JSON
			value = string(text)
		} else if strings.ContainsAny(value, " \t\n\"") || value == "" {
			value = fmt.Sprintf("%q", value)
		}
		out = append(out, safetext.Line(key, 60)+"="+safetext.Line(value, 1<<10))
	}
	return out
}
