package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/pullet/pullet/internal/agent"
	"github.com/pullet/pullet/internal/safetext"
	"github.com/pullet/pullet/render"
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

	status  *fleetStatus
	stateOf map[string]string // of the nodes, by their names
	rules   rolloutRules
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

	behind []string // nodes that do not run the version
}

// rolloutRules are what the repository says of a rollout, as far as it can be read here.
type rolloutRules struct {
	rollout   render.Rollout
	inventory render.Inventory
	known     bool
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
				v, _, err := rolloutCmd{a}.readRollout(ctx, node, store)
				if err != nil {
					return err
				}
				if done, err := a.structured(v); done || err != nil {
					return err
				}
				return onPage(a.out, func(w io.Writer) { v.print(w, a.output == "wide") })
			}))
		},
	}
}

// rolloutCmd is pullet rollout status, and its history.
type rolloutCmd struct{ *app }

// readRollout reads the rollout to the fleet's version, and the record of which it is.
func (a rolloutCmd) readRollout(
	ctx context.Context,
	node *agent.Agent,
	store *state.Store,
) (*rolloutView, *state.Overview, error) {
	o, err := readFleet(ctx, store)
	if err != nil {
		return nil, nil, err
	}
	if o.Current == nil {
		return nil, nil, o.NoVersion()
	}
	var r rolloutRules
	r.rollout, r.inventory, r.known = a.rulesOf(ctx, node, store, o.Current)
	return r.view(o), o, nil
}

// view is the rollout to the fleet's version, under these rules.
func (r rolloutRules) view(o *state.Overview) *rolloutView {
	v := &rolloutView{
		Version:  o.Current,
		State:    "running",
		Groups:   []rolloutGroup{},
		Upgraded: []nodeStatus{},
		States:   map[string][]nodeStatus{},
		status:   viewOf(o),
		stateOf:  map[string]string{},
		rules:    r,
	}
	for _, n := range v.status.Nodes {
		v.stateOf[n.Node] = n.State
		if n.through {
			v.Upgraded = append(v.Upgraded, n)
		} else {
			v.States[rolloutState(n)] = append(v.States[rolloutState(n)], n)
		}
	}
	v.Groups = r.groups(o)
	_, paused := o.Switches[state.PauseScope]
	switch {
	case len(v.status.Halted) > 0:
		v.State = "halted"
	case v.status.finished():
		v.State = "finished"
	case paused:
		v.State = "paused"
	}
	return v
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

// groups are the groups by stage; without the rules, those whose roster somebody asked for.
func (r rolloutRules) groups(o *state.Overview) []rolloutGroup {
	out := []rolloutGroup{}
	if r.known {
		for _, g := range groupsOf(o, r.rollout, groupOfEach(o, r.rollout, r.inventory), o.Current.ID) {
			out = append(out, rolloutGroup{
				Group: g.Group, Stage: &g.Stage, Limit: &g.Limit, Nodes: g.Nodes, Done: g.Nodes - len(g.Behind),
				Opens: g.Opens, behind: g.Behind,
			})
		}
	} else {
		for group, roster := range o.Rosters {
			g := rolloutGroup{Group: group, Nodes: roster.Size}
			for _, name := range roster.Nodes() {
				if o.Runs(name) {
					g.Done++
				} else {
					g.behind = append(g.behind, name)
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
	v.printHead(w, "")
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
	v.printStates(w, all, upgrading, pending, parked, failed, lost)
	v.status.printHalted(w)
}

// printHead says to which version the fleet moves, how far it is, and what else is known of that.
func (v *rolloutView) printHead(w io.Writer, more string) {
	v.status.printVersion(w)
	far := fmt.Sprintf(": %d of %s upgraded%s\n", len(v.Upgraded), count(len(v.status.Nodes), "node"), more)
	_ = inked(w, span{wordInk(v.State), v.State}, span{noInk, far}) // as with every line for people
}

// printHeading is a line above nodes in a state.
func (v *rolloutView) printHeading(w io.Writer, text, state string, nodes int) {
	_ = inked(w, span{}) // as with every line for people
	_ = inked(w, span{wordInk(state), text}, span{noInk, fmt.Sprintf(" (%d)", nodes)})
}

// printStates shows the nodes that are in some states with their reasons.
func (v *rolloutView) printStates(w io.Writer, all bool, states ...string) {
	for _, s := range states {
		if nodes := v.States[s]; len(nodes) > 0 {
			v.printHeading(w, s, s, len(nodes))
			printByReason(w, nodes, all)
		}
	}
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
		fmt.Fprintf(w, "  %s%s\n", safetext.Some(of, names), reasonSuffix(same[0].why(w, wholeReason)))
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
