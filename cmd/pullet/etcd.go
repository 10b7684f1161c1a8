package main

import (
	"errors"

	"github.com/coreos/go-systemd/v22/daemon"
	"github.com/spf13/cobra"

	"github.com/pullet/pullet/datastore"
)

func etcdCommand(a *app) *cobra.Command {
	var o restoring
	cmd := &cobra.Command{
		Use: "etcd", GroupID: "node", Args: noArgs,
		Short: "Serve the fleet's datastore on this host",
		Long: "Etcd serves the datastore that pullet fleet create made: the etcd, and the door at which hosts with an\n" +
			"invitation join. It also renews certificates, and shuts out who was revoked. It runs as a unit of its\n" +
			"own, pullet-etcd.service, so that what happens to the agent does not happen to the datastore. With\n" +
			"--restore it serves nothing, and makes the record anew from a backup: docs/fleet.md.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.readConfig()
			if err != nil {
				return err
			}
			if !c.Datastore.Set() {
				return errors.New("this host keeps no datastore: pullet fleet create makes one")
			}
			if o.from != "" {
				return datastoreCmd{a}.restore(c, o)
			}
			a.verbose = max(a.verbose, 1)
			return datastore.Run(cmd.Context(), datastore.Options{
				Config: c.Datastore, Fleet: c.Fleet, Node: c.Node.Name, Log: a.logger(), Invited: c.Invited,
				Serving: func() { _, _ = daemon.SdNotify(true, daemon.SdNotifyReady) }, // without systemd nobody listens
			})
		},
	}
	cmd.Flags().StringVar(&o.from, "restore", "", "make the fleet's record from this backup, and end")
	cmd.Flags().StringArrayVarP(&o.identities, "identity", "i", nil,
		"a file with a private key that opens an encrypted backup; several times for several")
	return cmd
}
