package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pullet/pullet/cmd/pullet/fleetnames"
	"github.com/pullet/pullet/internal/agent"
	"github.com/pullet/pullet/render"
	"github.com/pullet/pullet/state"
)

// onFleet runs a command on the fleet's record. It makes none where this host never had one.
func (a *app) onFleet(cmd *cobra.Command, do func(ctx context.Context, store *state.Store) error) error {
	return a.onRecord(cmd, agent.Config.ReadStore, do)
}

// onRecord is onFleet with a way to open the record.
func (a *app) onRecord(cmd *cobra.Command, open func(agent.Config, context.Context) (*state.Store, error),
	do func(ctx context.Context, store *state.Store) error) (err error) {
	config, err := a.readConfig()
	if err != nil {
		return err
	}
	store, err := open(config, cmd.Context())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	if err := config.RenewForPeople(cmd.Context(), store); err != nil {
		a.warn("the certificate of these commands is not renewed: %v", store.Explain(err))
	}
	err = store.Explain(do(cmd.Context(), store))
	for _, bad := range store.BadRecords() {
		if said, ok := errors.AsType[*state.BadRecordError](err); !ok || said.Key != bad.Key {
			a.warn("%v", bad)
		}
	}
	return err
}

// steers is onFleet for commands that change something: when the answer is lost it says so.
func (a *app) steers(cmd *cobra.Command, do func(ctx context.Context, store *state.Store) error) error {
	asked := false
	err := a.onRecord(cmd, agent.Config.OpenStore, func(ctx context.Context, store *state.Store) error {
		asked = true
		return do(ctx, store)
	})
	var away *state.UnreachableError
	if asked && errors.As(err, &away) && !away.Full() && !away.Denied() {
		return fmt.Errorf("%w; whether it was done is not known: look at pullet status", err)
	}
	return err
}

// withNode is for commands that need this node's clone of the repositories beside the fleet's record.
func (a *app) withNode(
	do func(ctx context.Context, node *agent.Agent, store *state.Store) error,
) func(context.Context, *state.Store) error {
	return func(ctx context.Context, store *state.Store) (err error) {
		config, err := a.readConfig()
		if err != nil {
			return err
		}
		node, err := agent.New(config, build().Version, a.logger())
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, node.Close()) }()
		return do(ctx, node, store)
	}
}

// rulesOf are the rules and the inventory of the fleet's version from this node's clone; without it, it warns, and what
// the fleet's record says has to do.
func (a *app) rulesOf(
	ctx context.Context,
	node *agent.Agent,
	store *state.Store,
	v *state.Version,
) (render.Rollout, render.Inventory, bool) {
	if v == nil {
		return render.Rollout{}, nil, false
	}
	rules, inventory, err := node.Rules(ctx, store, v)
	if err != nil {
		a.warn("the rules and the inventory of %s cannot be read here: %v", v, err)
	}
	return rules, inventory, err == nil
}

// lasting are the flags of what an operator sets for a while.
type lasting struct {
	reason string
	lasts  time.Duration
}

func (l *lasting) flags(c *cobra.Command) {
	c.Flags().StringVar(&l.reason, "reason", "", "why, for the others and for the record")
	durationVar(c.Flags(), &l.lasts, "for", 0, "how long it holds, such as 2h (default: until somebody ends it)")
}

// check refuses an invalid time.
func (l *lasting) check(cmd *cobra.Command) error {
	if cmd.Flags().Changed("for") && l.lasts < time.Second {
		return usage(fmt.Errorf("--for %s: write a time from 1s on, such as 2h", l.lasts))
	}
	return nil
}

// knownVersion finds a version that the fleet had, has or runs, by its release or its id, which may be cut off.
func knownVersion(ctx context.Context, store *state.Store, o *state.Overview, name string) (state.Version, error) {
	history, err := store.Versions.History(ctx)
	if err != nil {
		return state.Version{}, err
	}
	known := map[string]state.Version{}
	for _, id := range o.Running {
		known[id] = state.Version{ID: id, Release: releases(o)[id]}
	}
	for _, v := range history {
		known[v.ID] = v
	}
	var names []string
	var found []state.Version
	for id, v := range known {
		if v.Release == name || id == name {
			return v, nil
		}
		names = append(names, v.String())
		if len(name) >= 4 && strings.HasPrefix(id, name) {
			found = append(found, v)
		}
	}
	if len(found) == 1 {
		return found[0], nil
	}
	slices.Sort(names)
	return state.Version{}, fleetnames.Unknown("version", name, names, "pullet rollout history")
}

// list prints a value as JSON or YAML where that was asked for, else its rows as a table with a heading.
func (a *app) list(v any, heading string, rows func(w io.Writer)) error {
	if done, err := a.structured(v); done || err != nil {
		return err
	}
	t := columns(a.out)
	fmt.Fprintln(t, heading)
	rows(t)
	return t.Flush()
}

// reasonSuffix adds a reason to a sentence.
func reasonSuffix(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + reason
}

// until says when something ends, where it does.
func until(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return " until " + t.Local().Format(time.DateTime)
}
