package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pullet/pullet/internal/datastore"
	"github.com/pullet/pullet/state"
)

func fleetRotateCommand(a *app) *cobra.Command {
	var finish bool
	c := &cobra.Command{
		Use: "rotate", Args: noArgs,
		Short: "Put another authority for certificates in the place of the fleet's",
		Long: "Rotate makes a new authority beside the one before, which vouches for it. The members of the datastore\n" +
			"learn to believe it first, then it signs: each host gets a certificate of it at its next pulls, each\n" +
			"operator with two commands. When everybody has one, the former authority counts no more. It runs on a\n" +
			"host that carries the datastore; run it again to see who is waited for. Each member starts anew twice, one\n" +
			"at a time, and no host begins an upgrade for 45 seconds then.",
		RunE: func(cmd *cobra.Command, _ []string) error { return fleetCmd{a}.rotate(cmd.Context(), finish) },
	}
	c.Flags().BoolVar(&finish, "finish", false, "do not wait for hosts and people: who is left has to be invited again")
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
	a.printRotated(done, finish)
	if done.Begun {
		when := ""
		if done.Phase == state.RotationBelieve {
			when = ", when it signs"
		}
		fmt.Fprintf(a.out, "keep a copy of the new authority.pem in %s offline%s\n", c.Datastore.Dir, when)
	}
	return nil
}

// printRotated says how far a rotation is, and who is waited for.
func (a fleetCmd) printRotated(r datastore.Rotated, finish bool) {
	left, members := strings.Join(r.Waiting, ", "), strings.Join(r.Members, ", ")
	what := "a rotation is under way"
	if r.Begun {
		what = "a new authority is made"
	}
	switch r.Phase {
	case state.RotationBelieve:
		fmt.Fprintf(a.out, "%s; it signs when all members believe it, and waits for: %s\n", what, members)
	case state.RotationSign:
		if r.Begun {
			what = "a new authority signs now"
		}
		fmt.Fprintf(a.out, "%s; it is waited for: %s\n", what, left)
	case state.RotationPresent:
		fmt.Fprintf(a.out, "%s; the former authority counts until all members have a certificate of the new one, "+
			"and waits for: %s\n", what, members)
	case state.RotationEnd:
		fmt.Fprintln(a.out, "the former authority counts no more")
		if members != "" {
			fmt.Fprintf(a.out, "but on %s: each starts anew when all others answer\n", members)
		}
	}
	if finish && left != "" {
		fmt.Fprintf(a.out, "to be invited again: %s\n", left)
	}
	if finish && members != "" {
		fmt.Fprintln(a.out, "no member is shut out: bring back who is away, or wait until another host took its place: "+
			"pullet datastore status")
	}
}
