package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/pullet/pullet/internal/agent"
	"github.com/pullet/pullet/internal/safetext"
	"github.com/pullet/pullet/render"
	"github.com/pullet/pullet/state"
)

// check refuses flags that cannot be meant.
func (o runOptions) check(args []string) error {
	limit, ok := render.Limit{Text: o.max}.Of(1)
	switch {
	case len(args) == 0:
		return usage(errors.New("name a command after --: pullet run --target role=web -- uptime"))
	case o.target == "":
		return usage(errors.New("--target says which nodes: role=web, web*, '*'"))
	case o.waits < 0 || o.waits > 0 && !o.wait:
		return usage(errors.New("--wait-timeout is a time from 0 on, and goes with --wait"))
	case o.fails < 0:
		return usage(fmt.Errorf("--max-failures %d: write a number from 0 on", o.fails))
	case o.max != "" && (!ok || limit < 1):
		return usage(fmt.Errorf("--max %q: write a number of nodes from 1 on, or a share such as 25%%", o.max))
	}
	return nil
}

// command makes the command with its nodes frozen.
func (a runCmd) command(
	ctx context.Context,
	node *agent.Agent,
	store *state.Store,
	o runOptions,
	args []string,
) (*state.Command, error) {
	fleet, err := store.Views.Fleet(ctx, false)
	if err != nil {
		return nil, err
	}
	c := &state.Command{
		ID: time.Now().UTC().Format("20060102T150405.000"), Args: args, Target: o.target, Max: 1, MaxFailures: o.fails,
		Timeout: o.timeout, Reason: o.reason, By: a.operator(), At: time.Now().UTC(), Until: time.Now().UTC().Add(o.expires),
	}
	nodes, err := o.nodes(c, fleet)
	if err != nil {
		return nil, err
	}
	if len(nodes) == 0 {
		return nil, fmt.Errorf("no node that answers matches %s: see pullet nodes%s", o.target, expanded(o.target))
	}
	if o.max != "" {
		c.Max, _ = render.Limit{Text: o.max}.Of(len(nodes))
	}
	var order *turns
	if o.max == "" || len(o.stages) == 0 {
		order = a.turns(ctx, node, store, fleet)
	}
	if c.Stages, err = o.split(nodes, fleet, order); err == nil && o.max == "" {
		c.Limits, err = order.limits(c.Stages)
	}
	return c, err
}

// nodes are those of the target that answer; the others are noted as left out.
func (o runOptions) nodes(c *state.Command, fleet *state.Overview) ([]string, error) {
	all, err := render.ParseTarget(o.target)
	if err != nil {
		return nil, usage(err)
	}
	var out []string
	for _, name := range slices.Sorted(maps.Keys(fleet.Nodes)) {
		switch {
		case !all.Matches(name, fleet.Nodes[name].Labels):
		case fleet.Alive[name]:
			out = append(out, name)
		default:
			c.LeftOut = append(c.LeftOut, name)
		}
	}
	return out, nil
}

// split divides the nodes into stages: those that were asked for and then the rest, or group after group as in a
// rollout.
func (o runOptions) split(nodes []string, fleet *state.Overview, order *turns) ([][]string, error) {
	if len(o.stages) == 0 {
		return order.stages(nodes), nil
	}
	out := make([][]string, len(o.stages)+1)
	var targets []render.Target
	for _, text := range o.stages {
		t, err := render.ParseTarget(text)
		if err != nil {
			return nil, usage(err)
		}
		targets = append(targets, t)
	}
	for _, name := range nodes {
		stage := slices.IndexFunc(
			targets,
			func(t render.Target) bool { return t.Matches(name, fleet.Nodes[name].Labels) },
		)
		if stage < 0 {
			stage = len(targets)
		}
		out[stage] = append(out[stage], name)
	}
	for i, text := range o.stages {
		if len(out[i]) == 0 {
			return nil, fmt.Errorf("no node of %s that answers is in the stage %s: see pullet nodes", o.target, text)
		}
	}
	return out, nil
}

// turns are the groups of a fleet, as they take turns in a rollout of its version. A nil one knows no rules.
type turns struct {
	groupOf map[string]string // by node
	groups  []plannedGroup    // in their order
	total   int               // nodes at a time in the whole fleet; 0 is any number
}

// turns reads the rules of the fleet's version; nil where they are not known here.
func (a runCmd) turns(ctx context.Context, node *agent.Agent, store *state.Store, fleet *state.Overview) *turns {
	rules, inventory, ok := a.rulesOf(ctx, node, store, fleet.Current)
	if !ok {
		return nil
	}
	groupOf := groupOfEach(fleet, rules, inventory)
	t := &turns{
		groupOf: map[string]string{},
		groups:  groupsOf(fleet, rules, groupOf, ""),
		total:   rules.RollingRules.Total,
	}
	for name, group := range groupOf {
		t.groupOf[name] = state.GroupOf(group)
	}
	return t
}

// stages are some nodes, group after group.
func (t *turns) stages(nodes []string) [][]string {
	if t == nil {
		return [][]string{nodes}
	}
	var out [][]string
	for _, g := range t.groups {
		own := slices.DeleteFunc(slices.Clone(nodes), func(n string) bool { return t.groupOf[n] != g.Group })
		if len(own) > 0 {
			out = append(out, own)
		}
	}
	return out
}

// limits are how many nodes of each stage may change at a time: as many as the strictest of its groups allows.
func (t *turns) limits(stages [][]string) ([]int, error) {
	if t == nil {
		return nil, nil
	}
	out := make([]int, len(stages))
	for i, nodes := range stages {
		for _, g := range t.groups {
			if !slices.ContainsFunc(nodes, func(n string) bool { return t.groupOf[n] == g.Group }) {
				continue
			}
			if g.Limit == 0 {
				return nil, fmt.Errorf(
					"role %s is frozen: its rolling rule is 0. To run a command there all the same: --max 1",
					g.Group,
				)
			}
			if out[i] == 0 || g.Limit < out[i] {
				out[i] = g.Limit
			}
		}
		if t.total > 0 {
			out[i] = min(out[i], t.total)
		}
	}
	return out, nil
}

// atATime says how many nodes run a command at a time, and in which order.
func atATime(c *state.Command) string {
	if len(c.Limits) == 0 {
		return fmt.Sprintf("%d at a time", c.Max)
	}
	var out []string
	for i, nodes := range c.Stages {
		if len(nodes) > 0 {
			out = append(out, fmt.Sprintf("%s %d at a time", safetext.Some(nodes, 3), c.Limits[i]))
		}
	}
	return strings.Join(out, ", then ")
}
