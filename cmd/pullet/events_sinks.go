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
			"them recorded it last: how many events they took, how many wait, as far as was read, how many they\n" +
			"refused (dropped), and the last error. -o wide shows also where in the log each is, and how many\n" +
			"pages of it were removed before they were sent (lost).",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.onFleet(cmd, func(ctx context.Context, store *state.Store) error {
				sinks, err := store.Sinks.All(ctx)
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
	heading := "SINK\tTYPE\tTO\tSENT\tWAITING\tDROPPED\tSTATE"
	if a.output == "wide" {
		heading += "\tLOST\tPAGE\tBY\tRECORDED\tLAST ERROR"
	}
	return a.list(lines, heading, func(w io.Writer) {
		for _, l := range lines {
			to, waits := orDash(l.To), l.waiting()
			fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%s\t%d\t%s", l.Name, l.Type, to, l.Sent, waits, l.Dropped, l.state(w))
			if a.output == "wide" {
				fmt.Fprintf(w, "\t%d\t%d\t%s\t%s\t%s", l.Lost, l.Page, l.By, age(w, l.At), orDash(l.Error))
			}
			fmt.Fprintln(w)
		}
		if a.output != "wide" {
			printErrors(w, lines)
		}
	})
}

// printErrors prints the last error of each sink behind the table: it has no room in a column.
func printErrors(w io.Writer, lines []sinkLine) {
	for _, l := range lines {
		if l.Error != "" {
			fmt.Fprintf(w, "%s: %s\n", l.Name, l.Error)
		}
	}
}

func (l sinkLine) waiting() string {
	if l.More {
		return fmt.Sprintf("%d or more", l.Waiting)
	}
	return fmt.Sprint(l.Waiting)
}

func (l sinkLine) state(w io.Writer) string {
	if l.Failures == 0 {
		return "ok"
	}
	return "fails " + during(w, l.Since)
}
