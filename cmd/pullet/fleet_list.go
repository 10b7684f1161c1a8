package main

import (
	"context"
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
			return a.onFleet(cmd, func(ctx context.Context, store *state.Store) error { return a.listFleet(ctx, store) })
		},
	}
}
