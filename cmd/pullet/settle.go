package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/pullet/pullet/state"
)

func (a *app) settleCommand() *cobra.Command {
	var done, again bool
	c := &cobra.Command{
		Use: "settle STEP", Args: arguments(cobra.ExactArgs(1)),
		Short: "Say what became of a targeted step whose result is unknown",
		Long: "Settle replaces what the fleet's record says of a step that chosen nodes take for all (target), named job/step. With --done the step did its\n" +
			"work, and nobody runs it again; steps that read its result find an empty one. With --again the chosen node runs it once more at its next\n" +
			"pull, also when it succeeded before. Where that node was decommissioned another one takes its place, as soon as every step that it started\n" +
			"under the same target is to run again: pullet status names them. Settle works on the fleet's version, and on steps that run once in the\n" +
			"fleet's life. A group that was halted because of the step goes on.",
		Example: "  pullet rollout settle database/migrate --done",
		RunE: func(cmd *cobra.Command, args []string) error {
			if done == again {
				return &exit{exitUsage, errors.New("say what became of the step: --done (it did its work) or --again (run it again)")}
			}
			return a.steers(cmd, func(ctx context.Context, store *state.Store) error { return a.settle(ctx, store, args[0], done) })
		},
	}
	c.Flags().BoolVar(&done, "done", false, "it did its work: record it as a success")
	c.Flags().BoolVar(&again, "again", false, "run it again: forget what is on record of it")
	return c
}

func (a *app) settle(ctx context.Context, store *state.Store, step string, did bool) error {
	settled, err := store.Settle(ctx, step, operator(), did)
	if err != nil {
		return err
	}
	if done, err := a.structured(settled); done || err != nil {
		return err
	}
	what := "is to run again"
	if did {
		what = "is done"
	}
	fmt.Fprintf(a.out, "%s %s on %s", step, what, shownNames(settled.Nodes, 10))
	for i, group := range settled.Resumed {
		fmt.Fprint(a.out, map[bool]string{true: "; resumed: ", false: ", "}[i == 0], group.Scope())
	}
	_, err = fmt.Fprintln(a.out)
	return err
}
