package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/pullet/pullet/state"
)

// sinkLine is how far a sink is.
type sinkLine struct {
	Name string `json:"name"`
	state.Sink
}

func sinksCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "sinks", Args: cobra.NoArgs,
		Short: "Where events are sent to, and how far that is",
		Long: "Sinks lists the receivers outside of the fleet (sinks in pullet.yaml), as the host that sends to\n" +
			"them recorded it last: how many events they took, and how many wait, as far as was read. Dropped\n" +
			"are events that a receiver refused, lost are pages of the log that were removed before they were\n" +
			"sent. -o wide shows where in the log each is, and its last error.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.onFleet(cmd, func(ctx context.Context, store *state.Store) error {
				sinks, err := store.Events.Sinks(ctx)
				if err != nil {
					return err
				}
				lines := []sinkLine{}
				for _, name := range slices.Sorted(maps.Keys(sinks)) {
					lines = append(lines, sinkLine{name, sinks[name]})
				}
				return sinksCmd{a}.show(lines)
			})
		},
	}
}

// sinksCmd is pullet events sinks.
type sinksCmd struct{ *app }

func (a sinksCmd) show(lines []sinkLine) error {
	if len(lines) == 0 && (a.output == "table" || a.output == "wide") {
		_, err := fmt.Fprintln(a.out, "no events are sent: pullet explain pullet.sinks shows how sinks are written")
		return err
	}
	heading := "SINK\tTYPE\tTO\tSENT\tWAITING\tDROPPED\tLOST\tSTATE"
	if a.output == "wide" {
		heading += "\tPAGE\tBY\tRECORDED\tLAST ERROR"
	}
	return a.list(lines, heading, func(w io.Writer) {
		for _, l := range lines {
			fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%s\t%d\t%d\t%s", l.Name, l.Type, orDash(l.To), l.Sent, l.waiting(), l.Dropped, l.Lost,
				l.state())
			if a.output == "wide" {
				fmt.Fprintf(w, "\t%d\t%s\t%s\t%s", l.Page, l.By, ago(l.At), orDash(l.Error))
			}
			fmt.Fprintln(w)
		}
	})
}

func (l sinkLine) waiting() string {
	if l.More {
		return fmt.Sprintf("%d or more", l.Waiting)
	}
	return fmt.Sprint(l.Waiting)
}

// state is what the sink is at; of one that fails the first part of why.
func (l sinkLine) state() string {
	if l.Failures == 0 {
		return "ok"
	}
	return "fails for " + ago(l.Since) + ": " + shorten(l.Error, 40)
}
