package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/pullet/pullet/internal/safetext"
	"github.com/pullet/pullet/state"
)

func reactionShowCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "show RUN", Args: arguments(cobra.ExactArgs(1)),
		Short: "One run of a reaction, host after host",
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.onFleet(cmd, func(ctx context.Context, store *state.Store) error {
				is, err := store.Reactions.Run(ctx, args[0])
				if err != nil {
					return err
				}
				run := runView{lineOf(is), is}
				if done, err := a.structured(run.ReactionStatus); done || err != nil {
					return err
				}
				return onPage(a.out, run.print)
			})
		},
	}
}

// runView is a run of a reaction, and its sum.
type runView struct {
	sum runLine
	state.ReactionStatus
}

func (v runView) print(w io.Writer) {
	fmt.Fprintf(w, "run %s of reaction %s, given by %s %s at version %s: %s\n", v.ID, v.Reaction, v.By, when(w, v.At),
		state.Short(v.Version), v.sum.State)
	fmt.Fprintf(w, "  for %s, %s (%s)\n", v.Event.Name, count(v.Event.Occurrences, "time"), v.Event.ID)
	for _, c := range v.Chain[:max(0, len(v.Chain)-1)] {
		fmt.Fprintf(w, "  caused by run %s of reaction %s\n", c.Run, c.Reaction)
	}
	if v.sum.Why != "" {
		fmt.Fprintf(w, "  %s\n", v.sum.Why)
	}
	if len(v.Event.Unknown) > 0 {
		fmt.Fprintf(w, "  about hosts that the fleet does not have: %s\n", safetext.Some(v.Event.Unknown, 10))
	}
	v.printHosts(w)
}

// printHosts says what came of a run on each of its hosts. Those that did not begin are one line.
func (v runView) printHosts(w io.Writer) {
	t := columns(w)
	if len(v.Results) > 0 {
		fmt.Fprintln(t, "HOST\tSTATE\tSTARTED\tTOOK\tCHANGED\tWHY")
	}
	silent := slices.Clone(v.Hosts)
	for _, r := range v.Results {
		why := r.Reason
		if r.Remedy != "" {
			why += "; " + r.Remedy
		}
		if why == "" && r.Run != "" {
			why = "pullet history " + r.Run + " there"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%d\t%s\n", r.Node, r.State, age(w, r.Started), took(r.Started, r.Ended),
			r.Changed, orDash(why))
		silent = slices.DeleteFunc(silent, func(node string) bool { return node == r.Node })
	}
	t.Flush()
	if len(silent) > 0 {
		what := "not begun: "
		if !v.Open {
			what = "did not begin in time: "
		}
		fmt.Fprintln(w, what+safetext.Some(silent, 20))
	}
}

// took is how long something took; it may last.
func took(from, to time.Time) string {
	switch {
	case from.IsZero():
		return "-"
	case to.IsZero():
		return ago(from)
	}
	return to.Sub(from).Round(time.Second).String()
}
