package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pullet/pullet/state"
)

func rolloutCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use: "rollout", GroupID: "fleet", Args: noArgs,
		Short: "Steer the fleet's move to a version",
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	c.AddCommand(
		startCommand(a), followCommand(a), rolloutStatusCommand(a), rolloutHistoryCommand(a),
		pauseCommand(a), resumeCommand(a), failCommand(a), undoCommand(a), settleCommand(a),
	)
	return c
}

func decommissionCommand(a *app) *cobra.Command {
	var force bool
	c := &cobra.Command{
		Use: "decommission NODE", GroupID: "fleet",
		Args:  arguments(cobra.ExactArgs(1)),
		Short: "Give a node up: free its slot and forget that it should answer",
		Long: "Decommission takes a node that will not come back out of the fleet's record: its slot is freed and\n" +
			"nobody waits for it any more. It is recorded. A node that comes back registers again at its next\n" +
			"pull. This also gives up a node that is listed under nodes/ and never came; pullet status names\n" +
			"those that are listed there and decommissioned.",
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.steers(
				cmd,
				func(ctx context.Context, store *state.Store) error {
					return steerCmd{a}.decommission(ctx, store, args[0], force)
				},
			)
		},
	}
	c.Flags().BoolVar(&force, "force", false, "also a node that counts as alive: its lease has not ended")
	return c
}

func (a steerCmd) decommission(ctx context.Context, store *state.Store, node string, force bool) error {
	done, err := store.Nodes.Decommission(ctx, node, a.operator(), force)
	if err != nil {
		return err
	}
	fmt.Fprintf(a.out, "%s is decommissioned", node)
	if done.By != "" {
		fmt.Fprintf(a.out, " (it was already, by %s %s ago)", done.By, ago(done.At))
	}
	if len(done.Freed) > 0 {
		fmt.Fprintf(a.out, "; freed %s", strings.Join(done.Freed, ", "))
	}
	o, unread := store.Views.Fleet(ctx, false) // it is done: what cannot be read now is only a hint
	if unread == nil && slices.Contains(stillListed(o), node) {
		fmt.Fprint(a.out, "; it is still listed under nodes/: remove it there")
	}
	_, err = fmt.Fprintln(a.out)
	if late := store.Identities.AwaitRevoked(ctx, node); late != nil {
		err = fmt.Errorf("the certificate of %s counts until the keeper comes back (pullet etcd): %w", node, late)
	}
	for _, step := range done.Began {
		const text = "  %s began %s, and its end is not on record: look at %[1]s; %[3]s\n"
		fmt.Fprintf(a.out, text, node, step, state.SettleHint(step))
	}
	return err
}
