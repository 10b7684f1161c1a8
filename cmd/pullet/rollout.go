package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

func (a *app) rolloutCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "rollout", GroupID: "fleet", Args: noArgs,
		Short: "Steer the fleet's move to a version",
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	c.AddCommand(
		a.startCommand(), a.followCommand(), a.rolloutStatusCommand(), a.rolloutHistoryCommand(),
		a.pauseCommand(), a.resumeCommand(), a.failCommand(), a.undoCommand(),
	)
	return c
}

func (a *app) decommissionCommand() *cobra.Command {
	var force bool
	c := &cobra.Command{
		Use: "decommission NODE", GroupID: "fleet",
		Args:  func(cmd *cobra.Command, args []string) error { return usage(cobra.ExactArgs(1)(cmd, args)) },
		Short: "Give a node up: free its slot and forget that it should answer",
		Long: "Decommission takes a node that will not come back out of the fleet's record: its slot is freed and nobody waits for it any more.\n" +
			"It is recorded. A node that comes back registers again at its next pull; one that is listed under nodes/ stays expected\n" +
			"by later versions until it is removed there.",
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			store, err := a.openStore(cmd.Context())
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, store.Close()) }()
			freed, err := store.Decommission(cmd.Context(), args[0], operator(), force)
			if err != nil {
				return err
			}
			fmt.Fprintf(a.out, "%s is decommissioned", args[0])
			if len(freed) > 0 {
				fmt.Fprintf(a.out, "; freed %s", strings.Join(freed, ", "))
			}
			fmt.Fprintln(a.out)
			return nil
		},
	}
	c.Flags().BoolVar(&force, "force", false, "also a node that counts as alive: its lease has not ended")
	return c
}
