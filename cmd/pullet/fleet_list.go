package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/pullet/pullet/state"
)

func fleetListCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "list", Args: noArgs,
		Short: "List who may connect to the datastore, and who is invited",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.onFleet(
				cmd,
				func(ctx context.Context, store *state.Store) error { return fleetCmd{a}.listFleet(ctx, store) },
			)
		},
	}
}

// member is somebody who may connect, or is invited to.
type member struct {
	Name    string    `json:"name"`
	Kind    string    `json:"kind"`
	Invited string    `json:"invitedBy"`
	Issued  time.Time `json:"issued,omitzero"` // the certificate that it got last
	Until   time.Time `json:"until"`           // when that one, or the invitation, ends
	State   string    `json:"state"`           // joined, invited
}

// listFleet lists the members by their names.
func (a fleetCmd) listFleet(ctx context.Context, store *state.Store) error {
	all, err := store.Identities.All(ctx)
	if err != nil {
		return err
	}
	out := []member{}
	for _, name := range slices.Sorted(maps.Keys(all.Identities)) {
		i := all.Identities[name]
		out = append(out, member{name, string(i.Kind), i.By, i.At, i.Ends(), "joined"})
	}
	for _, id := range slices.Sorted(maps.Keys(all.Invitations)) {
		i := all.Invitations[id]
		out = append(out, member{Name: i.Name, Kind: string(i.Kind), Invited: i.By, Until: i.Until, State: "invited"})
	}
	return a.list(out, "NAME\tKIND\tSTATE\tUNTIL\tINVITED BY", func(w io.Writer) {
		for _, m := range out {
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", m.Name, m.Kind, m.State, stamp(m.Until), orDash(m.Invited))
		}
	})
}
