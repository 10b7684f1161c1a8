package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/render"
	"github.com/pullet/pullet/render/facts"
)

// eventEdge says what leads to what: a trigger to an event, that to a reaction, that to a job, that to an event.
type eventEdge struct {
	From string `json:"from"` // trigger NAME, event NAME, reaction NAME or job NAME
	To   string `json:"to"`
	Why  string `json:"why"` // the hosts, how many events it takes, or the step
}

// eventGraph collects the edges of a repository from the catalogs of its nodes.
type eventGraph struct {
	check  reactionCheck
	events map[string]bool               // that triggers and steps raise
	hosts  map[eventEdge]map[string]bool // of edges that hosts have
	steps  map[eventEdge]map[string]bool // of edges that steps have
}

// printEvents draws what leads to what in the repository of a directory, on one node or on all.
func printEvents(ctx context.Context, a *app, of nodeFlags, args []string) error {
	repo, _, err := openDir(ctx, args)
	if err != nil {
		return err
	}
	nodes, err := repo.Nodes()
	if err != nil {
		return err
	}
	view := sampleView(nodes)
	view.Services = sampleServices(repo, nodes)
	if of.node != "" {
		one, err := nodeNamed(repo, of.node, of.labels)
		if err != nil {
			return err
		}
		nodes = []render.Node{one}
		view.Nodes[one.Name] = one
	}
	if _, err := repo.Reactions(ctx); err != nil {
		return err
	}
	g := &eventGraph{
		check: reactionsOf(repo, view), events: map[string]bool{},
		hosts: map[eventEdge]map[string]bool{}, steps: map[eventEdge]map[string]bool{},
	}
	for _, n := range nodes {
		known, err := readFacts(of.facts, facts.Sample(n.Name))
		if err != nil {
			return err
		}
		in := render.Input{Context: ctx, Node: n, Facts: known, Agent: build().Version, View: view}
		if err := g.learn(in); err != nil {
			return err
		}
	}
	return g.print(a)
}

// learn takes in what one node has.
func (g *eventGraph) learn(in render.Input) error {
	cat, err := g.check.repo.Compile(in)
	if err != nil {
		return err
	}
	for _, t := range cat.Triggers {
		g.events[t.Event] = true
		note(g.hosts, eventEdge{From: "trigger " + t.Name, To: "event " + t.Event}, in.Node.Name)
	}
	g.emits(cat)
	for _, r := range g.check.reactions {
		cat, err := g.check.compile(r, in)
		var list render.ErrorList
		if err != nil && (!errors.As(err, &list) || cat == nil) {
			return err
		}
		if err := slices.DeleteFunc(list, render.OfMadeUp).Err(); err != nil {
			return err
		}
		if cat == nil {
			continue
		}
		for _, j := range cat.Jobs {
			note(g.hosts, eventEdge{From: "reaction " + r.Name, To: "job " + j.Name}, in.Node.Name)
		}
		g.emits(cat)
	}
	return nil
}

// emits takes in the events that the steps of a catalog raise.
func (g *eventGraph) emits(cat *render.Catalog) {
	for _, e := range render.Emits(cat) {
		g.events[e.Event] = true
		note(g.steps, eventEdge{From: "job " + e.Step.Job, To: "event " + e.Event}, e.Step.Name)
	}
}

func note(of map[eventEdge]map[string]bool, edge eventEdge, name string) {
	if of[edge] == nil {
		of[edge] = map[string]bool{}
	}
	of[edge][name] = true
}

// edges are all that were found, sorted: triggers first, then events, reactions and jobs.
func (g *eventGraph) edges() []eventEdge {
	out := []eventEdge{}
	for edge, names := range g.hosts {
		edge.Why = "on " + render.SomeHosts(slices.Sorted(maps.Keys(names)))
		out = append(out, edge)
	}
	for edge, names := range g.steps {
		edge.Why = "step " + render.SomeHosts(slices.Sorted(maps.Keys(names)))
		out = append(out, edge)
	}
	for _, r := range g.check.reactions {
		out = append(out, g.answers(r)...)
	}
	order := map[byte]int{'t': 0, 'e': 1, 'r': 2, 'j': 3}
	slices.SortFunc(out, func(a, b eventEdge) int {
		return cmp.Or(order[a.From[0]]-order[b.From[0]], cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To))
	})
	return out
}

// answers are the events that a reaction answers: those that something here raises, or what it is named for.
func (g *eventGraph) answers(r *render.Reaction) []eventEdge {
	var out []eventEdge
	limit := fmt.Sprintf("%s within %s", count(r.Limiter.MinOccurrences, "event"), r.Limiter.Window)
	for _, name := range slices.Sorted(maps.Keys(g.events)) {
		if r.Matches(name) {
			out = append(out, eventEdge{"event " + name, "reaction " + r.Name, limit})
		}
	}
	if len(out) == 0 {
		out = append(out, eventEdge{"event " + r.Name, "reaction " + r.Name, limit})
	}
	return out
}

func (g *eventGraph) print(a *app) error {
	edges := g.edges()
	var names []string
	var drawn []apply.Edge
	for _, e := range edges {
		drawn = append(drawn, apply.Edge{Before: e.From, After: e.To, Why: e.Why})
		for _, name := range []string{e.From, e.To} {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	switch a.output {
	case "dot":
		printDot(a.out, "events", names, drawn)
	case "mermaid":
		printMermaid(a.out, names, drawn)
	case "table":
		t := columns(a.out)
		fmt.Fprintln(t, "FROM\tLEADS TO\tWHY")
		for _, e := range edges {
			fmt.Fprintf(t, "%s\t%s\t%s\n", e.From, e.To, e.Why)
		}
		return t.Flush()
	default:
		_, err := a.structured(edges)
		return err
	}
	return nil
}
