package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/pullet/pullet/cmd/pullet/fleetnames"
	"github.com/pullet/pullet/internal/agent"
	"github.com/pullet/pullet/state"
)

// failure is a node that failed in a category.
type failure struct {
	Node string `json:"node"`
	state.Status
}

func failuresCommand(a *app) *cobra.Command {
	var category string
	c := &cobra.Command{
		Use: "failures", GroupID: "fleet", Args: noArgs,
		Short: "Which nodes failed, in which category, why, and in which run",
		Long: "Failures lists the nodes whose state is failed: provisioned and validated as tools say it with\n" +
			"set-status, configured, validated and rollout as pulls do. A node whose name several hosts use\n" +
			"failed as configured. pullet history RUN on the node shows the run.\n" +
			"\n" +
			"EXIT STATUS\n" +
			"  0  nothing failed\n" +
			"  1  something did, or an error\n" +
			"  64 the command line is wrong",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := knownWord("category", category, state.Categories()); category != "" && err != nil {
				return err
			}
			return a.onFleet(cmd, func(ctx context.Context, store *state.Store) error {
				o, err := store.Views.Fleet(ctx, false)
				if err != nil {
					return err
				}
				return printFailures(a, failuresOf(o, category))
			})
		},
	}
	c.Flags().StringVar(&category, "category", "", "only this one: provisioned, configured, validated or rollout")
	return c
}

// knownWord refuses a word that is not one of a few.
func knownWord(what, word string, known []string) error {
	if slices.Contains(known, word) {
		return nil
	}
	return usage(fmt.Errorf("there is no %s %q%s: use %s", what, word, fleetnames.Suggestion(word, known), oneOf(known)))
}

// failuresOf are the failures by category; all categories are there.
func failuresOf(o *state.Overview, category string) map[string][]failure {
	out := map[string][]failure{}
	for _, c := range state.Categories() {
		if category == "" || c == category {
			out[c] = []failure{}
		}
	}
	for _, node := range slices.Sorted(maps.Keys(o.Statuses)) {
		for c, s := range o.Statuses[node] {
			if out[c] != nil && s.State == state.Failed {
				s.Remedy = cureNow(o, node, s)
				out[c] = append(out[c], failure{node, s.Status})
			}
		}
	}
	return out
}

// cureNow is what helps against a failure, also where an operator did something about it since.
func cureNow(o *state.Overview, node string, s state.StatusLine) state.Remedy {
	if o.Current == nil || s.Version != o.Current.ID || s.Run == "" { // it is not of a pull
		return s.Remedy
	}
	n := nodeStatus{Node: node, Role: o.Nodes[node].Role, State: failed}
	n.waitsAt(s)
	n.refresh(o)
	return n.Remedy
}

func printFailures(a *app, byCategory map[string][]failure) error {
	n := 0
	for _, list := range byCategory {
		n += len(list)
	}
	if n == 0 && (a.output == "table" || a.output == "wide") {
		_, err := fmt.Fprintln(a.out, "nothing failed")
		return err
	}
	err := a.list(byCategory, "CATEGORY\tNODE\tSINCE\tVERSION\tRUN\tREASON", func(w io.Writer) {
		for _, c := range state.Categories() {
			for _, f := range byCategory[c] {
				version := state.Version{ID: f.Version, Release: f.Release}
				reason := shorten(f.Reason, reasonRoom(w))
				if f.Clear != "" {
					reason += "; " + f.Clear
				}
				if f.Log != "" {
					reason += "; log: " + f.Log
				}
				fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", c, f.Node, age(w, f.Time), &version, orDash(f.Run), reason)
			}
		}
	})
	if err == nil && n > 0 {
		err = &exit{agent.ExitError, nil}
	}
	return err
}
