package main

import (
	"github.com/spf13/cobra"
)

func fleetCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use: "fleet", GroupID: "fleet", Args: noArgs,
		Short: "Make a fleet with its own datastore, let hosts in",
		Long: "A fleet that pullet keeps has a datastore: an etcd with TLS, on one host, to which only those connect\n" +
			"who have a certificate of the fleet. Fleet create makes it, fleet invite prints the line with which a\n" +
			"host or a person joins, and fleet revoke shuts somebody out. docs/fleet.md has the whole way.",
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	c.AddCommand(fleetCreateCommand(a), fleetInviteCommand(a), fleetAddCommand(a), fleetRevokeCommand(a),
		fleetListCommand(a), fleetMinimumCommand(a), fleetRotateCommand(a), fleetRolesCommand(a))
	return c
}

// fleetCmd is pullet fleet.
type fleetCmd struct{ *app }
