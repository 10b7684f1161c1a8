package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v4"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/apply/action"
	"github.com/pullet/pullet/apply/action/extension"
	"github.com/pullet/pullet/render"
	"github.com/pullet/pullet/render/facts"
)

func graphCommand(a *app) *cobra.Command {
	var of nodeFlags
	var events bool
	c := &cobra.Command{
		Use: "graph [DIR] --node NAME | --events", GroupID: "repo", Args: upToOne,
		Short: "Draw what runs after what on a node, and why",
		Long: "Graph compiles the repository in DIR (default: here) for a node and draws its steps with their\n" +
			"order: -o dot for graphviz, -o mermaid for Markdown, -o table as text.\n" +
			"\n" +
			"With --events it draws what leads to what, on all nodes or on one: triggers and events to reactions,\n" +
			"these to jobs, and jobs to the events that their steps raise.",
		RunE: func(cmd *cobra.Command, args []string) error {
			if events {
				return printEvents(cmd.Context(), a, of, args)
			}
			repo, cat, err := of.compile(cmd.Context(), args)
			if err != nil {
				return err
			}
			extensions, mistakes := extension.Load(repo, action.All())
			if err := mistakes.Err(); err != nil {
				return err
			}
			program, err := apply.Bind(cat, append(action.All(), extensions.Specs()...))
			if err != nil {
				return err
			}
			return printGraph(a, program)
		},
	}
	of.add(c)
	c.Flags().BoolVar(&events, "events", false, "draw what events lead to")
	return c
}

// graphView is the order of a catalog's steps.
type graphView struct {
	Steps []string     `json:"steps"` // in the order in which they run one by one
	Edges []apply.Edge `json:"edges"`
}

func printGraph(a *app, p *apply.Program) error {
	steps, edges := p.Graph()
	switch a.output {
	case "dot":
		printDot(a.out, "steps", steps, edges)
	case "mermaid":
		printMermaid(a.out, steps, edges)
	case "table":
		t := columns(a.out)
		fmt.Fprintln(t, "STEP\tRUNS AFTER\tWHY")
		for _, e := range edges {
			fmt.Fprintf(t, "%s\t%s\t%s\n", e.After, e.Before, e.Why)
		}
		return t.Flush()
	default:
		_, err := a.structured(graphView{steps, edges})
		return err
	}
	return nil
}

func printDot(w io.Writer, name string, steps []string, edges []apply.Edge) {
	fmt.Fprintf(w, "digraph %s {\n  node [shape=box];\n", name)
	for _, s := range steps {
		fmt.Fprintf(w, "  %q;\n", s)
	}
	for _, e := range edges {
		fmt.Fprintf(w, "  %q -> %q [label=%q];\n", e.Before, e.After, e.Why)
	}
	fmt.Fprintln(w, "}")
}

func printMermaid(w io.Writer, steps []string, edges []apply.Edge) {
	number := map[string]int{}
	fmt.Fprintln(w, "flowchart TD")
	for i, s := range steps {
		number[s] = i
		fmt.Fprintf(w, "  s%d[%q]\n", i, s)
	}
	for _, e := range edges {
		fmt.Fprintf(w, "  s%d -->|%s| s%d\n", number[e.Before], e.Why, number[e.After])
	}
}

func evalCommand(a *app) *cobra.Command {
	var of nodeFlags
	var event string
	c := &cobra.Command{
		Use: "eval EXPRESSION|TEMPLATE [DIR] --node NAME", GroupID: "repo",
		Args:  arguments(cobra.RangeArgs(1, 2)),
		Short: "Evaluate an expression or a template against a node's data",
		Example: "  pullet eval --node web1 \"hasLabel('role=web') and vars.drain != ''\"\n" +
			"  pullet eval --node web1 '{{ macro \"banner\" \"x\" }}'",
		RunE: func(cmd *cobra.Command, args []string) error {
			var err error
			if of.event, err = readEvent(event); err != nil {
				return err
			}
			_, cat, err := of.compile(cmd.Context(), args[1:])
			if err != nil {
				return err
			}
			value, err := cat.Value(args[0])
			if err != nil {
				return err
			}
			if text, ok := value.(string); ok && a.output == "table" {
				_, err := fmt.Fprintln(a.out, text)
				return err
			}
			if done, err := a.structured(value); done || err != nil {
				return err
			}
			return printYAML(a.out, value)
		},
	}
	of.add(c)
	c.Flags().
		StringVar(
			&event, "event", "", "a YAML or JSON file with the event that a reaction would answer: name, occurrences, data",
		)
	return c
}

// readEvent reads the file of an event; no file is no event.
func readEvent(file string) (map[string]any, error) {
	if file == "" {
		return nil, nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var event map[string]any
	if err := yaml.Load(text, &event); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if event == nil {
		return nil, fmt.Errorf("%s: an event is a map with name, occurrences and data", file)
	}
	return event, nil
}

// nodeFlags name the node that a repository is compiled for.
type nodeFlags struct {
	node, facts string
	labels      map[string]string
	event       map[string]any
}

func (f *nodeFlags) add(c *cobra.Command) {
	c.Flags().StringVar(&f.node, "node", "", "the node")
	c.Flags().
		StringVar(
			&f.facts, "facts", "", "its facts, as pullet facts -o json prints them (default: those of a made-up Debian host)",
		)
	c.Flags().StringToStringVar(&f.labels, "label", nil, "labels of a node that is not under nodes/: role=web,env=prod")
}

// compile makes the catalog of the repository in a directory for the node.
func (f *nodeFlags) compile(ctx context.Context, args []string) (*render.Repository, *render.Catalog, error) {
	repo, _, err := openDir(ctx, args)
	if err != nil {
		return nil, nil, err
	}
	in, err := f.input(repo)
	if err != nil {
		return nil, nil, err
	}
	in.Context = ctx
	cat, err := repo.Compile(in)
	return repo, cat, err
}

// input is the node with its facts, in a fleet in which every node has reported.
func (f *nodeFlags) input(repo *render.Repository) (render.Input, error) {
	if f.node == "" {
		return render.Input{}, &exit{exitUsage, errors.New("--node is missing: name a node of nodes/")}
	}
	n, err := nodeNamed(repo, f.node, f.labels)
	if err != nil {
		return render.Input{}, err
	}
	nodes, err := repo.Nodes()
	if err != nil {
		return render.Input{}, err
	}
	in := render.Input{Node: n, Agent: build().Version, View: sampleView(nodes), Event: f.event}
	in.Facts, err = readFacts(f.facts, facts.Sample(n.Name))
	return in, err
}
