package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pullet/pullet/state"
)

func (a *app) statusCommand() *cobra.Command {
	return &cobra.Command{
		Use: "status", GroupID: "fleet", Args: noArgs,
		Short: "Who runs what, who waits for whom and what clears it",
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			store, err := a.openStore(cmd.Context())
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, store.Close()) }()
			o, err := store.Overview(cmd.Context(), false)
			if err != nil {
				return err
			}
			v := viewOf(o)
			if done, err := a.structured(v); done || err != nil {
				return err
			}
			v.print(a.out, a.whyWidth())
			return nil
		},
	}
}

// openStore opens the fleet's record of the configuration.
func (a *app) openStore(ctx context.Context) (*state.Store, error) {
	config, err := a.readConfig()
	if err != nil {
		return nil, err
	}
	return config.OpenStore(ctx)
}

// fleetStatus is the fleet as status shows it.
type fleetStatus struct {
	Current *state.Version    `json:"current"`
	Counts  map[string]int    `json:"counts"`
	Nodes   []nodeStatus      `json:"nodes"`
	Halted  []haltedGroup     `json:"halted"`
	names   map[string]string // version -> release
}

type nodeStatus struct {
	Node    string    `json:"node"`
	Role    string    `json:"role,omitempty"`
	Version string    `json:"version,omitempty"` // that it runs
	Release string    `json:"release,omitempty"`
	State   string    `json:"state"`
	Alive   bool      `json:"alive"`
	Since   time.Time `json:"since,omitzero"`
	Why     string    `json:"why,omitempty"`
	Clear   string    `json:"clear,omitempty"`
}

type haltedGroup struct {
	Group string `json:"group"`
	state.Gate
}

// The states of a node as people see them.
const (
	upToDate  = "ok"
	upgrading = "upgrading"
	waiting   = "waiting"
	failed    = "failed"
	pending   = "pending" // an update is available and the node has not looked yet
	lost      = "lost"
	missing   = "missing" // listed under nodes/ and never seen
)

// whyWidth is how much of a reason fits on a terminal beside the other columns; elsewhere, and with -o wide, all of it.
func (a *app) whyWidth() int {
	if a.output == "wide" || !terminal(a.out) {
		return 1 << 20
	}
	return max(40, newScreen(a.out).width()-50)
}

// viewOf sums the fleet's record up.
func viewOf(o *state.Overview) *fleetStatus {
	v := &fleetStatus{Current: o.Current, Counts: map[string]int{}, Nodes: []nodeStatus{}, Halted: []haltedGroup{}, names: releases(o)}
	for _, name := range slices.Sorted(maps.Keys(o.Nodes)) {
		n := v.node(o, o.Nodes[name])
		v.Nodes = append(v.Nodes, n)
		v.Counts[n.State]++
	}
	for _, group := range slices.Sorted(maps.Keys(o.Rosters)) {
		for _, name := range o.Rosters[group].Nodes() {
			if _, known := o.Nodes[name]; !known && !o.Gone[name] {
				v.Nodes = append(v.Nodes, nodeStatus{
					Node: name, Role: group, State: missing, Why: "it is listed under nodes/ and was never seen",
					Clear: "start it, or remove it there",
				})
				v.Counts[missing]++
			}
		}
	}
	for _, group := range slices.Sorted(maps.Keys(o.Gates)) {
		if g := o.Gates[group]; g.State == state.Halted {
			v.Halted = append(v.Halted, haltedGroup{group, g})
		}
	}
	return v
}

// releases are the names of the versions that are known by one.
func releases(o *state.Overview) map[string]string {
	out := map[string]string{}
	for _, categories := range o.Statuses {
		for _, s := range categories {
			if s.Release != "" {
				out[s.Version] = s.Release
			}
		}
	}
	if o.Current != nil && o.Current.Release != "" {
		out[o.Current.ID] = o.Current.Release
	}
	return out
}

// node is one node's line.
func (v *fleetStatus) node(o *state.Overview, n state.Node) nodeStatus {
	out := nodeStatus{Node: n.Name, Role: n.Role, Version: o.Running[n.Name], Alive: o.Alive[n.Name], Since: n.LastSeen, State: pending}
	out.Release = v.names[out.Version]
	current := o.Current != nil && out.Version == o.Current.ID
	rollout, c := o.Statuses[n.Name][state.Rollout], o.Statuses[n.Name][state.Configured]
	if current {
		out.State, out.Why = upToDate, c.Reason
		if rollout.Version == out.Version {
			out.Since = rollout.Time
		}
	}
	if o.Current != nil && rollout.Version == o.Current.ID && !current {
		out.State = map[string]string{state.Running: upgrading, state.Pending: waiting, state.Failed: failed, state.Success: upToDate}[rollout.State]
		out.Since, out.Why, out.Clear = rollout.Time, rollout.Reason, rollout.Clear
	}
	settled := out.State == upToDate || o.Current == nil || // a first version that did not compile is nobody's rollout
		out.State == pending && c.Version == o.Current.ID // nor is one that the node's remote does not have
	if settled && (c.State == state.Failed || c.State == state.Pending) {
		out.State = map[string]string{state.Failed: failed, state.Pending: waiting}[c.State]
		out.Since, out.Why, out.Clear = c.Time, c.Reason, c.Clear
	}
	if !out.Alive {
		out.Why = strings.TrimSuffix("was "+out.State+": "+out.Why, ": ")
		out.State, out.Since = lost, n.LastSeen
		out.Clear = "start it again, or give it up: pullet decommission " + n.Name
	}
	return out
}

// shown is a version by its release or its short id.
func (v *fleetStatus) shown(version string) string {
	if version == "" {
		return "-"
	}
	if name := v.names[version]; name != "" {
		return name
	}
	return state.Short(version)
}

// print shows the fleet in one screen: the version, the counts, the nodes, and what stands still.
func (v *fleetStatus) print(w io.Writer, whyWidth int) {
	if v.Current == nil {
		fmt.Fprintln(w, "the fleet has no version yet: the first pull that compiles sets it")
	} else {
		fmt.Fprintf(w, "version %s, set by %s %s ago\n", withCommit(v.Current), v.Current.By, ago(v.Current.At))
	}
	var counts []string
	for _, s := range []string{upToDate, upgrading, waiting, pending, failed, lost, missing} {
		if n := v.Counts[s]; n > 0 {
			counts = append(counts, fmt.Sprintf("%d %s", n, s))
		}
	}
	fmt.Fprintf(w, "%s: %s\n\n", count(len(v.Nodes), "node"), strings.Join(counts, ", "))
	t := columns(w)
	fmt.Fprintln(t, "NODE\tROLE\tRUNS\tSTATE\tSINCE\tWHY")
	for _, n := range v.Nodes {
		why := shorten(v.why(n), whyWidth)
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\n", n.Node, orDash(n.Role), v.shown(n.Version), n.State, ago(n.Since), why)
	}
	t.Flush()
	for _, h := range v.Halted {
		fmt.Fprintf(w, "\nrole %s is halted at %s: the upgrade of %s failed: %s\n  no other node goes on; push a commit that mends it, or, when it was the host: pullet rollout resume\n",
			h.Group, v.Current, h.Node, h.Reason)
	}
}

// why is why a node is as it is, and what clears it. A failure that halts a role is said once, below the nodes, and not with each that it is
// or that waits for it.
func (v *fleetStatus) why(n nodeStatus) string {
	for _, h := range v.Halted {
		switch {
		case h.Reason == "":
		case n.Why == h.Reason:
			return "see role " + h.Group + " below"
		case strings.Contains(n.Why, ": "+h.Reason):
			return strings.Replace(n.Why, ": "+h.Reason, "", 1)
		}
	}
	if n.Clear == "" {
		return n.Why
	}
	return n.Why + "; " + n.Clear
}

// withCommit is a version with its short id, where it has a name beside it.
func withCommit(v *state.Version) string {
	if v.Release == "" {
		return state.Short(v.ID)
	}
	return v.Release + " (" + state.Short(v.ID) + ")"
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
