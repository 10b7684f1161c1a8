package main

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/pullet/pullet/internal/agent"
)

func datastoreCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use: "datastore", GroupID: "node", Args: noArgs,
		Short: "Look after the fleet's datastore",
		Long:  "The commands are for the datastore that hosts of the fleet carry, with pullet etcd: docs/datastore.md.",
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	c.AddCommand(datastoreStatusCommand(a), datastoreMoveCommand(a), datastoreBackupCommand(a), datastoreRecoverCommand(a))
	return c
}

// datastoreCmd is pullet datastore.
type datastoreCmd struct{ *app }

// keeping is the configuration of this host, which keeps the datastore.
func (a datastoreCmd) keeping() (agent.Config, error) {
	c, err := a.readConfig()
	if err == nil && !c.Datastore.Set() {
		err = errors.New("this host keeps no datastore: run it on the host that does")
	}
	return c, err
}
