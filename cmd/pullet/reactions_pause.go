package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/pullet/pullet/cmd/pullet/fleetnames"
	"github.com/pullet/pullet/internal/safetext"
	"github.com/pullet/pullet/state"
)

func reactionPauseCommand(a *app) *cobra.Command {
	var l lasting
	c := &cobra.Command{
		Use: "pause NAME", Args: arguments(cobra.ExactArgs(1)),
		Short: "Keep a reaction from being started",
		Long: "Pause keeps a reaction from being started, until resume. Its events are counted meanwhile. Runs of it\n" +
			"that were started go on. NAME is its name in reactions/ of the repository.",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := l.check(cmd); err != nil {
				return err
			}
			if err := checkReaction(args[0]); err != nil {
				return err
			}
			return a.steers(cmd, func(ctx context.Context, store *state.Store) error {
				return steerCmd{a}.pauseReaction(ctx, store, args[0], l)
			})
		},
	}
	l.flags(c)
	return c
}

// checkReaction refuses what is no name of a reaction.
func checkReaction(name string) error {
	if name == "" || len(name) > state.MaxEventName || safetext.Obeyed(name) {
		return usage(fmt.Errorf("%q is no name of a reaction", safetext.Line(name, 60)))
	}
	return nil
}

func (a steerCmd) pauseReaction(ctx context.Context, store *state.Store, name string, l lasting) error {
	p := state.PausedReaction{Reaction: name, Reason: l.reason, By: a.operator(), At: time.Now().UTC()}
	if l.lasts > 0 {
		p.Until = p.At.Add(l.lasts)
	}
	was, err := store.Reactions.Paused(ctx)
	if err != nil {
		return err
	}
	if err := store.Reactions.Pause(ctx, p, l.lasts); err != nil {
		return err
	}
	if done, err := a.structured(p); done || err != nil {
		return err
	}
	before := ""
	if w, ok := was[name]; ok {
		before = fmt.Sprintf(" (before: by %s%s%s, %s ago)", w.By, until(w.Until), reasonSuffix(w.Reason), ago(w.At))
	}
	fmt.Fprintf(a.out, "reaction %s is paused%s%s%s; to go on: pullet reactions resume %s\n", name, until(p.Until),
		reasonSuffix(p.Reason), before, safetext.ShellWord(name))
	known, err := knownReactions(ctx, store)
	if err == nil && !slices.Contains(known, name) {
		a.warn("nothing is on record of a reaction %s%s: its name has to be that in reactions/", name,
			fleetnames.Suggestion(name, known))
	}
	return err
}

// knownReactions are the reactions of which something is on record.
func knownReactions(ctx context.Context, store *state.Store) ([]string, error) {
	v, err := readReactions(ctx, store, time.Time{})
	if err != nil {
		return nil, err
	}
	var names []string
	for _, l := range v.Waiting {
		names = append(names, l.Reaction)
	}
	for _, r := range v.Runs {
		names = append(names, r.Reaction)
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

func reactionResumeCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "resume NAME", Args: arguments(cobra.ExactArgs(1)),
		Short: "Let a reaction that was paused be started again",
		Long:  "Resume ends a pause. What was counted meanwhile starts the reaction now, unless it is too old.",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkReaction(args[0]); err != nil {
				return err
			}
			return a.steers(cmd, func(ctx context.Context, store *state.Store) error {
				return steerCmd{a}.resumeReaction(ctx, store, args[0])
			})
		},
	}
}

// resumedReaction is a reaction that was paused.
type resumedReaction struct {
	Reaction string                `json:"reaction"`
	Was      *state.PausedReaction `json:"was"`
}

func (a steerCmd) resumeReaction(ctx context.Context, store *state.Store, name string) error {
	paused, err := store.Reactions.Paused(ctx)
	if err != nil {
		return err
	}
	was, ok := paused[name]
	if ok {
		ok, err = store.Reactions.Resume(ctx, name)
	}
	if err != nil {
		return err
	}
	if !ok {
		var names []string
		for other := range paused {
			names = append(names, other)
		}
		return fmt.Errorf("reaction %s is not paused%s: see pullet reactions", name, fleetnames.Suggestion(name, names))
	}
	if done, err := a.structured(resumedReaction{name, &was}); done || err != nil {
		return err
	}
	_, err = fmt.Fprintf(a.out, "reaction %s is no longer paused (before: by %s%s%s, %s ago)\n", name, was.By,
		until(was.Until), reasonSuffix(was.Reason), ago(was.At))
	return err
}
