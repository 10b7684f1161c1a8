package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"github.com/pullet/pullet/cmd/pullet/fleetnames"
	"github.com/pullet/pullet/puller"
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

// openDir is a state repository as it stands in a directory, committed or not. The repository is there also with an
// error that says why hosts refuse it (puller.Refused), if it can be read.
func openDir(ctx context.Context, args []string) (*render.Repository, string, error) {
	dir := "."
	if len(args) > 0 {
		dir = args[0]
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return nil, dir, fmt.Errorf("%s is not a directory", dir)
	}
	if _, err := os.Stat(dir + "/base"); err != nil {
		return nil, dir, fmt.Errorf(
			"%s is not a state repository: it has no base/ (make one with: pullet init DIR)",
			dir,
		)
	}
	files, err := puller.WorkTree(ctx, dir)
	if files == nil {
		return nil, dir, err
	}
	return render.Open(render.Layer{Name: "main", FS: files}), dir, err
}

// nodeNamed is a node of the inventory, or one that the labels of the command line describe.
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
	return render.Node{}, fmt.Errorf(
		"there is no node %q under nodes/%s; give a new one its labels with --label role=web",
		name,
		fleetnames.Suggestion(name, names),
	)
}

func renderCommand(a *app) *cobra.Command {
	var of nodeFlags
	var hostVars string
	var varsOnly, origin bool
	c := &cobra.Command{
		Use: "render [DIR] --node NAME", GroupID: "repo", Args: upToOne,
		Short: "Show the catalog of a state repository for any node",
		RunE: func(cmd *cobra.Command, args []string) error {
			repo, _, err := openDir(cmd.Context(), args)
			if err != nil {
				return err
			}
			if origin && !varsOnly {
				return &exit{exitUsage, errors.New("--origin is for variables: add --vars")}
			}
			in, err := of.input(repo)
			if err != nil {
				return err
			}
			in.Context = cmd.Context()
			if origin {
				return printOrigins(a, repo, in, hostVars)
			}
			if in.HostVars, err = ownVars(hostVars); err != nil {
				return err
			}
			return printCatalog(a, repo, in, varsOnly)
		},
	}
	of.add(c)
	f := c.Flags()
	f.StringVar(&hostVars, "host-vars", "", "a directory with the host's own variables, such as /etc/pullet/vars.d")
	f.BoolVar(&varsOnly, "vars", false, "only the merged variables")
	f.BoolVar(
		&origin,
		"origin",
		false,
		"with --vars, a line for each variable: its value, and the file and line that it came from",
	)
	return c
}

// ownVars are the variables of a host itself, in the files of a directory; none without one.
func ownVars(dir string) (map[string]any, error) {
	if dir == "" {
		return nil, nil
	}
	if _, err := os.ReadDir(dir); err != nil {
		return nil, err
	}
	vars, _, err := render.HostVars(os.DirFS(dir), dir)
	return vars, err
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
	var given render.Facts
	if err := json.Unmarshal(text, &given); err != nil {
		return nil, fmt.Errorf("%s: %w; write it with: pullet facts -o json", file, err)
	}
	return facts.Over(sample, given), nil
}

// printOrigins shows where each variable came from.
func printOrigins(a *app, repo *render.Repository, in render.Input, hostVars string) error {
	var own fs.FS
	if hostVars != "" {
		own = os.DirFS(hostVars)
	}
	list, err := repo.Origins(in, own, hostVars)
	if err != nil {
		return err
	}
	if done, err := a.structured(list); done || err != nil {
		return err
	}
	w := columns(a.out)
	for _, o := range list {
		value, err := json.Marshal(o.Value)
		if err != nil {
			return err
		}
		from := o.Pos.String()
		if from == "" {
			from = "-"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\n", o.Path, from, value)
	}
	return w.Flush()
}

func printCatalog(a *app, repo *render.Repository, in render.Input, varsOnly bool) error {
	show, stop := newProgress(in.Context, a.err)
	show.Doing("compiling for " + in.Node.Name)
	cat, err := repo.Compile(in)
	stop()
	if err != nil {
		return err
	}
	var shown any = viewOfCatalog(cat)
	if varsOnly {
		shown = cat.Vars
	}
	if done, err := a.structured(shown); done || err != nil {
		return err
	}
	return printYAML(a.out, shown)
}

// catalogView is a catalog for people and programs.
type catalogView struct {
	Digest    string         `json:"digest"` // of all that a run depends on
	Jobs      []jobView      `json:"jobs"`
	Node      render.Node    `json:"node"`
	Variables map[string]any `json:"variables"`
}

// jobView is a job of a catalog.
type jobView struct {
	Name       string           `json:"name"`
	Validation bool             `json:"validation"`
	Steps      []map[string]any `json:"steps"` // name, action, parameters, at, when, and the requisites by their kinds
}

func viewOfCatalog(cat *render.Catalog) catalogView {
	jobs := []jobView{}
	for _, j := range cat.Jobs {
		steps := []map[string]any{}
		for _, s := range j.Steps {
			step := map[string]any{
				"name":       s.Name,
				"action":     s.Action,
				"parameters": cat.DisplayParams(s).Value(),
				"at":         s.Pos.String(),
			}
			if s.Conditions.When != nil {
				step["when"] = s.Conditions.When.Expression.Text
			}
			for _, r := range s.Requisites {
				refs, _ := step[r.Kind].([]string)
				step[r.Kind] = append(refs, r.Name)
			}
			steps = append(steps, step)
		}
		jobs = append(jobs, jobView{j.Name, j.Validation, steps})
	}
	return catalogView{cat.Digest, jobs, cat.Node, cat.Vars}
}
