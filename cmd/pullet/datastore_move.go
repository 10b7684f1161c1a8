package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/pullet/pullet/internal/datastore"
	"github.com/pullet/pullet/state"
)

func datastoreMoveCommand(a *app) *cobra.Command {
	var stay bool
	c := &cobra.Command{
		Use: "move NODE", Args: arguments(cobra.ExactArgs(1)),
		Short: "Move the datastore away from a host",
		Long: "Move has another host become a member first, and the named one leave then. It says what is done, and does\n" +
			"not wait for it: pullet datastore status. With --stay a host that has not left yet stays.",
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.steers(cmd, func(ctx context.Context, store *state.Store) error {
				return datastoreCmd{a}.move(ctx, store, args[0], stay)
			})
		},
	}
	c.Flags().BoolVar(&stay, "stay", false, "the host stays a member after all")
	return c
}

// carries reports a host with a member.
func carries(members []datastore.Member, node string) bool {
	return slices.ContainsFunc(members, func(m datastore.Member) bool { return m.Node == node })
}

func (a datastoreCmd) move(ctx context.Context, store *state.Store, node string, stay bool) error {
	members, err := datastore.Members(ctx, store.Client)
	if err != nil {
		return err
	}
	if !carries(members, node) {
		return fmt.Errorf("%s does not carry the datastore: pullet datastore status", node)
	}
	d, err := store.Datastores.All(ctx)
	if err != nil {
		return err
	}
	if d.Wanted == nil {
		return fmt.Errorf("the repository does not say which hosts may carry the datastore: add " +
			"config: {dataStore: {type: etcd, count: 3}} to pullet.yaml")
	}
	if err := store.Datastores.Move(ctx, node, stay); err != nil {
		return err
	}
	if stay {
		fmt.Fprintf(a.out, "%s stays a member of the datastore\n", node)
		return nil
	}
	fmt.Fprintf(a.out,
		"the datastore moves away from %s as soon as another host is ready: pullet datastore status\n", node)
	return nil
}
