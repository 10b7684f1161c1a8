package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pullet/pullet/cmd/pullet/fleetnames"
	"github.com/pullet/pullet/internal/safetext"
	"github.com/pullet/pullet/state"
)

// switching is a change of one switch.
type switching struct {
	host, role, version string
	global, allChanges  bool
	lasting
}

func disableCommand(a *app) *cobra.Command {
	return switchCommand(a,
		"disable",
		"Keep a host, a role or all where they are",
		false,
		"Disable keeps hosts from changing to another version. They still correct drift of their current version, unless "+
			"--all-changes stops that\n"+
			"too: then a pull looks, and changes nothing. A switch of a host counts before that of its role, and that before "+
			"the one for all. A run in progress is not\n"+
			"interrupted.",
	)
}

func enableCommand(a *app) *cobra.Command {
	return switchCommand(a,
		"enable",
		"Let a host, a role or all go on",
		true,
		"Enable lifts what disable set. For a host whose role, or the whole fleet, is disabled it makes an exception. It "+
			"lifts no pause, no limit of 0\n"+
			"and no maintenance window. With --role and --version it admits one version only.",
	)
}

func switchCommand(a *app, name, short string, enabled bool, long string) *cobra.Command {
	var w switching
	c := &cobra.Command{
		Use: name + " --host NODE | --role ROLE | --global", GroupID: "fleet", Args: named, Short: short, Long: long,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := w.check(cmd); err != nil {
				return err
			}
			return a.steers(
				cmd,
				func(ctx context.Context, store *state.Store) error {
					return steerCmd{a}.setSwitch(ctx, store, &w, enabled)
				},
			)
		},
	}
	c.Flags().StringVar(&w.host, "host", "", "this node")
	c.Flags().StringVar(&w.role, "role", "", "the nodes of this role; none: those without one")
	c.Flags().BoolVar(&w.global, "global", false, "all nodes")
	if enabled {
		c.Flags().StringVar(&w.version, "version", "", "with --role: admit only this version")
	} else {
		c.Flags().BoolVar(&w.allChanges, "all-changes", false, "do not correct drift either, and run no commands of others")
	}
	w.flags(c)
	return c
}

// named says how a host or a role is named, to those who write it without its flag.
func named(_ *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return usage(
		fmt.Errorf("say for whom: --host %[1]s where %[1]s is a node, --role %[1]s where it is a role", args[0]),
	)
}

// check refuses a command line without a scope, or with two.
func (w *switching) check(cmd *cobra.Command) error {
	n := 0
	for _, name := range []string{"host", "role", "global"} {
		if cmd.Flags().Changed(name) {
			n++
		}
	}
	if n != 1 || w.host == "" && w.role == "" && !w.global {
		return usage(errors.New("say for whom: one of --host NODE, --role ROLE and --global"))
	}
	if w.version != "" && w.role == "" {
		return usage(errors.New("--version goes with --role"))
	}
	return w.lasting.check(cmd)
}

// scope is what the switch is for; it must be known.
func (w *switching) scope(o *state.Overview) (state.Scope, error) {
	switch {
	case w.host != "" && !slices.Contains(fleetnames.Nodes(o), w.host):
		return state.Scope{}, fleetnames.Unknown("node", w.host, fleetnames.Nodes(o), "pullet nodes")
	case w.host != "":
		return state.HostScope(w.host), nil
	case w.role != "" && !slices.Contains(fleetnames.Roles(o), w.role) && slices.Contains(fleetnames.Groups(o), w.role):
		return state.Scope{}, fmt.Errorf(
			"%q is a group of the rollout, and no role: name its hosts with --host, or stop the whole rollout with pullet "+
				"rollout pause",
			w.role,
		)
	case w.role != "" && !slices.Contains(fleetnames.Roles(o), w.role):
		return state.Scope{}, fleetnames.Unknown("role", w.role, fleetnames.Roles(o), "pullet nodes")
	case w.role != "":
		return state.RoleScope(w.role), nil
	}
	return state.GlobalScope(), nil
}

func (a steerCmd) setSwitch(ctx context.Context, store *state.Store, w *switching, enabled bool) error {
	o, err := store.Views.Fleet(ctx, false)
	if err != nil {
		return err
	}
	scope, err := w.scope(o)
	if err != nil {
		return err
	}
	set := o.Switches
	next := &state.Switch{
		Enabled:    enabled,
		AllChanges: w.allChanges,
		Reason:     w.reason,
		By:         a.operator(),
		At:         time.Now().UTC(),
	}
	if w.version != "" {
		v, err := knownVersion(ctx, store, o, w.version)
		if err != nil {
			return err
		}
		next.Version = v.ID
	}
	if enabled && next.Version == "" && !restricted(o, scope, set) {
		next = nil // an exception that nothing needs would surprise whoever disables the role later
	}
	var was *state.Switch
	if s, ok := set[scope.String()]; ok {
		was = &s
	}
	if !enabled && was != nil && !was.Enabled && was.AllChanges { // what restricts more lasts until somebody enables
		next.AllChanges = true
	}
	if err := store.Switches.Set(ctx, scope, next, was, w.lasts); err != nil {
		return err
	}
	return a.printSwitch(o, scope, next, was, set)
}

// restricted reports a host whose role or the whole fleet is disabled, or a role in a fleet that is.
func restricted(o *state.Overview, scope state.Scope, set map[string]state.Switch) bool {
	if scope.Kind == "host" {
		if role, ok := set[state.RoleScope(o.Nodes[scope.Name].Role).String()]; ok {
			return !role.Enabled || role.Version != ""
		}
	}
	if scope.Kind == "global" {
		return false
	}
	global, ok := set[state.GlobalScope().String()]
	return ok && !global.Enabled
}

// switched is a switch that was set, or removed (null), and the one before.
type switched struct {
	Scope  string        `json:"scope"`
	Switch *state.Switch `json:"switch"`
	Was    *state.Switch `json:"was"`
}

// printSwitch says what was done, to whom, what it replaced, and what else holds.
func (a steerCmd) printSwitch(
	o *state.Overview,
	scope state.Scope,
	now, was *state.Switch,
	set map[string]state.Switch,
) error {
	if done, err := a.structured(switched{scope.String(), now, was}); done || err != nil {
		return err
	}
	line := scopeName(scope) + " is enabled"
	switch {
	case now == nil && was != nil && was.Enabled && was.Version == "":
		line += " as nothing disables it any more: its exception is removed"
	case now == nil && was == nil:
		line = scopeName(scope) + " was not disabled"
	case now != nil:
		line = scopeName(scope) + " " + switchText(*now)
	}
	if was != nil {
		line += fmt.Sprintf(" (before: %s, %s ago)", strings.TrimPrefix(switchText(*was), "is "), ago(was.At))
	}
	fmt.Fprintln(a.out, line)
	if now != nil && !now.Enabled {
		if others := exceptions(o, scope, set); len(others) > 0 {
			fmt.Fprintf(a.out, "  not so, by switches of their own: %s\n", safetext.Some(others, 10))
		}
		if at := changingIn(o, scope); len(at) > 0 {
			fmt.Fprintf(a.out, "  %s%s\n", mayFinish, safetext.Some(at, 10))
		}
	}
	if now != nil && now.Enabled {
		for _, wider := range overruled(o, scope, set) {
			fmt.Fprintf(
				a.out,
				"  an exception: %s %s; to take it back: pullet disable --%s\n",
				scopeName(wider),
				switchText(set[wider.String()]),
				scope,
			)
		}
	}
	if pause, ok := set["pause"]; ok && (now == nil || now.Enabled) {
		fmt.Fprintf(
			a.out,
			"  the rollout is still paused by %s%s%s: pullet rollout resume\n",
			pause.By,
			until(pause.Until),
			reasonSuffix(pause.Reason),
		)
	}
	return nil
}

// scopeName is a scope at the beginning of a sentence.
func scopeName(c state.Scope) string {
	if c.Kind == "global" {
		return "the fleet"
	}
	return c.String()
}

// switchText is what a switch says, by whom, until when and why.
func switchText(w state.Switch) string {
	text := "is disabled"
	switch {
	case w.Version != "":
		text = "is enabled for version " + state.Short(w.Version) + " only"
	case w.Enabled:
		text = "is enabled"
	case w.AllChanges:
		text = "is disabled for all changes, drift correction included,"
	}
	return text + " by " + w.By + until(w.Until) + reasonSuffix(w.Reason)
}

// overruled are the wider scopes that are disabled, of which a scope that is enabled is an exception.
func overruled(o *state.Overview, scope state.Scope, set map[string]state.Switch) []state.Scope {
	wider := map[string][]state.Scope{
		"host": {state.RoleScope(o.Nodes[scope.Name].Role), state.GlobalScope()},
		"role": {state.GlobalScope()},
	}[scope.Kind]
	return slices.DeleteFunc(wider, func(c state.Scope) bool {
		w, ok := set[c.String()]
		return !ok || w.Enabled
	})
}

// exceptions are the nearer scopes that are enabled although a scope is disabled.
func exceptions(o *state.Overview, scope state.Scope, set map[string]state.Switch) []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(set)) {
		host, isHost := strings.CutPrefix(name, "host ")
		inRole := scope.Kind == "role" && isHost && state.GroupOf(o.Nodes[host].Role) == scope.Name
		inAll := scope.Kind == "global" && (isHost || strings.HasPrefix(name, "role "))
		if set[name].Enabled && (inRole || inAll) {
			out = append(out, name)
		}
	}
	return out
}

// changingIn are the nodes of a scope that change just now and are not interrupted.
func changingIn(o *state.Overview, scope state.Scope) []string {
	return slices.DeleteFunc(slotHolders(o), func(node string) bool {
		return scope.Kind == "host" && node != scope.Name ||
			scope.Kind == "role" && state.GroupOf(o.Nodes[node].Role) != scope.Name
	})
}
