package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/pullet/pullet/cmd/pullet/fleetnames"
	"github.com/pullet/pullet/internal/agent"
	"github.com/pullet/pullet/internal/safetext"
	"github.com/pullet/pullet/puller"
	"github.com/pullet/pullet/render"
	"github.com/pullet/pullet/state"
)

// starting is what rollout start was told.
type starting struct {
	instructions      string
	noop, wait, retry bool
	timeout           time.Duration
	reason            string
}

const waitExits = `
EXIT STATUS
  0   done
  1   an error, or the rollout is halted
  3   with --wait: not finished in time, or another version took its place
  64  the command line is wrong`

func startCommand(a *app) *cobra.Command {
	var s starting
	c := &cobra.Command{
		Use: "start REV | NAME=REV...", Args: s.revisions,
		Short: "Move the fleet to a tag, a branch or a commit, and hold it there",
		Long: "Start makes a revision the fleet's version and holds it there until rollout follow. It is fetched\n" +
			"and compiled on this node first, and must come after the version that the fleet has. Nodes take it\n" +
			"at their next pull, under the rules of the rollout.\n" +
			waitExits,
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("instructions") && s.instructions == "" { // such as from a variable that is not set
				return usage(errors.New("--instructions is empty: write a file, - for the input, or the JSON itself"))
			}
			if cmd.Flags().Changed("timeout") && !s.wait && !s.retry {
				return usage(errors.New("--timeout goes with --wait or --retry"))
			}
			return a.steers(cmd, a.withNode(func(ctx context.Context, node *agent.Agent, store *state.Store) error {
				return a.start(ctx, node, store, args, s, cmd.InOrStdin())
			}))
		},
	}
	f := c.Flags()
	f.StringVar(
		&s.instructions,
		"instructions",
		"",
		"rules of this rollout: a JSON file, - for the input, or the JSON itself (default: upgrade.json beside the "+
			"configuration, where it exists, or those that the rollout has); none drops those",
	)
	f.BoolVar(&s.noop, "noop", false, "show what would happen, and change nothing")
	f.BoolVar(&s.wait, "wait", false, "follow it to its end")
	f.BoolVar(&s.retry, "retry", false, "as --wait, and go on after a halt when the nodes that failed have succeeded")
	durationVar(f, &s.timeout,
		"timeout",
		0,
		"with --wait or --retry: how long, from when the version is set (default: any time)",
	)
	f.StringVar(&s.reason, "reason", "", "why, for the others and for the record")
	return c
}

// revisions refuses a command line without a revision, and a time where a revision is expected.
func (s *starting) revisions(cmd *cobra.Command, args []string) error {
	for _, rev := range args {
		if _, err := render.ParseDuration(rev); err == nil && (s.wait || s.retry) {
			return usage(
				fmt.Errorf("%[1]s is no revision: --wait and --retry take no time; write: --wait --timeout %[1]s", rev),
			)
		}
	}
	return arguments(cobra.MinimumNArgs(1))(cmd, args)
}

// startView is a rollout that was started, or with noop would be.
type startView struct {
	Version state.Version  `json:"version"`
	Noop    bool           `json:"noop"`
	Groups  []plannedGroup `json:"groups"`
}

func (a *app) start(
	ctx context.Context,
	node *agent.Agent,
	store *state.Store,
	revs []string,
	s starting,
	in io.Reader,
) error {
	rules, err := a.readInstructions(s.instructions, in)
	if err != nil {
		return err
	}
	p, err := node.Prepare(ctx, store, revs, rules)
	var revision *puller.RevisionError
	if errors.As(err, &revision) {
		return fmt.Errorf("%w%s", err, fleetnames.Suggestion(revision.Rev, revision.Known))
	}
	if err != nil {
		return err
	}
	plan, warnings, err := planOf(ctx, store, p)
	if err != nil {
		return err
	}
	for _, w := range warnings {
		a.warn("%s", w)
	}
	if !s.noop && !settled(p) {
		p.Version.By, p.Version.Reason = a.operator(), s.reason
		if err := store.Versions.Move(ctx, p.Version, p.Current, p.Seen); err != nil {
			return err
		}
	}
	done, err := a.structured(startView{p.Version, s.noop, plan})
	if err != nil {
		return err
	}
	if !done {
		a.printStart(p, plan, s.noop)
	}
	if s.noop || !s.wait && !s.retry {
		return nil
	}
	v, _, err := store.Versions.Current(ctx)
	if err != nil {
		return err
	}
	ctx, cancel, err := within(ctx, s.timeout)
	if err != nil {
		return err
	}
	defer cancel()
	return waitCmd{a}.await(ctx, store, v, s.retry)
}

// settled reports that the fleet is at the version already, as it is to be: to set it again would make who waits start
// anew.
func settled(p *agent.Proposal) bool {
	return p.Version.Same(p.Current) && p.Current.Held && p.Current.Until.IsZero() &&
		bytes.Equal(p.Version.Instructions, p.Current.Instructions)
}

// plannedGroup is a group of nodes in the order of a rollout.
type plannedGroup struct {
	Stage  int      `json:"stage"`
	Group  string   `json:"group"`
	Limit  int      `json:"limit"`
	Nodes  int      `json:"nodes"`
	Behind []string `json:"behind"` // those that do not run the version

	Opens time.Time `json:"opens,omitzero"` // when its maintenance window opens; zero: now
}

// planOf are the groups of a version in the order in which they start, and what its rules say of roles that no node
// has.
func planOf(
	ctx context.Context,
	store *state.Store,
	p *agent.Proposal,
) (plan []plannedGroup, warnings []string, err error) {
	o, err := store.Views.Fleet(ctx, false)
	if err != nil {
		return nil, nil, err
	}
	warnings, err = p.Rollout.Against(allNodes(o, p.Inventory))
	return groupsOf(o, p.Rollout, groupOfEach(o, p.Rollout, p.Inventory), p.Version.ID), warnings, err
}

// allNodes are the nodes of the inventory and those that registered.
func allNodes(o *state.Overview, inventory render.Inventory) map[string]render.Node {
	nodes := map[string]render.Node{}
	for name, n := range o.Nodes {
		nodes[name] = render.Node{Name: name, Labels: n.Labels}
	}
	for name, n := range inventory {
		if !o.Gone[name] {
			nodes[name] = n
		}
	}
	return nodes
}

// groupOfEach is the group of each node of the inventory and of those that registered.
func groupOfEach(o *state.Overview, rules render.Rollout, inventory render.Inventory) map[string]string {
	out := map[string]string{}
	for name, n := range allNodes(o, inventory) {
		out[name] = rules.Group(name, n.Labels)
	}
	return out
}

// groupsOf sorts nodes into the groups of a rollout.
func groupsOf(o *state.Overview, rules render.Rollout, groupOf map[string]string, version string) []plannedGroup {
	groups := map[string]*plannedGroup{}
	for _, name := range slices.Sorted(maps.Keys(groupOf)) {
		own := groupOf[name]
		g := groups[own]
		if g == nil {
			g = &plannedGroup{Group: state.GroupOf(own), Stage: rules.Stage(own), Behind: []string{}}
			groups[own] = g
		}
		if g.Nodes++; o.Running[name] != version || o.Midway(name) {
			g.Behind = append(g.Behind, name)
		}
	}
	var out []plannedGroup
	for own, g := range groups {
		g.Limit, g.Opens = rules.LimitFor(own, g.Nodes), rules.Opens(own, time.Now())
		out = append(out, *g)
	}
	slices.SortFunc(out, func(x, y plannedGroup) int {
		return cmp.Or(cmp.Compare(x.Stage, y.Stage), cmp.Compare(x.Group, y.Group))
	})
	return out
}

// instructed says what becomes of the instructions that the fleet's version has.
func instructed(p *agent.Proposal) string {
	if p.Current == nil || p.Current.Instructions == nil {
		return ""
	}
	had, has := string(p.Current.Instructions), string(p.Version.Instructions)
	switch {
	case has == had && p.Version.Same(p.Current):
		return "it keeps its instructions: " + had + "; to drop them: --instructions none\n"
	case has != "": // others were given
		return ""
	case p.Version.Same(p.Current):
		return "its instructions are dropped: " + had + "\n"
	}
	return "the instructions of " + withCommit(p.Current) + " are not for it: " + had + "\n"
}

func (a *app) printStart(p *agent.Proposal, plan []plannedGroup, noop bool) {
	behind := 0
	for _, g := range plan {
		behind += len(g.Behind)
	}
	verb := "is the fleet's version, and held until: pullet rollout follow"
	switch {
	case noop && p.Version.Same(p.Current):
		verb = "is the fleet's version already, and would be held"
	case noop:
		verb = "would be the fleet's version"
	case p.Version.Same(p.Current):
		verb = "was the fleet's version already; it is held until: pullet rollout follow"
	}
	fmt.Fprintf(a.out, "%s %s\n%s%s to change\n", withCommit(&p.Version), verb, instructed(p), count(behind, "node"))
	if behind == 0 {
		return
	}
	t := columns(a.out)
	fmt.Fprintln(t, "STAGE\tGROUP\tAT A TIME\tNODES")
	for _, g := range plan {
		if len(g.Behind) > 0 {
			fmt.Fprintf(t, "%d\t%s\t%d of %d\t%s\n", g.Stage, g.Group, g.Limit, g.Nodes, safetext.Some(g.Behind, 20))
		}
	}
	t.Flush()
}
