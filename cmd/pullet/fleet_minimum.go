package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pullet/pullet/internal/agent"
	"github.com/pullet/pullet/internal/safetext"
	"github.com/pullet/pullet/state"
)

func fleetMinimumCommand(a *app) *cobra.Command {
	var raise, lower bool
	c := &cobra.Command{
		Use: "minimum", Args: noArgs,
		Short: "Show or set the format of the record that every pullet must read",
		Long: "Hosts with two releases of pullet in a row share one record: the newer one writes nothing that the older\n" +
			"one cannot read. Minimum shows which pullets the hosts run, and the format of the record that each reads.\n" +
			"Once everybody reads a newer format, --raise makes that the minimum of the fleet. From then on newer\n" +
			"pullets use what it brings, and hosts and people with an older pullet are refused.\n" +
			"--lower takes back a minimum that is higher than what this pullet reads. What newer pullets wrote and\n" +
			"this one cannot read is left out then: a gate, a hold or an event may be forgotten. Pause the fleet first.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case raise && lower:
				return usage(errors.New("--raise and --lower exclude each other"))
			case raise:
				return a.steers(cmd, fleetCmd{a}.raiseMinimum)
			case lower:
				return a.onRecord(cmd, agent.OpenAnyFormat, fleetCmd{a}.lowerMinimum)
			}
			return a.onFleet(cmd, fleetCmd{a}.minimum)
		},
	}
	c.Flags().BoolVar(&raise, "raise", false, "raise it to the newest format this pullet reads; everybody must read it")
	c.Flags().BoolVar(&lower, "lower", false, "lower it to the newest format this pullet reads, whoever wrote more")
	return c
}

// minimumView is which pullets a fleet runs, and which it needs.
type minimumView struct {
	Minimum state.Minimum  `json:"minimum"` // without a release where it was never raised
	Reads   int            `json:"reads"`   // the format that this pullet reads
	Pullets []programGroup `json:"pullets"`
}

// programGroup is the hosts that run one program.
type programGroup struct {
	Program string   `json:"program"` // version of pullet; pullet-etcd for what carries the datastore
	Format  int      `json:"format"`  // that it reads
	Nodes   []string `json:"nodes"`
}

// programsLine says how many hosts run which program.
func programsLine(groups []programGroup) string {
	var out []string
	for _, g := range groups {
		out = append(out, fmt.Sprintf("%s (format %d) on %s", cmp.Or(g.Program, "unknown"), g.Format,
			count(len(g.Nodes), "node")))
	}
	return safetext.Some(out, 4)
}

// programsOf groups hosts by what they run, the oldest format first.
func programsOf(hosts []state.Reader) []programGroup {
	out := []programGroup{}
	for _, n := range hosts {
		at := slices.IndexFunc(out, func(g programGroup) bool { return g.Program == n.Program && g.Format == n.Format })
		if at < 0 {
			at = len(out)
			out = append(out, programGroup{Program: n.Program, Format: n.Format})
		}
		out[at].Nodes = append(out[at].Nodes, n.Node)
	}
	slices.SortFunc(out, func(a, b programGroup) int {
		return cmp.Or(cmp.Compare(a.Format, b.Format), strings.Compare(a.Program, b.Program))
	})
	return out
}

func (a fleetCmd) minimum(ctx context.Context, store *state.Store) error {
	m, hosts, err := store.Nodes.Readers(ctx)
	if err != nil {
		return err
	}
	v := minimumView{m, state.Format, programsOf(hosts)}
	if done, err := a.structured(v); done || err != nil {
		return err
	}
	fmt.Fprintln(a.out, minimumLine(a.out, m))
	if err := a.list(v, "PULLET\tREADS\tNODES", func(w io.Writer) {
		for _, g := range v.Pullets {
			fmt.Fprintf(w, "%s\tformat %d\t%d: %s\n", orDash(g.Program), g.Format, len(g.Nodes), safetext.Some(g.Nodes, 5))
		}
	}); err != nil {
		return err
	}
	if len(v.Pullets) > 0 && m.Format < v.Reads && v.Pullets[0].Format >= v.Reads {
		fmt.Fprintf(a.out, "everybody reads format %d; once no node needs to go back to an older pullet, run: "+
			"pullet fleet minimum --raise\n", v.Reads)
	}
	return nil
}

// minimumLine says what the minimum is.
func minimumLine(w io.Writer, m state.Minimum) string {
	if m.Release == "" {
		return fmt.Sprintf("minimum: format %d, which every pullet reads", m.Format)
	}
	return fmt.Sprintf("minimum: format %d, which pullet %s reads, set by %s %s", m.Format, m.Release, m.By, when(w, m.At))
}

func (a fleetCmd) raiseMinimum(ctx context.Context, store *state.Store) error {
	m, err := store.Nodes.RaiseMinimum(ctx, a.operator(), build().Version)
	return a.showMinimum(m, err)
}

func (a fleetCmd) lowerMinimum(ctx context.Context, store *state.Store) error {
	m, err := store.Nodes.LowerMinimum(ctx, a.operator(), build().Version)
	return a.showMinimum(m, err)
}

func (a fleetCmd) showMinimum(m state.Minimum, err error) error {
	if err != nil {
		return err
	}
	if done, err := a.structured(m); done || err != nil {
		return err
	}
	_, err = fmt.Fprintln(a.out, minimumLine(a.out, m))
	return err
}
