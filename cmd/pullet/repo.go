package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pullet/pullet/agent"
	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/apply/action"
	"github.com/pullet/pullet/render"
	"github.com/pullet/pullet/render/facts"
)

func gatherFacts(root string) render.Facts { return facts.Gather(root) }

func factNames() []string {
	var out []string
	for _, f := range facts.All() {
		out = append(out, f.Name)
	}
	return out
}

// openDir is a state repository as it stands in a directory, committed or not.
func openDir(args []string) (*render.Repository, string, error) {
	dir := "."
	if len(args) > 0 {
		dir = args[0]
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return nil, dir, fmt.Errorf("%s is not a directory", dir)
	}
	if _, err := os.Stat(dir + "/base"); err != nil {
		return nil, dir, fmt.Errorf("%s is not a state repository: it has no base/ (make one with: pullet init DIR)", dir)
	}
	return render.Open(render.Layer{Name: "main", FS: os.DirFS(dir)}), dir, nil
}

// nodeNamed is a node of the inventory, or one that a repository without an inventory is told about.
func nodeNamed(repo *render.Repository, name string, labels map[string]string) (render.Node, error) {
	nodes, err := repo.Nodes()
	if err != nil {
		return render.Node{}, err
	}
	var names []string
	for _, n := range nodes {
		if n.Name == name {
			return n, nil
		}
		names = append(names, n.Name)
	}
	if len(labels) > 0 {
		return render.Node{Name: name, Labels: labels}, nil
	}
	return render.Node{}, fmt.Errorf("there is no node %q under nodes/%s; give a new one its labels with --label role=web", name, suggestion(name, names))
}

func (a *app) validateCommand() *cobra.Command {
	var only string
	c := &cobra.Command{
		Use: "validate [DIR]", GroupID: "repo", Args: upToOne,
		Short: "Find everything that is wrong with a state repository, without a node",
		Long: "Validate compiles the repository in DIR (default: here) for every node of its inventory; without an inventory, for a made-up node\n" +
			"for each target of its base files. It prints every mistake with its place. -o json and -o github are for programs.\n\n" +
			"EXIT STATUS\n  0  nothing is wrong\n  1  something is\n  64 the command line is wrong",
		RunE: func(_ *cobra.Command, args []string) error {
			repo, _, err := openDir(args)
			if err != nil {
				return err
			}
			checked, mistakes, err := validate(repo, only)
			if err != nil {
				return err
			}
			return a.printMistakes(checked, mistakes)
		},
	}
	c.Flags().StringVar(&only, "node", "", "check for this node only")
	return c
}

// validate compiles and binds for each node and gathers the mistakes.
func validate(repo *render.Repository, only string) (checked int, mistakes render.ErrorList, err error) {
	nodes, err := repo.Nodes()
	if errors.As(err, &mistakes) {
		return 0, mistakes, nil
	}
	if only != "" {
		n, err := nodeNamed(repo, only, nil)
		if err != nil {
			return 0, nil, err
		}
		nodes = []render.Node{n}
	}
	for _, n := range nodes {
		cat, err := repo.Compile(render.Input{Node: n, Facts: facts.Sample(n.Name), View: sampleView(nodes)})
		if err == nil {
			_, err = apply.Bind(cat, action.All())
		}
		var list render.ErrorList
		if errors.As(err, &list) {
			mistakes = append(mistakes, list...)
		} else if err != nil {
			return checked, nil, err
		}
		checked++
	}
	if sorted, ok := mistakes.Err().(render.ErrorList); ok {
		mistakes = sorted
	}
	return checked, mistakes, nil
}

// sampleView is a fleet in which every node has reported.
func sampleView(nodes []render.Node) render.View {
	v := render.View{Nodes: map[string]render.Node{}, Facts: map[string]render.Facts{}}
	for _, n := range nodes {
		v.Nodes[n.Name], v.Facts[n.Name] = n, facts.Sample(n.Name)
	}
	return v
}

// githubEscape is how a message stands in one line of a GitHub workflow command.
var githubEscape = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")

// printMistakes prints what validate found, in the form that was asked for.
func (a *app) printMistakes(checked int, mistakes render.ErrorList) error {
	switch a.output {
	case "json":
		if mistakes == nil {
			mistakes = render.ErrorList{}
		}
		if _, err := a.structured(mistakes); err != nil {
			return err
		}
	case "github":
		for _, m := range mistakes {
			text := strings.TrimPrefix(m.Error(), m.Pos.String()+": ")
			fmt.Fprintf(a.out, "::error file=%s,line=%d,col=%d::%s\n", m.Pos.File, m.Pos.Line, m.Pos.Col, githubEscape.Replace(text))
		}
	case "table":
		if len(mistakes) > 0 {
			fmt.Fprintln(a.out, mistakes.Error())
		}
	}
	if len(mistakes) > 0 {
		return &exit{agent.ExitError, fmt.Errorf("%s, checked for %s", count(len(mistakes), "mistake"), count(checked, "node"))}
	}
	if a.output == "table" {
		fmt.Fprintf(a.out, "ok: checked for %s\n", count(checked, "node"))
	}
	return nil
}

func (a *app) renderCommand() *cobra.Command {
	var node, factsFile string
	var labels map[string]string
	var varsOnly bool
	c := &cobra.Command{
		Use: "render [DIR] --node NAME", GroupID: "repo", Args: upToOne,
		Short: "Show the catalog of a state repository for any node",
		RunE: func(_ *cobra.Command, args []string) error {
			repo, _, err := openDir(args)
			if err != nil {
				return err
			}
			if node == "" {
				return &exit{exitUsage, errors.New("--node is missing: name a node of nodes/")}
			}
			n, err := nodeNamed(repo, node, labels)
			if err != nil {
				return err
			}
			in := render.Input{Node: n, Facts: facts.Sample(n.Name)}
			if in.Facts, err = readFacts(factsFile, in.Facts); err != nil {
				return err
			}
			return a.printCatalog(repo, in, varsOnly)
		},
	}
	f := c.Flags()
	f.StringVar(&node, "node", "", "the node")
	f.StringVar(&factsFile, "facts", "", "its facts, as pullet facts -o json prints them (default: those of a made-up Debian host)")
	f.StringToStringVar(&labels, "label", nil, "labels of a node that is not under nodes/: role=web,env=prod")
	f.BoolVar(&varsOnly, "vars", false, "only the merged variables")
	return c
}

// readFacts puts the facts of a file over made-up ones.
func readFacts(file string, sample render.Facts) (render.Facts, error) {
	if file == "" {
		return sample, nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, &sample); err != nil {
		return nil, fmt.Errorf("%s: %w; write it with: pullet facts -o json", file, err)
	}
	return sample, nil
}

func (a *app) printCatalog(repo *render.Repository, in render.Input, varsOnly bool) error {
	nodes, err := repo.Nodes()
	if err != nil {
		return err
	}
	in.View = sampleView(nodes)
	cat, err := repo.Compile(in)
	if err != nil {
		return err
	}
	var shown any = catalogJSON(cat)
	if varsOnly {
		shown = cat.Vars
	}
	if done, err := a.structured(shown); done || err != nil {
		return err
	}
	return printYAML(a.out, shown)
}

// catalogJSON is a catalog for people and programs.
func catalogJSON(cat *render.Catalog) map[string]any {
	jobs := []any{}
	for _, j := range cat.Jobs {
		steps := []any{}
		for _, s := range j.Steps {
			step := map[string]any{"name": s.Name, "action": s.Action, "parameters": s.Params.Value(), "at": s.Pos.String()}
			if s.Conditions.When != nil {
				step["when"] = s.Conditions.When.Expression.Text
			}
			for _, r := range s.Requisites {
				refs, _ := step[r.Kind].([]string)
				step[r.Kind] = append(refs, r.Name)
			}
			steps = append(steps, step)
		}
		jobs = append(jobs, map[string]any{"name": j.Name, "validation": j.Validation, "steps": steps})
	}
	return map[string]any{"node": cat.Node, "variables": cat.Vars, "jobs": jobs, "digest": cat.Digest}
}
