package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/pullet/pullet/lock/arbiter"
	"github.com/pullet/pullet/state"
)

func reactionCancelCommand(a *app) *cobra.Command {
	var reason string
	c := &cobra.Command{
		Use: "cancel RUN", Args: arguments(cobra.ExactArgs(1)),
		Short: "Take a run of a reaction out of the fleet",
		Long: "Cancel ends a run of a reaction. Hosts that have not begun leave it. Hosts that wait for others in the\n" +
			"middle of it end it as failed. Hosts that are in a step end the run first. A version that waits for the\n" +
			"run goes on.",
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.steers(cmd, func(ctx context.Context, store *state.Store) error {
				run, did, err := arbiter.Cancel(ctx, store, args[0], steerCmd{a}.operator(), reason)
				if err != nil {
					return err
				}
				if done, err := a.structured(run); done || err != nil {
					return err
				}
				_, err = fmt.Fprintln(a.out, did)
				return err
			})
		},
	}
	c.Flags().StringVar(&reason, "reason", "", "why, for those who look at the run")
	return c
}
