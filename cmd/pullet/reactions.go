package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pullet/pullet/internal/safetext"
	"github.com/pullet/pullet/state"
)

// reactionsView is what pullet reactions shows.
type reactionsView struct {
	Reactor string                 `json:"reactor,omitempty"` // the host that counts events and starts runs; "": none does
	Unread  *unreadEvents          `json:"unread,omitempty"`
	Waiting []reactionLine         `json:"waiting"`
	Paused  []state.PausedReaction `json:"paused"`
	Runs    []runLine              `json:"runs"` // the newest last
}

// reactionLine is what a reaction waits for: the occurrences of an event that it counts.
type reactionLine struct {
	Reaction    string    `json:"reaction"`
	Event       string    `json:"event"`
	Hosts       []string  `json:"hosts,omitempty"`   // that the occurrences are about
	Unknown     []string  `json:"unknown,omitempty"` // those of them that are no nodes
	Occurrences int       `json:"occurrences"`
	Paused      bool      `json:"paused,omitempty"`
	Why         string    `json:"why,omitempty"` // it is not started
	Next        time.Time `json:"next,omitzero"` // when it is looked at again
	Dropped     int       `json:"dropped,omitempty"`
}

// runLine is a run of a reaction in a line.
type runLine struct {
	ID       string         `json:"id"`
	Reaction string         `json:"reaction"`
	Event    string         `json:"event"`
	EventID  string         `json:"eventId"`
	At       time.Time      `json:"at"`
	Hosts    int            `json:"hosts"`
	Counts   map[string]int `json:"counts"` // of hosts, by state
	State    string         `json:"state"`  // running, ok, failed, left
	Why      string         `json:"why,omitempty"`
}

// The states of hosts in a run, in the order in which they are counted, and the one of those that said nothing yet.
var runStates = []string{
	state.ReactionDone, state.Failed, state.Running, state.ReactionWaits, notBegun, state.ReactionLeft,
}

const notBegun = "not begun"

func reactionsCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use: "reactions", GroupID: "fleet", Args: noArgs,
		Short: "What answers events: what it waits for, and how it ended",
		Long: "Reactions lists the reactions that count events now, with what keeps each from being started and until\n" +
			"when, and the runs of the last week: on how many hosts each is through, at work, or failed. Reactions\n" +
			"of the repository for which nothing happened are not listed.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.onFleet(cmd, func(ctx context.Context, store *state.Store) error {
				v, err := readReactions(ctx, store, time.Time{})
				if err != nil {
					return err
				}
				if v.Unread, err = readUnread(ctx, store); err != nil {
					return err
				}
				return v.show(a)
			})
		},
	}
	c.AddCommand(reactionShowCommand(a), reactionPauseCommand(a), reactionResumeCommand(a),
		reactionCancelCommand(a))
	return c
}

// show prints what reactions wait for and how their runs ended, in the form that was asked for.
func (v *reactionsView) show(a *app) error {
	if done, err := a.structured(v); done || err != nil {
		return err
	}
	return onPage(a.out, func(w io.Writer) { v.print(w, a.output == "wide") })
}

// readReactions reads what reactions wait for, and their runs since a time.
func readReactions(ctx context.Context, store *state.Store, since time.Time) (*reactionsView, error) {
	reactor, err := store.Events.Reactor(ctx)
	if err != nil {
		return nil, err
	}
	paused, err := store.Reactions.Paused(ctx)
	if err != nil {
		return nil, err
	}
	groups, err := store.EventLog.Counted(ctx)
	if err != nil {
		return nil, err
	}
	runs, err := store.Reactions.Since(ctx, since)
	v := newReactionsView(groups, paused, runs)
	v.Reactor = reactor
	return v, err
}

// newReactionsView sums up what reactions count, which of them are paused, and their runs.
func newReactionsView(
	groups []state.Group,
	paused map[string]state.PausedReaction,
	runs []state.ReactionStatus,
) *reactionsView {
	v := &reactionsView{Waiting: []reactionLine{}, Paused: []state.PausedReaction{}, Runs: []runLine{}}
	for _, name := range slices.Sorted(maps.Keys(paused)) {
		v.Paused = append(v.Paused, paused[name])
	}
	for _, g := range groups {
		v.Waiting = append(v.Waiting, reactionLines(g, paused)...)
	}
	for _, r := range runs {
		v.Runs = append(v.Runs, lineOf(r))
	}
	return v
}

// reactionLines are the lines of a group: one for all hosts for which the same is said.
func reactionLines(g state.Group, paused map[string]state.PausedReaction) []reactionLine {
	var out []reactionLine
	at := map[string]int{}
	_, isPaused := paused[g.Reaction]
	for _, t := range g.Tallies {
		if len(t.Seen) == 0 {
			t.Why = "limited: it was started " + ago(t.Reacted) + " ago"
		}
		i, has := at[t.Why]
		if !has {
			i = len(out)
			at[t.Why] = i
			out = append(out, reactionLine{Reaction: g.Reaction, Event: g.Event, Why: t.Why, Next: t.Next, Paused: isPaused})
		}
		l := &out[i]
		if t.Host != "" {
			t.Hosts = []string{t.Host}
		}
		l.Hosts, l.Unknown = append(l.Hosts, t.Hosts...), append(l.Unknown, t.Unknown...)
		for _, s := range t.Seen {
			l.Occurrences += s.N
		}
		if t.Next.Before(l.Next) {
			l.Next = t.Next
		}
	}
	if len(out) > 0 {
		out[0].Dropped = g.Dropped
	}
	return out
}

// why is what keeps a reaction from being started, and until when.
func (l reactionLine) why() string {
	text := l.Why
	switch {
	case text == "":
		text = "it is counted"
	case l.Next.IsZero():
	case strings.HasPrefix(text, "limited"), strings.HasPrefix(text, "it waits"), strings.HasPrefix(text, "it is limited"):
		text += ", until " + clock(l.Next)
	default:
		text += "; looked at again " + clock(l.Next)
	}
	if l.Dropped > 0 {
		text += fmt.Sprintf("; %d more were about hosts for which there was no room", l.Dropped)
	}
	return text
}

// noHost is the state of a run that no host has.
const noHost = "no host"

// lineOf sums a run up.
func lineOf(r state.ReactionStatus) runLine {
	l := runLine{
		ID: r.ID, Reaction: r.Reaction, Event: r.Event.Name, EventID: r.Event.ID, At: r.At, Hosts: len(r.Hosts),
		Counts: map[string]int{}, State: state.Running, Why: r.Why,
	}
	for _, one := range r.Results {
		l.Counts[one.State]++
		if one.State == state.Failed && l.Why == "" {
			l.Why = one.Node + ": " + one.Reason
		}
	}
	if r.Halted != "" {
		l.Why = r.Halted
	}
	if silent := len(r.Hosts) - len(r.Results); silent > 0 {
		l.Counts[notBegun] = silent
	}
	switch {
	case len(r.Hosts) == 0:
		l.State = noHost
	case !r.Over():
	case l.Counts[state.Failed] > 0:
		l.State = state.Failed
	case l.Counts[state.ReactionDone] == len(r.Hosts):
		l.State = state.ReactionDone
	default:
		l.State = state.ReactionLeft
	}
	return l
}

// counts are how many hosts are in which state.
func (l runLine) counts() string {
	var parts []string
	for _, s := range runStates {
		if n := l.Counts[s]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, s))
		}
	}
	text := strings.Join(parts, ", ")
	if l.Why != "" {
		text = strings.TrimPrefix(text+": "+l.Why, ": ")
	}
	return text
}

// mostRuns is how many runs are listed where not all are asked for.
const mostRuns = 20

func (v *reactionsView) print(w io.Writer, wide bool) {
	if v.Unread != nil {
		fmt.Fprintln(w, v.Unread.line(w, v.Reactor))
	}
	if len(v.Waiting)+len(v.Paused)+len(v.Runs) == 0 {
		fmt.Fprintln(w, "no reaction counts anything, and none was started lately")
		return
	}
	for _, p := range v.Paused {
		fmt.Fprintf(w, "reaction %s is paused by %s %s%s%s\n", p.Reaction, p.By, when(w, p.At), until(p.Until),
			reasonSuffix(p.Reason))
	}
	most := 2
	if wide {
		most = 1 << 20
	}
	t := columns(w)
	if len(v.Waiting) > 0 {
		fmt.Fprintln(t, "REACTION\tEVENT\tHOSTS\tCOUNT\tWHY")
		for _, l := range v.Waiting {
			hosts := orDash(safetext.Some(slices.Concat(l.Hosts, l.Unknown), most))
			fmt.Fprintf(t, "%s\t%s\t%s\t%d\t%s\n", l.Reaction, l.Event, hosts, l.Occurrences, l.why())
		}
		t.Flush()
	}
	runs := v.Runs
	if !wide {
		runs = runs[max(0, len(runs)-mostRuns):]
	}
	if len(runs) > 0 {
		fmt.Fprintln(t, "RUN\tREACTION\tEVENT\tSINCE\tSTATE\tHOSTS")
		for _, r := range runs {
			fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\n", r.ID, r.Reaction, r.Event, age(w, r.At), r.State, r.counts())
		}
	}
	t.Flush()
	if v.Reactor != "" {
		fmt.Fprintf(w, "the reactor is %s\n", v.Reactor)
	}
}
