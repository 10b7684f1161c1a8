package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pullet/pullet/datastore"
)

func fleetRotateCommand(a *app) *cobra.Command {
	var finish bool
	c := &cobra.Command{
		Use: "rotate", Args: noArgs,
		Short: "Put another authority for certificates in the place of the fleet's",
		Long: "Rotate makes a new authority beside the one before, which vouches for it. Each host gets a certificate\n" +
			"of the new one at its next two pulls, each operator with two commands. When everybody has one, the\n" +
			"former authority counts no more. It runs on the host that keeps the datastore; run it again to see\n" +
			"who is waited for. The datastore starts anew twice, and no host begins an upgrade for 45 seconds then.",
		RunE: func(cmd *cobra.Command, _ []string) error { return fleetCmd{a}.rotate(cmd.Context(), finish) },
	}
	c.Flags().BoolVar(&finish, "finish", false, "end it although somebody has none: who is left has to be invited again")
	return c
}

func (a fleetCmd) rotate(ctx context.Context, finish bool) error {
	c, err := a.readConfig()
	if err != nil {
		return err
	}
	if !c.Datastore.Set() {
		return errors.New("this host keeps no datastore: run it on the host that does")
	}
	done, err := datastore.Rotate(ctx, c.Datastore, finish)
	if err != nil {
		return err
	}
	left := strings.Join(done.Waiting, ", ")
	switch {
	case done.Finished && left != "":
		fmt.Fprintf(a.out, "the former authority counts no more; to be invited again: %s\n", left)
	case done.Finished:
		fmt.Fprintln(a.out, "the former authority counts no more")
	case done.Begun:
		fmt.Fprintf(a.out, "a new authority signs now; it is waited for: %s\n", left)
		fmt.Fprintf(a.out, "keep a copy of the new authority.pem in %s offline\n", c.Datastore.Dir)
	default:
		fmt.Fprintf(a.out, "a rotation is under way; it is waited for: %s\n", left)
	}
	return nil
}
