package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/pullet/pullet/internal/authority"
	"github.com/pullet/pullet/internal/datastore"
	"github.com/pullet/pullet/state"
)

func fleetRevokeCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "revoke NAME", Args: arguments(cobra.ExactArgs(1)),
		Short: "Shut a person out: its certificates count no more",
		Long: "Revoke has the keeper of the datastore remove somebody's user and list the certificates as revoked. For\n" +
			"a host use pullet decommission, which does this, too, and frees what the host holds.",
		RunE: func(cmd *cobra.Command, args []string) error {
			err := a.steers(cmd, func(ctx context.Context, store *state.Store) error {
				return fleetCmd{a}.revoke(ctx, store, args[0])
			})
			return a.unlessFull(err, "pullet fleet revoke "+args[0], func(c datastore.Config) error {
				_, err := datastore.Shut(cmd.Context(), c, args[0], a.operator())
				if err == nil {
					fmt.Fprintf(a.out, "%s is revoked\n", args[0])
				}
				return err
			})
		},
	}
}

func (a fleetCmd) revoke(ctx context.Context, store *state.Store, name string) error {
	all, err := store.Identities.All(ctx)
	if err != nil {
		return err
	}
	id, known := all.Identities[name]
	switch {
	case !known:
		return fmt.Errorf("nobody in the fleet has the name %s: pullet fleet list", name)
	case id.Kind == authority.Node:
		return fmt.Errorf("%s is a host: pullet decommission %s", name, name)
	}
	if err := store.Identities.Revoke(ctx, name); err != nil {
		return err
	}
	if err := store.Identities.AwaitRevoked(ctx, name); err != nil {
		return fmt.Errorf("%s is not revoked yet, the keeper does it when it comes back (pullet etcd): %w", name, err)
	}
	fmt.Fprintf(a.out, "%s is revoked\n", name)
	return nil
}
