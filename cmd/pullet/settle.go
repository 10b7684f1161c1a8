package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/pullet/pullet/internal/safetext"
	"github.com/pullet/pullet/state"
)

// settling is what an operator says of a targeted step.
type settling struct{ done, again, force bool }

func settleCommand(a *app) *cobra.Command {
	var s settling
	c := &cobra.Command{
		Use: "settle STEP", Args: arguments(cobra.ExactArgs(1)),
		Short: "Say what became of a targeted step whose result is unknown",
		Long: "Settle replaces what the fleet's record says of a step that chosen nodes take for all (target),\n" +
			"named job/step. With --done the step did its work, and nobody runs it again; steps that read its\n" +
			"result find an empty one. With --again the chosen node runs it once more at its next pull; until\n" +
			"then pullet status names it. Where that node was decommissioned another one takes its place, as soon\n" +
			"as every step that it started under the same target is to run again: pullet status names them. Where\n" +
			"the step succeeded on some of several chosen nodes, it runs again on the others; with --force on\n" +
			"all. A step with runs: once that succeeded on all runs again only with --force. Settle works on the\n" +
			"fleet's version, and on steps that run once in the fleet's life. It lifts the halts that the unknown\n" +
			"result caused, before or after a resume.",
		Example: "  pullet rollout settle database/migrate --done",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := s.check(); err != nil {
				return usage(err)
			}
			return a.steers(
				cmd,
				func(ctx context.Context, store *state.Store) error { return steerCmd{a}.settle(ctx, store, args[0], s) },
			)
		},
	}
	c.Flags().BoolVar(&s.done, "done", false, "it did its work: record it as a success")
	c.Flags().BoolVar(&s.again, "again", false, "run it again: forget what is on record of it")
	c.Flags().BoolVar(&s.force, "force", false, "with --again: on all chosen nodes, also where it succeeded")
	return c
}

// check refuses flags that say nothing, or two things.
func (s settling) check() error {
	switch {
	case s.done == s.again:
		return errors.New("say what became of the step: --done (it did its work) or --again (run it again)")
	case s.force && s.done:
		return errors.New("--force goes with --again")
	}
	return nil
}

func (a steerCmd) settle(ctx context.Context, store *state.Store, step string, s settling) error {
	settled, err := store.Steps.Settle(ctx, step, a.operator(), state.Settling{Done: s.done, Force: s.force})
	if err != nil {
		return err
	}
	if done, err := a.structured(settled); done || err != nil {
		return err
	}
	switch {
	case len(settled.Nodes) == 0:
		fmt.Fprintf(a.out, "%s succeeded: nobody runs it again\n", step)
	case s.done:
		fmt.Fprintf(a.out, "%s is done on %s: nobody runs it again\n", step, safetext.Some(settled.Nodes, 10))
	default:
		fmt.Fprintf(a.out, "%s runs again on %s, at the next pull there\n", step, settled.Where())
	}
	if len(settled.Kept) > 0 {
		fmt.Fprintf(
			a.out,
			"  what it did on %s stays%s\n",
			safetext.Some(settled.Kept, 10),
			map[bool]string{false: "; to run it there, too: --force"}[s.done],
		)
	}
	stops{Halts: settled.Resumed}.printLifted(a.out, true)
	o, unread := store.Views.Fleet(ctx, false) // it is done: what cannot be read now is only a hint
	if unread == nil {
		stopsOf(o).printLeft(a.out)
	}
	return nil
}

// toRunAgain are the steps that are to run again and have not begun, by their names.
func toRunAgain(o *state.Overview) (out []state.Settlement) {
	for _, step := range slices.Sorted(maps.Keys(o.Settled)) {
		if t := o.Settled[step]; len(t.Waiting) > 0 {
			out = append(out, t)
		}
	}
	return out
}

// printSettled names the steps that are to run again, who asked for it and when.
func (v *fleetStatus) printSettled(w io.Writer) {
	for _, t := range v.Settled {
		where := state.Where(t.Waiting, func(node string) bool { return v.gone[node] })
		asker, hosts := t.Asker(), t.Waiting
		if slices.ContainsFunc(hosts, func(node string) bool { return v.gone[node] }) {
			hosts = nil
		}
		when := "at the next pull there"
		if v.Current == nil || t.Version != v.Current.ID { // one that runs once in the fleet's life
			when = "as soon as the fleet is at a version that has it"
		}
		fmt.Fprintf(
			w,
			"\n%s is to run again on %s, %s: asked for by %s %s ago; if it must not run: %s\n",
			t.Step,
			where,
			when,
			asker.By,
			ago(asker.At),
			state.NotAgainHint(hosts...),
		)
	}
}
