package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pullet/pullet/cmd/pullet/fleetnames"
	"github.com/pullet/pullet/internal/agent"
	"github.com/pullet/pullet/state"
)

func verifyCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "verify VERSION [NODE...]", GroupID: "fleet",
		Args:  arguments(cobra.MinimumNArgs(1)),
		Short: "Check that nodes run a version; the ones that do not are named",
		Long: "Verify takes the nodes as arguments, or from its input, one or more a line. An empty list is an\n" +
			"error, so that a list that could not be made does not pass.\n" +
			"\n" +
			"EXIT STATUS\n" +
			"  0  all of them run it\n" +
			"  1  some do not, or an error\n" +
			"  64 the command line is wrong, or the list is empty",
		RunE: func(cmd *cobra.Command, args []string) error {
			nodes, err := nodeList(args[1:], cmd.InOrStdin())
			if err != nil {
				return err
			}
			return a.onFleet(
				cmd,
				func(ctx context.Context, store *state.Store) error { return a.verify(ctx, store, args[0], nodes) },
			)
		},
	}
}

// nodeList are the nodes of the arguments or else of the input.
func nodeList(args []string, in io.Reader) ([]string, error) {
	if f, ok := in.(*os.File); len(args) == 0 && !(ok && terminal(f)) {
		text, err := io.ReadAll(in)
		if err != nil {
			return nil, fmt.Errorf("the list of nodes: %w", err)
		}
		args = strings.Fields(string(text))
	}
	if len(args) == 0 {
		return nil, usage(errors.New("the list of nodes is empty: name them, or write them to the input"))
	}
	return args, nil
}

// absentee is a node that does not run a version.
type absentee struct {
	Node string `json:"node"`
	Runs string `json:"runs,omitempty"`
	Why  string `json:"why"`
}

// verified is which of so many nodes do not run a version.
type verified struct {
	Version string     `json:"version"`
	Nodes   int        `json:"nodes"`
	Missing []absentee `json:"missing"`
}

func (a *app) verify(ctx context.Context, store *state.Store, name string, nodes []string) error {
	o, err := store.Views.Fleet(ctx, false)
	if err != nil {
		return err
	}
	version, err := knownVersion(ctx, store, o, name)
	if err != nil {
		return err
	}
	fleet := viewOf(o)
	absent := []absentee{}
	for _, node := range nodes {
		runs, known := o.Running[node]
		_, listed := o.Listed[node]
		switch _, registered := o.Nodes[node]; {
		case runs == version.ID && o.Midway(node):
			absent = append(absent, absentee{node, runs, "is in the middle of an upgrade"})
		case runs == version.ID:
		case known:
			absent = append(absent, absentee{node, runs, "runs " + fleet.versionName(runs)})
		case registered:
			absent = append(absent, absentee{node, "", "runs no version yet"})
		case listed && o.Gone[node]:
			absent = append(absent, absentee{node, "", "was decommissioned"})
		case listed:
			absent = append(absent, absentee{node, "", "was never seen"})
		default:
			hint := fleetnames.Suggestion(node, fleetnames.Nodes(o))
			absent = append(absent, absentee{node, "", "is not in this fleet" + hint})
		}
	}
	done, err := a.structured(verified{version.ID, len(nodes), absent})
	if err != nil {
		return err
	}
	if !done {
		fmt.Fprintf(a.out, "%d of %s run %s\n", len(nodes)-len(absent), count(len(nodes), "node"), withCommit(&version))
		for _, n := range absent {
			fmt.Fprintf(a.out, "%s %s\n", n.Node, n.Why)
		}
	}
	if len(absent) > 0 {
		return &exit{agent.ExitError, nil}
	}
	return nil
}
