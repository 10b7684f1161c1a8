package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pullet/pullet/safetext"
	"github.com/pullet/pullet/state"
)

func fleetMinimumCommand(a *app) *cobra.Command {
	var raise bool
	c := &cobra.Command{
		Use: "minimum", Args: noArgs,
		Short: "Show or raise the format that every pullet of the fleet must read",
		Long: "Hosts with two releases of pullet in a row share one record: the newer one writes nothing that the older\n" +
			"one cannot read. Minimum shows which pullets the nodes run, and the format of the record that each reads.\n" +
			"Once every node reads a newer format, --raise makes that the minimum of the fleet. From then on newer\n" +
			"pullets use what it brings, and hosts and people with an older pullet are refused: there is no way back\n" +
			"to the release before.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if raise {
				return a.steers(cmd, fleetCmd{a}.raiseMinimum)
			}
			return a.onFleet(cmd, fleetCmd{a}.minimum)
		},
	}
	c.Flags().BoolVar(&raise, "raise", false, "to what this pullet reads, if every node reads it")
	return c
}

// minimumView is which pullets a fleet runs, and which it needs.
type minimumView struct {
	Minimum state.Minimum `json:"minimum"` // without a release where it was never raised
	Reads   int           `json:"reads"`   // the format that this pullet reads
	Pullets []pulletGroup `json:"pullets"`
}

// pulletGroup is the nodes that run one pullet.
type pulletGroup struct {
	Pullet string   `json:"pullet"` // version
	Format int      `json:"format"` // that it reads
	Nodes  []string `json:"nodes"`
}

// pulletsOf groups nodes by what they run, the oldest format first.
func pulletsOf(nodes []state.Reader) []pulletGroup {
	out := []pulletGroup{}
	for _, n := range nodes {
		at := slices.IndexFunc(out, func(g pulletGroup) bool { return g.Pullet == n.Pullet && g.Format == n.Format })
		if at < 0 {
			at = len(out)
			out = append(out, pulletGroup{Pullet: n.Pullet, Format: n.Format})
		}
		out[at].Nodes = append(out[at].Nodes, n.Node)
	}
	slices.SortFunc(out, func(a, b pulletGroup) int {
		return cmp.Or(cmp.Compare(a.Format, b.Format), strings.Compare(a.Pullet, b.Pullet))
	})
	return out
}

// pulletsOn says how many nodes run which pullet.
func pulletsOn(groups []pulletGroup) string {
	var out []string
	for _, g := range groups {
		out = append(out, fmt.Sprintf("%s on %s", cmp.Or(g.Pullet, "unknown"), count(len(g.Nodes), "node")))
	}
	return safetext.Some(out, 4)
}

func (a fleetCmd) minimum(ctx context.Context, store *state.Store) error {
	m, nodes, err := store.Nodes.Readers(ctx)
	if err != nil {
		return err
	}
	v := minimumView{m, state.Format, pulletsOf(nodes)}
	if done, err := a.structured(v); done || err != nil {
		return err
	}
	fmt.Fprintln(a.out, v.line(a.out))
	if err := a.list(v, "PULLET\tREADS\tNODES", func(w io.Writer) {
		for _, g := range v.Pullets {
			fmt.Fprintf(w, "%s\tformat %d\t%d: %s\n", orDash(g.Pullet), g.Format, len(g.Nodes), safetext.Some(g.Nodes, 5))
		}
	}); err != nil {
		return err
	}
	if len(v.Pullets) > 0 && m.Format < v.Reads && v.Pullets[0].Format >= v.Reads {
		fmt.Fprintf(a.out, "every node reads format %d; when none has to go back to an older pullet: "+
			"pullet fleet minimum --raise\n", v.Reads)
	}
	return nil
}

// line says what the minimum is.
func (v minimumView) line(w io.Writer) string {
	if v.Minimum.Release == "" {
		return fmt.Sprintf("minimum: format %d, which every pullet reads", v.Minimum.Format)
	}
	return fmt.Sprintf("minimum: format %d, which pullet %s reads, raised by %s %s", v.Minimum.Format, v.Minimum.Release,
		v.Minimum.By, when(w, v.Minimum.At))
}

func (a fleetCmd) raiseMinimum(ctx context.Context, store *state.Store) error {
	m, err := store.Nodes.RaiseMinimum(ctx, a.operator(), build().Version)
	if err != nil {
		return err
	}
	v := minimumView{Minimum: m}
	if done, err := a.structured(m); done || err != nil {
		return err
	}
	_, err = fmt.Fprintln(a.out, v.line(a.out))
	return err
}
