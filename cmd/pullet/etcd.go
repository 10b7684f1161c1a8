package main

import (
	"context"
	"errors"

	"github.com/coreos/go-systemd/v22/daemon"
	"github.com/spf13/cobra"

	"github.com/pullet/pullet/internal/agent"
	"github.com/pullet/pullet/internal/datastore"
)

func etcdCommand(a *app) *cobra.Command {
	var o restoring
	cmd := &cobra.Command{
		Use: "etcd", GroupID: "node", Args: noArgs,
		Short: "Serve the fleet's datastore on this host",
		Long: "Etcd serves the datastore that pullet fleet create made: the etcd, and the door at which hosts with an\n" +
			"invitation join. It also renews certificates, and shuts out who was revoked. It runs as a unit of its\n" +
			"own, pullet-etcd.service, so that what happens to the agent does not happen to the datastore. On a host\n" +
			"that carries the datastore no more it ends at once, without an error. With --restore it serves nothing,\n" +
			"and makes the record anew from a backup: docs/datastore.md.",
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
			return datastoreCmd{a}.serve(cmd.Context(), c)
		},
	}
	cmd.Flags().StringVar(&o.from, "restore", "", "make the fleet's record from this backup, and end")
	cmd.Flags().StringArrayVarP(&o.identities, "identity", "i", nil,
		"a file with a private key that opens an encrypted backup; several times for several")
	return cmd
}

// serve serves until it is told to end, or this host carries the datastore no more.
func (a datastoreCmd) serve(ctx context.Context, c agent.Config) (err error) {
	a.verbose = max(a.verbose, 1)
	ready := func() { _, _ = daemon.SdNotify(false, daemon.SdNotifyReady) } // without systemd nobody listens
	if c.Datastore.Left() {
		a.logger().Info("this host carries the datastore no more: another one took its place")
	} else {
		err = datastore.Run(ctx, datastore.Options{
			Config: c.Datastore, Fleet: c.Fleet, Node: c.Node.Name, Log: a.logger(), Invited: c.Invited, Serving: ready,
		})
	}
	if err == nil {
		ready() // an end without an error is one for systemd, where it never heard that the unit was up
	}
	return err
}
