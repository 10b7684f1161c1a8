package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/pullet/pullet/internal/datastore"
)

func datastoreBackupCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "backup [TO]", Args: arguments(cobra.MaximumNArgs(1)),
		Short: "Make a backup of the fleet's record",
		Long: "Backup writes the whole record of the fleet, as the datastore of this host has it, into a file in the\n" +
			"directory TO, or puts it below the https URL TO. Without TO it goes where datastore.backup.to of the\n" +
			"configuration says; with datastore.backup.every pullet etcd makes backups by itself. With\n" +
			"datastore.backup.recipients it is encrypted for them, and holds the key of the fleet's authority.\n" +
			"pullet etcd --restore FILE goes on from a backup.",
		RunE: func(cmd *cobra.Command, args []string) error {
			return datastoreCmd{a}.backup(cmd.Context(), append(args, "")[0])
		},
	}
}

func (a datastoreCmd) backup(ctx context.Context, to string) error {
	c, err := a.keeping()
	if err != nil {
		return err
	}
	if to = cmp.Or(to, c.Datastore.Backup.To); to == "" {
		return usage(errors.New("say where it goes: pullet datastore backup TO, or datastore.backup.to in the configuration"))
	}
	made, err := datastore.Backup(ctx, c.Datastore, c.Fleet, to, time.Now())
	if err != nil {
		return err
	}
	fmt.Fprintf(a.out, "backed up the fleet %s to %s: %s, %d KiB, revision %d of the record\n",
		c.Fleet, made.To, made.Name, (made.Size+1023)>>10, made.Revision)
	if !made.Sealed {
		fmt.Fprintf(a.out, "it is not encrypted, and without the key of the authority: keep %s apart\n",
			c.Datastore.AuthorityFile())
	}
	return nil
}
