package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/pullet/pullet/internal/safetext"
	"github.com/pullet/pullet/state"
)

func pauseCommand(a *app) *cobra.Command {
	var l lasting
	c := &cobra.Command{
		Use: "pause", Args: noArgs,
		Short: "Let no further node start to change",
		Long: "Pause keeps every node that has not started where it is, until resume. Nodes that change just now\n" +
			"finish. Nothing lifts it for a host or a role. Nodes still correct drift of their current version.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := l.check(cmd); err != nil {
				return err
			}
			return a.steers(cmd, func(ctx context.Context, store *state.Store) error { return steerCmd{a}.pause(ctx, store, l) })
		},
	}
	l.flags(c)
	return c
}

// steerCmd is the commands that change how the fleet goes on: pause, undo, resume, settle and their like.
type steerCmd struct{ *app }

func (a steerCmd) pause(ctx context.Context, store *state.Store, l lasting) error {
	w := &state.Switch{Reason: l.reason, By: a.operator(), At: time.Now().UTC()}
	done, err := store.Switches.Pause(ctx, w, l.lasts)
	if err != nil {
		return err
	}
	if !done {
		set, err := store.Switches.List(ctx)
		if err != nil {
			return err
		}
		have := set["pause"]
		return fmt.Errorf(
			"the rollout is paused already, by %s %s ago%s%s: to change that, resume it first",
			have.By,
			ago(have.At),
			until(have.Until),
			reasonSuffix(have.Reason),
		)
	}
	if done, err := a.structured(w); done || err != nil {
		return err
	}
	o, err := store.Views.Fleet(ctx, false)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(a.out, "paused%s%s; %s; to go on: pullet rollout resume\n"+
		"  drift is still corrected: pullet disable --global --all-changes stops that too\n", until(w.Until),
		reasonSuffix(l.reason), changing(o))
	return err
}

// changing names who changes just now and is not interrupted.
func changing(o *state.Overview) string {
	names := slotHolders(o)
	if len(names) == 0 {
		return "no host changes now"
	}
	return mayFinish + safetext.Some(names, 10)
}

const mayFinish = "who changes now may finish: "

// slotHolders are the nodes that have a slot.
func slotHolders(o *state.Overview) []string {
	var names []string
	for _, claims := range o.Slots {
		for _, c := range claims {
			names = append(names, cmp.Or(c.Node, "a claim that cannot be read"))
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func failCommand(a *app) *cobra.Command {
	var reason string
	c := &cobra.Command{
		Use: "fail", Args: noArgs,
		Short: "Halt the current rollout by hand",
		Long: "Fail halts the fleet's move to its current version, as a failed node would, for all roles. A newer\n" +
			"version clears it, and so does rollout resume; rollout undo goes back. Nodes that change just now\n" +
			"finish.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.steers(
				cmd,
				func(ctx context.Context, store *state.Store) error {
					return steerCmd{a}.failRollout(ctx, store, reason)
				},
			)
		},
	}
	c.Flags().StringVar(&reason, "reason", "", "why, for the others and for the record")
	return c
}

func (a steerCmd) failRollout(ctx context.Context, store *state.Store, reason string) error {
	v, done, err := store.Versions.Halt(ctx, a.operator(), reason)
	if err != nil {
		return err
	}
	if !done {
		gate, _, err := store.Rollouts.Gate(ctx, v.Rollout(), state.AllGroups)
		if err != nil {
			return err
		}
		return fmt.Errorf("the rollout of %s is halted already: %s", v, gate.Why())
	}
	if done, err := a.structured(v); done || err != nil {
		return err
	}
	_, err = fmt.Fprintf(
		a.out,
		"the rollout of %s is halted%s; push a commit that fixes it, or: pullet rollout undo, pullet rollout resume\n",
		v,
		reasonSuffix(reason),
	)
	return err
}

// undone is what rollout undo left, and for which version.
type undone struct {
	Left    *state.Version `json:"left"`
	Version *state.Version `json:"version"`
}

func undoCommand(a *app) *cobra.Command {
	var l lasting
	c := &cobra.Command{
		Use: "undo [VERSION]", Args: upToOne,
		Short: "Go back to the last good version, and stay there",
		Long: "Undo sets the fleet's version back to the newest one of its history that was neither halted nor\n" +
			"undone, and holds it there: until rollout follow or rollout start, or for the time of --for. The\n" +
			"version that it leaves is not followed again; a newer commit is. With VERSION it leaves that one and\n" +
			"no other. It must be named when somebody just went back: two who undo the same one would go back\n" +
			"twice.",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := l.check(cmd); err != nil {
				return err
			}
			return a.steers(
				cmd,
				func(ctx context.Context, store *state.Store) error { return steerCmd{a}.undo(ctx, store, args, l) },
			)
		},
	}
	l.flags(c)
	return c
}

// justUndone is for how long a version that somebody went back to is left only by its name.
const justUndone = 10 * time.Minute

// leaves checks which version is to be left, and returns it with its revision.
func (a steerCmd) leaves(ctx context.Context, store *state.Store, args []string) (*state.Version, int64, error) {
	current, rev, err := store.Versions.Current(ctx)
	if err != nil {
		return nil, 0, err
	}
	if current == nil {
		return nil, 0, state.ErrNoVersion
	}
	back := slices.Contains(current.Bad, current.Previous)
	if len(args) == 0 && back && time.Since(current.At) < justUndone {
		if _, _, err := store.Versions.LastGood(ctx, current); err != nil {
			return nil, 0, fmt.Errorf(
				"%s took the fleet back to %s %s ago; %w",
				current.By,
				current,
				ago(current.At),
				err,
			)
		}
		return nil, 0, fmt.Errorf(
			"%s took the fleet back to %s %s ago: to leave that one too, name it: pullet rollout undo %s",
			current.By,
			current,
			ago(current.At),
			safetext.ShellWord(current.String()),
		)
	}
	if len(args) == 0 {
		return current, rev, nil
	}
	o, err := store.Views.Fleet(ctx, false)
	if err != nil {
		return nil, 0, err
	}
	v, err := knownVersion(ctx, store, o, args[0])
	if err == nil && !v.Same(current) {
		err = fmt.Errorf("the fleet is at %s and not at %s: %s set it %s ago", current, &v, current.By, ago(current.At))
	}
	return current, rev, err
}

func (a steerCmd) undo(ctx context.Context, store *state.Store, args []string, l lasting) error {
	current, rev, err := a.leaves(ctx, store, args)
	if err != nil {
		return err
	}
	set, err := store.Versions.Undo(ctx, current, rev, a.operator(), l.reason, l.lasts)
	if err != nil {
		return err
	}
	if done, err := a.structured(undone{current, set}); done || err != nil {
		return err
	}
	_, err = fmt.Fprintf(
		a.out,
		"the fleet goes back from %s to %s and is held there%s%s; to let it follow newer commits: pullet rollout follow\n",
		current,
		withCommit(set),
		until(set.Until),
		reasonSuffix(l.reason),
	)
	return err
}

func followCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "follow", Args: noArgs,
		Short: "Let the fleet follow its repositories again",
		Long: "Follow ends what rollout start or rollout undo set: the next node that sees a newer commit proposes\n" +
			"it. Versions that were undone are left out. Where the repository says follow: false, one newer\n" +
			"version is taken, and held again.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.steers(cmd, steerCmd{a}.follow)
		},
	}
}

func (a steerCmd) follow(ctx context.Context, store *state.Store) error {
	v, held, err := store.Versions.Follow(ctx)
	if err != nil {
		return err
	}
	if done, err := a.structured(v); done || err != nil {
		return err
	}
	text := "the fleet follows again from %s on\n"
	if !held {
		text = "nothing holds the fleet: it follows from %s on\n"
	}
	_, err = fmt.Fprintf(a.out, text, v)
	return err
}
