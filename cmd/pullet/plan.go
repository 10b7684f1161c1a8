package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/internal/agent"
	"github.com/pullet/pullet/puller"
)

func planCommand(a *app) *cobra.Command {
	var detailed bool
	var o agent.Options
	c := &cobra.Command{
		Use: "plan [DIR]", GroupID: "node", Args: upToOne,
		Short: "Show what a pull would change on this node, with diffs",
		Long: "Plan fetches and renders as a pull does, and compares the result with the node. It touches nothing,\n" +
			"here or in the fleet's record. With DIR it takes a state repository as it stands in that directory\n" +
			"instead, as a pull would read its commit.\n" +
			"\n" +
			"Some answers take commands that the repository wrote: unless, onlyif, macros, checks of extensions. They\n" +
			"run with your rights. Of DIR they do not run without --run, and such steps count as changes.\n" +
			"\n" +
			"EXIT STATUS\n" +
			"  0  nothing is wrong\n" +
			"  1  an error, or a step that could not be compared\n" +
			"With --detailed-exitcode: 0 nothing would change, 2 something would, 4 failed, 6 both.",
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			dir := ""
			if len(args) > 0 {
				if _, dir, err = openDir(cmd.Context(), args); err != nil {
					return err
				}
			}
			if o.Run && dir == "" {
				return usage(errors.New("--run is for DIR: a plan of this node's repositories always runs them"))
			}
			config, done, err := a.planConfig(dir)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, done()) }()
			node, err := agent.New(config, build().Version, a.logger())
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, node.Close()) }()
			out, err := node.Plan(cmd.Context(), dir, o)
			if err != nil {
				return err
			}
			return a.printPlan(out, detailed)
		},
	}
	c.Flags().BoolVar(&detailed, "detailed-exitcode", false, "tell by the exit code whether something would change")
	c.Flags().BoolVar(&o.Run, "run", false, "run the commands of the repository in DIR that answers need")
	c.Flags().BoolVar(&o.PruneAll, "prune-all", false, "show what pull --prune-all would remove")
	c.Flags().BoolVar(&o.PruneRemoved, "prune-removed", false, "show what pull --prune-removed would remove")
	return c
}

// planConfig is the node's configuration. A directory can be planned on a host that has none, such as a laptop: with a
// state directory that done removes.
func (a *app) planConfig(dir string) (c agent.Config, done func() error, err error) {
	done = func() error { return nil }
	file, err := configFile(a)
	if err != nil {
		return c, done, err
	}
	if _, err := os.Stat(file); dir == "" || !errors.Is(err, fs.ErrNotExist) {
		c, err := a.readConfig()
		return c, done, err
	}
	if c, err = agent.DefaultBelow(a.rootDir); err != nil {
		return c, done, err
	}
	if c.Node.Name, err = os.Hostname(); err != nil {
		return c, done, err
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return c, done, err
	}
	c.Repositories = []puller.Source{{Name: "main", URL: "file://" + dir}}
	c.Paths.State, err = os.MkdirTemp("", "pullet-plan-")
	return c, func() error { return os.RemoveAll(c.Paths.State) }, err
}

func (a *app) printPlan(out *agent.Outcome, detailed bool) error {
	for _, w := range append(append([]error(nil), out.Refused...), out.Warnings...) {
		a.warn("%v", w)
	}
	done, err := a.structured(out.Report)
	if err != nil {
		return err
	}
	if !done {
		a.printReport(out.Report, true)
		recap(a.out, fmt.Sprintf("Plan for %s", out.Version), out.Report)
		printUnevaluated(a.out, out.Report)
	}
	if code := exitCode(out, detailed); code != 0 && (detailed || code == agent.ExitError) {
		return &exit{code, nil}
	}
	return nil
}

// printUnevaluated says for how many steps the commands of the repository did not run.
func printUnevaluated(w io.Writer, r *apply.Report) {
	n := 0
	for _, s := range r.Steps {
		if s.Unevaluated != "" {
			n++
		}
	}
	if n > 0 {
		const hint = "hint: --run runs the commands of the repository to evaluate them"
		fmt.Fprintf(w, "not evaluated: %s; %s\n", count(n, "step"), hint)
	}
}
