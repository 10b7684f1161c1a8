package main

import (
	"context"
	"errors"
	"slices"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/render"
	"github.com/pullet/pullet/render/lint"
)

// reactionCheck looks at what hosts would run for the reactions of a repository.
type reactionCheck struct {
	repo      *render.Repository
	reactions []*render.Reaction
	nodes     map[string]map[string]string // the labels of each
}

// reactionsOf are the reactions of a repository. Their mistakes are among those of each host.
func reactionsOf(repo *render.Repository, view render.View) reactionCheck {
	out := reactionCheck{repo: repo, nodes: map[string]map[string]string{}}
	for name, n := range view.Nodes {
		out.nodes[name] = n.Labels
	}
	out.reactions, _ = repo.Reactions(context.Background())
	return out
}

// check compiles for a host what each reaction would run there, with an event that is made up.
func (c reactionCheck) check(in render.Input, all *lint.Lint, specs []apply.Spec, to found) error {
	for _, r := range c.reactions {
		cat, err := c.compile(r, in)
		var found error
		if cat != nil {
			all.AddReaction(r, cat)
			found = bound(cat, specs)
		}
		for _, err := range []error{err, found} {
			var list render.ErrorList
			if err != nil && !errors.As(err, &list) {
				return err
			}
			to.add(in.Node.Name, slices.DeleteFunc(slices.Clone(list), render.OfMadeUp))
		}
	}
	return nil
}

// compile is the catalog of a reaction's run on a host; nil where it has none there.
func (c reactionCheck) compile(r *render.Reaction, in render.Input) (*render.Catalog, error) {
	hosts := r.Hosts(c.nodes, []string{in.Node.Name})
	if !slices.Contains(hosts, in.Node.Name) {
		return nil, nil
	}
	in.Event, in.Reaction = r.MadeUpEvent(in.Node.Name), &render.Reacting{Reaction: r.Name, Hosts: hosts}
	return c.repo.Compile(in)
}
