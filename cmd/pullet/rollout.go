package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pullet/pullet/internal/datastore"
	"github.com/pullet/pullet/state"
)

func rolloutCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use: "rollout", GroupID: "fleet", Args: noArgs,
		Short: "Steer the fleet's move to a version",
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	c.AddCommand(
		startCommand(a), followCommand(a), rolloutStatusCommand(a), rolloutWatchCommand(a), rolloutHistoryCommand(a),
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
			"those that are listed there and decommissioned. The fleet's datastore moves away from a node that\n" +
			"carries it, as with pullet datastore move.",
		RunE: func(cmd *cobra.Command, args []string) error {
			err := a.steers(
				cmd,
				func(ctx context.Context, store *state.Store) error {
					return steerCmd{a}.decommission(ctx, store, args[0], force)
				},
			)
			return a.unlessFull(err, "pullet decommission --force "+args[0], func(c datastore.Config) error {
				done, err := datastore.Shut(cmd.Context(), c, args[0], a.operator())
				if err == nil {
					err = steerCmd{a}.decommissioned(args[0], done.GivenUp, "; the datastore was full")
				}
				return err
			})
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
	hint := ""
	o, unread := store.Views.Fleet(ctx, false) // it is done: what cannot be read now is only a hint
	if unread == nil && slices.Contains(stillListed(o), node) {
		hint = "; it is still listed under nodes/: remove it there"
	}
	carried, err := a.movesAway(ctx, store, node)
	err = errors.Join(a.decommissioned(node, done, hint+carried), err)
	if late := store.Identities.AwaitRevoked(ctx, node); late != nil {
		err = errors.Join(err,
			fmt.Errorf("the certificate of %s counts until the keeper comes back (pullet etcd): %w", node, late))
	}
	return err
}

// movesAway has the datastore leave a host that was given up, where it carries that, and says so.
func (a steerCmd) movesAway(ctx context.Context, store *state.Store, node string) (string, error) {
	d, err := store.Datastores.All(ctx)
	if err != nil || d.Wanted == nil {
		return "", err
	}
	members, err := datastore.Members(ctx, store.Client)
	if err != nil || !carries(members, node) {
		return "", err
	}
	err = store.Datastores.Move(ctx, node, false)
	return "; the datastore moves away from it as soon as another host is ready", err
}

// decommissioned says what came of a node, with a hint.
func (a steerCmd) decommissioned(node string, done state.GivenUp, hint string) error {
	fmt.Fprintf(a.out, "%s is decommissioned", node)
	if done.By != "" {
		fmt.Fprintf(a.out, " (it was already, by %s %s ago)", done.By, ago(done.At))
	}
	if len(done.Freed) > 0 {
		fmt.Fprintf(a.out, "; freed %s", strings.Join(done.Freed, ", "))
	}
	_, err := fmt.Fprintln(a.out, hint)
	for _, step := range done.Began {
		const text = "  %s began %s, and its end is not on record: look at %[1]s; %[3]s\n"
		fmt.Fprintf(a.out, text, node, step, state.SettleHint(step))
	}
	return err
}
