package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/pullet/pullet/agent"
	"github.com/pullet/pullet/render"
	"github.com/pullet/pullet/safetext"
	"github.com/pullet/pullet/state"
)

// rolloutView is the fleet's move to its version, by group and by state.
type rolloutView struct {
	Version  *state.Version `json:"version"`
	State    string         `json:"state"` // running, halted, paused, finished
	Groups   []rolloutGroup `json:"groups"`
	Upgraded []nodeStatus   `json:"upgraded"`
	// of the nodes that do not run it: upgrading, pending, failed, lost, parked
	States map[string][]nodeStatus `json:"states"`
	status *fleetStatus
}

// rolloutGroup is a group of nodes that take turns.
type rolloutGroup struct {
	Group string `json:"group"`
	Stage *int   `json:"stage,omitempty"` // not known: the rules could not be read
	Limit *int   `json:"limit,omitempty"`
	Nodes int    `json:"nodes"`
	Done  int    `json:"done"`
	State string `json:"state"` // open, closed, halted, done
	// Opens is when the maintenance window of a closed group opens.
	Opens time.Time `json:"opens,omitzero"`
	// HostFaults are the hosts that failed by faults of their own.
	HostFaults []string `json:"hostFaults,omitempty"`
}

// closed is the state of a group outside its maintenance windows.
const closed = "closed"

// parked is the state of a node that gave its slot back in mid-run.
const parked = "parked"

func rolloutStatusCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "status", Args: noArgs,
		Short: "How far the rollout is: groups, and nodes with their reasons",
		Long: "Status lists who is upgraded, upgrading, pending (with what it waits for), failed, lost and parked.\n" +
			"Groups are shown with their stage and their limit, from the repository as this node has it.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.onFleet(cmd, a.withNode(func(ctx context.Context, node *agent.Agent, store *state.Store) error {
				v, err := rolloutCmd{a}.readRollout(ctx, node, store)
				if err != nil {
					return err
				}
				if done, err := a.structured(v); done || err != nil {
					return err
				}
				return onPage(a.out, a.output == "wide", func(w io.Writer) { v.print(w, a.output == "wide") })
			}))
		},
	}
}

// rolloutCmd is pullet rollout status, and its history.
type rolloutCmd struct{ *app }

func (a rolloutCmd) readRollout(ctx context.Context, node *agent.Agent, store *state.Store) (*rolloutView, error) {
	o, err := store.Views.Fleet(ctx, false)
	if err != nil {
		return nil, err
	}
	if o.Current == nil {
		return nil, o.NoVersion()
	}
	if err := store.Views.Idles(ctx, o); err != nil {
		return nil, err
	}
	v := &rolloutView{
		Version:  o.Current,
		State:    "running",
		Groups:   []rolloutGroup{},
		Upgraded: []nodeStatus{},
		States:   map[string][]nodeStatus{},
		status:   viewOf(o),
	}
	for _, n := range v.status.Nodes {
		if n.through {
			v.Upgraded = append(v.Upgraded, n)
		} else {
			v.States[rolloutState(n)] = append(v.States[rolloutState(n)], n)
		}
	}
	v.Groups = a.rolloutGroups(ctx, node, store, o)
	_, paused := o.Switches[state.PauseScope]
	switch {
	case len(v.status.Halted) > 0:
		v.State = "halted"
	case v.status.finished():
		v.State = "finished"
	case paused:
		v.State = "paused"
	}
	return v, nil
}

// rolloutState is the state of a node that does not run the version.
func rolloutState(n nodeStatus) string {
	switch {
	case n.Parked:
		return parked
	case n.State == waiting, n.State == missing, n.State == upToDate:
		return pending
	}
	return n.State
}

// rolloutGroups are the groups by stage; without the rules, those whose roster somebody asked for.
func (a rolloutCmd) rolloutGroups(
	ctx context.Context,
	node *agent.Agent,
	store *state.Store,
	o *state.Overview,
) []rolloutGroup {
	out := []rolloutGroup{}
	rules, inventory, ok := a.rulesOf(ctx, node, store, o.Current)
	if ok {
		for _, g := range groupsOf(o, rules, groupOfEach(o, rules, inventory), o.Current.ID) {
			out = append(
				out,
				rolloutGroup{
					Group: g.Group,
					Stage: &g.Stage,
					Limit: &g.Limit,
					Nodes: g.Nodes,
					Done:  g.Nodes - len(g.Behind),
					Opens: g.Opens,
				},
			)
		}
	} else {
		for group, roster := range o.Rosters {
			g := rolloutGroup{Group: group, Nodes: roster.Size}
			for _, name := range roster.Nodes() {
				if o.Runs(name) {
					g.Done++
				}
			}
			out = append(out, g)
		}
		slices.SortFunc(out, func(a, b rolloutGroup) int { return cmp.Compare(a.Group, b.Group) })
	}
	for i := range out {
		g := &out[i]
		g.HostFaults = o.Gates[g.Group].Hosts
		switch {
		case o.Gates[g.Group].State == state.Halted || o.Gates[state.AllGroups].State == state.Halted:
			g.State = state.Halted
		case g.Done == g.Nodes:
			g.State = "done"
		case !g.Opens.IsZero():
			g.State = closed
		default:
			g.State = "open"
		}
	}
	return out
}

// stateText is the group's state, with when its window opens and the number of host faults.
func (g rolloutGroup) stateText() string {
	text := g.State
	if g.State == closed {
		text += ", opens " + g.Opens.Format(render.WindowTime)
	}
	if len(g.HostFaults) > 0 {
		text += ", " + count(len(g.HostFaults), "host fault")
	}
	return text
}

// print shows the groups, and the nodes of each state; with all, also those that are upgraded one by one.
func (v *rolloutView) print(w io.Writer, all bool) {
	v.status.printVersion(w)
	fmt.Fprintf(w, "%s: %d of %s upgraded\n\n", v.State, len(v.Upgraded), count(len(v.status.Nodes), "node"))
	t := columns(w)
	fmt.Fprintln(t, "STAGE\tGROUP\tAT A TIME\tDONE\tSTATE")
	for _, g := range v.Groups {
		fmt.Fprintf(
			t,
			"%s\t%s\t%s\t%d of %d\t%s\n",
			number(g.Stage),
			g.Group,
			number(g.Limit),
			g.Done,
			g.Nodes,
			g.stateText(),
		)
	}
	t.Flush()
	for _, s := range []string{upgrading, pending, parked, failed, lost} {
		nodes := v.States[s]
		if len(nodes) == 0 {
			continue
		}
		fmt.Fprintf(w, "\n%s (%d)\n", s, len(nodes))
		printByReason(w, nodes, all)
	}
	v.status.printHalted(w)
}

// printByReason shows nodes with their reasons, in the order of the first that has one. A reason that many have is said
// once; with all, every node is named.
func printByReason(w io.Writer, nodes []nodeStatus, all bool) {
	type reason struct{ why, clear string }
	var order []reason
	by := map[reason][]nodeStatus{}
	for _, n := range nodes {
		r := reason{n.Why, n.Clear}
		if by[r] == nil {
			order = append(order, r)
		}
		by[r] = append(by[r], n)
	}
	most, names := mostExceptions, 5
	if all {
		most, names = len(order), len(nodes)
	}
	for _, r := range order[:min(most, len(order))] {
		same := by[r]
		var of []string
		for _, n := range same {
			of = append(of, n.Node)
		}
		fmt.Fprintf(w, "  %s%s\n", safetext.Some(of, names), reasonSuffix(same[0].why(1<<20)))
	}
	if len(order) > most {
		fmt.Fprintf(w, "  and for %d other reasons: pullet rollout status -o wide\n", len(order)-most)
	}
}

func number(n *int) string {
	if n == nil {
		return "-"
	}
	return fmt.Sprint(*n)
}
