package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pullet/pullet/cmd/pullet/fleetnames"
	"github.com/pullet/pullet/internal/agent"
	"github.com/pullet/pullet/render"
	"github.com/pullet/pullet/state"
)

// listed says which nodes to list.
type listed struct {
	missing bool
	role    string
	states  []string
}

// fullNode is a node with all that is on record of it.
type fullNode struct {
	nodeStatus
	Labels   map[string]string           `json:"labels,omitempty"`
	First    time.Time                   `json:"firstSeen,omitzero"`
	Last     time.Time                   `json:"lastSeen,omitzero"`
	Agent    string                      `json:"agent,omitempty"`
	UUID     string                      `json:"uuid,omitempty"`
	Statuses map[string]state.StatusLine `json:"statuses"` // by category
}

func nodesCommand(a *app) *cobra.Command {
	var l listed
	c := &cobra.Command{
		Use: "nodes", GroupID: "fleet", Args: noArgs,
		Short: "All nodes with what they run and their states",
		Long: "Nodes lists every node of the fleet. With --missing it lists the machines of the inventory (nodes/\n" +
			"of the repository, as this node has it) and those that ever reported or were provisioned, less those\n" +
			"that live.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			for _, s := range l.states {
				if err := knownWord("state", s, allStates); err != nil {
					return err
				}
			}
			if l.missing {
				return a.onFleet(
					cmd,
					a.withNode(func(ctx context.Context, node *agent.Agent, store *state.Store) error {
						return nodesCmd{a}.listMissing(ctx, node, store, l)
					}),
				)
			}
			return a.onFleet(cmd, func(ctx context.Context, store *state.Store) error {
				o, err := store.Views.Fleet(ctx, false)
				if err != nil {
					return err
				}
				return nodesCmd{a}.listNodes(o, nil, l)
			})
		},
	}
	c.Flags().BoolVar(&l.missing, "missing", false, "only those that should be there and do not answer")
	c.Flags().StringVar(&l.role, "role", "", "only those of this role")
	c.Flags().StringSliceVar(&l.states, "state", nil, "only those in these states: "+strings.Join(allStates, ", "))
	return c
}

// allStates are the states of nodes as status counts them.
var allStates = []string{upToDate, upgrading, waiting, pending, failed, lost, missing}

// nodesCmd is pullet nodes.
type nodesCmd struct{ *app }

// listMissing lists who should be there and does not answer.
func (a nodesCmd) listMissing(ctx context.Context, node *agent.Agent, store *state.Store, l listed) error {
	o, err := store.Views.Fleet(ctx, false)
	if err != nil {
		return err
	}
	var inventory render.Inventory
	if len(o.Listed) == 0 { // else the overview has it, and nothing is fetched
		_, inventory, _ = a.rulesOf(ctx, node, store, o.Current)
	}
	return a.listNodes(o, inventory, l)
}

func (a nodesCmd) listNodes(o *state.Overview, inventory render.Inventory, l listed) error {
	if l.role != "" && !slices.Contains(fleetnames.Roles(o), l.role) {
		return fleetnames.Unknown("role", l.role, fleetnames.Roles(o), "pullet nodes")
	}
	v := viewOf(o)
	var out []fullNode
	for _, n := range append(v.Nodes, absent(o, v, inventory)...) {
		byState := len(l.states) == 0 || slices.Contains(l.states, n.State)
		if byState && (l.role == "" || state.GroupOf(n.Role) == l.role) &&
			(!l.missing || n.State == lost || n.State == missing) {
			r := o.Nodes[n.Node]
			out = append(out, fullNode{n, r.Labels, r.FirstSeen, r.LastSeen, r.Agent, r.UUID, o.Statuses[n.Node]})
		}
	}
	slices.SortFunc(out, func(x, y fullNode) int { return strings.Compare(x.Node, y.Node) })
	return a.printNodes(v, out)
}

// absent are the machines of the inventory, and those that a tool reported on, which never registered and which no
// roster names.
func absent(o *state.Overview, v *fleetStatus, inventory render.Inventory) []nodeStatus {
	known := map[string]bool{}
	for _, n := range v.Nodes {
		known[n.Node] = true
	}
	var out []nodeStatus
	for _, name := range slices.Sorted(maps.Keys(inventory)) {
		if !known[name] && !o.Gone[name] {
			known[name] = true
			out = append(out, absentNode(name, inventory[name].Role()))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(o.Statuses)) {
		if s, ok := o.Statuses[name][state.Provisioned]; ok && !known[name] && !o.Gone[name] {
			out = append(out, nodeStatus{
				Node: name, State: missing, Since: s.Time, Why: "provisioned: " + s.State + reasonSuffix(s.Reason) +
					", and never seen",
				Remedy: state.Act("start it, or give it up: pullet decommission " + name),
			})
		}
	}
	return out
}

func (a nodesCmd) printNodes(v *fleetStatus, nodes []fullNode) error {
	if nodes == nil {
		nodes = []fullNode{}
	}
	if a.output != "wide" {
		return a.list(nodes, "NODE\tROLE\tRUNS\tSTATE\tSINCE\tWHY", func(w io.Writer) {
			for _, n := range nodes {
				fmt.Fprintf(w, "%s\t%s\n", v.cells(w, n.nodeStatus), n.why(w, reasonRoom(w)))
			}
		})
	}
	return a.list(
		nodes,
		"NODE\tROLE\tRUNS\tSTATE\tSINCE\tPROVISIONED\tCONFIGURED\tVALIDATED\tROLLOUT\tFIRST\tLAST\tAGENT\tWHY",
		func(w io.Writer) {
			for _, n := range nodes {
				fmt.Fprint(w, v.cells(w, n.nodeStatus))
				for _, c := range state.Categories() {
					fmt.Fprintf(w, "\t%s", orDash(n.Statuses[c].State))
				}
				fmt.Fprintf(w, "\t%s\t%s\t%s\t%s\n", age(w, n.First), age(w, n.Last), orDash(n.Agent),
					n.why(w, reasonRoom(w)))
			}
		},
	)
}
