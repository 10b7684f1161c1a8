package main

import (
	"github.com/spf13/cobra"
)

func fleetCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use: "fleet", GroupID: "fleet", Args: noArgs,
		Short: "Make a fleet with a datastore of its own, and let hosts and people in",
		Long: "A fleet that pullet keeps has a datastore: an etcd with TLS, on one host, to which only those connect\n" +
			"who have a certificate of the fleet. Fleet create makes it, fleet invite prints the line with which a\n" +
			"host or a person joins, and fleet revoke shuts somebody out. docs/fleet.md has the whole way.",
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	m := membership{a}
	c.AddCommand(
		fleetCreateCommand(m), fleetInviteCommand(m), fleetAddCommand(m), fleetRevokeCommand(m), fleetListCommand(m),
	)
	return c
}

// membership are the commands that let somebody into the fleet, or shut somebody out.
type membership struct{ *app }
