package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/apply/action"
	"github.com/pullet/pullet/apply/action/extension"
	"github.com/pullet/pullet/internal/agent"
	"github.com/pullet/pullet/puller"
	"github.com/pullet/pullet/render"
	"github.com/pullet/pullet/render/facts"
	"github.com/pullet/pullet/render/lint"
)

func validateCommand(a *app) *cobra.Command {
	var only, hostVars string
	var strict bool
	var timeout time.Duration
	var others []string
	c := &cobra.Command{
		Use: "validate [DIR]", GroupID: "repo", Args: upToOne,
		Short: "Find everything that is wrong with a state repository",
		Long: "Validate compiles the repository in DIR (default: here) for every node of its inventory; without an\n" +
			"inventory, for a made-up node for each target of its base files. It prints every mistake with its\n" +
			"place. Warnings are about what works and is most likely not what was meant; notes say what will\n" +
			"happen. With --node, what can be said only of all nodes together is left out. -o json and -o github\n" +
			"are for programs.\n" +
			"\n" +
			"The nodes are taken for Debian hosts, or with --facts for what it says; given several times, each\n" +
			"node is checked with each. What hosts keep for themselves in /etc/pullet/vars.d is not in the\n" +
			"repository: --host-vars gives every node checked the variables of a directory, which override those\n" +
			"of the repository.\n" +
			"\n" +
			"EXIT STATUS\n" +
			"  0  nothing is wrong; there may be warnings\n" +
			"  1  something is, or --strict and there are warnings\n" +
			"  64 the command line is wrong",
		RunE: func(cmd *cobra.Command, args []string) error {
			if timeout <= 0 {
				return usage(fmt.Errorf("--timeout %s: write a time such as 10m", timeout))
			}
			late := fmt.Errorf(
				"not finished within %s: the templates do too much for so many nodes, or raise --timeout",
				timeout,
			)
			ctx, cancel := context.WithTimeoutCause(cmd.Context(), timeout, late)
			defer cancel()
			checked, mistakes, err := validateDir(ctx, a, args, only, others, hostVars)
			if errors.Is(context.Cause(ctx), late) {
				return late
			}
			if err != nil {
				return err
			}
			if strict {
				for _, m := range mistakes {
					if m.Severity == render.Warning {
						m.Severity = render.Mistake
					}
				}
			}
			return printMistakes(a, checked, mistakes)
		},
	}
	c.Flags().StringVar(&only, "node", "", "check for this node only")
	c.Flags().
		StringVar(&hostVars, "host-vars", "", "a directory with the hosts' own variables, such as /etc/pullet/vars.d")
	c.Flags().
		StringArrayVar(
			&others, "facts", nil, "facts of the nodes, as pullet facts -o json prints them; several times for several systems",
		)
	durationVar(c.Flags(), &timeout, "timeout", 10*time.Minute, "how long it may take, for all nodes together")
	c.Flags().BoolVar(&strict, "strict", false, "take warnings for mistakes")
	return c
}

// validateDir gathers what is wrong with the repository in a directory, also if hosts refuse it as a whole.
func validateDir(
	ctx context.Context, a *app, args []string, only string, factFiles []string, hostVars string,
) (checked int, mistakes render.ErrorList, err error) {
	own, err := ownVars(hostVars)
	if err != nil {
		return 0, nil, err
	}
	repo, _, err := openDir(ctx, args)
	name, why, refused := puller.Refused(err)
	if err != nil && !refused {
		return 0, nil, err
	}
	if repo != nil {
		show, stop := newProgress(ctx, a.err)
		checked, mistakes, err = validate(ctx, repo, only, factFiles, own, show)
		stop()
		if err != nil {
			return checked, nil, err
		}
		noted, err := keptElsewhere(ctx, repo.Layers()[0].FS)
		if err != nil {
			return checked, nil, err
		}
		mistakes = append(mistakes, noted...)
	}
	if refused {
		mistakes = append(mistakes, &render.Error{Pos: render.Position{File: name}, Message: why})
	}
	return checked, mistakes, nil
}

// validate compiles and binds for each node and gathers the mistakes and warnings. The own variables override those of
// the repository.
func validate(
	ctx context.Context,
	repo *render.Repository,
	only string,
	factFiles []string,
	own map[string]any,
	show *progress,
) (checked int, mistakes render.ErrorList, err error) {
	nodes, err := repo.Nodes()
	if err != nil && !errors.As(err, &mistakes) { // mistakes of the inventory are among those of each host
		return 0, nil, err
	}
	view := sampleView(nodes)
	view.Services = sampleServices(repo, nodes)
	if only != "" {
		n, err := nodeNamed(repo, only, nil)
		if err != nil {
			return 0, nil, err
		}
		nodes = []render.Node{n}
	}
	hosts, err := hostsOf(nodes, factFiles)
	if err != nil {
		return 0, nil, err
	}
	for i := range hosts {
		hosts[i].Context = ctx
	}
	extensions, wrong := extension.Load(repo, action.All())
	specs := append(action.All(), extensions.Specs()...)
	mistakes, more, err := validateHosts(repo, hosts, view, own, specs, only == "", show)
	if err == nil && len(more) > 0 { // what jobs publish is known now, and others may read it
		maps.Copy(view.Services, more)
		mistakes, _, err = validateHosts(repo, hosts, view, own, specs, only == "", show)
	}
	mistakes = withoutEchoes(append(mistakes, wrong...))
	if sorted, ok := mistakes.Err().(render.ErrorList); ok {
		mistakes = sorted
	}
	return len(nodes), mistakes, err
}

// validateHosts gathers the mistakes of all hosts, and the services that their jobs publish and the view does not have.
func validateHosts(
	repo *render.Repository,
	hosts []render.Input,
	view render.View,
	own map[string]any,
	specs []apply.Spec,
	complete bool,
	show *progress,
) (
	mistakes render.ErrorList, more map[string][]render.Service, err error) {
	all, found, listed := lint.New(repo), found{}, false
	reactions := reactionsOf(repo, view)
	more = map[string][]render.Service{}
	names := map[string]bool{}
	for i, in := range hosts {
		show.Doing(fmt.Sprintf("compiling for %s, node %d of %d", in.Node.Name, i+1, len(hosts)))
		in.View, in.HostVars = view, own
		names[in.Node.Name] = true
		cat, err := repo.Compile(in)
		publishes(cat, view, more)
		listed = listed || cat != nil && len(cat.Inventory) > 0
		for _, err := range []error{err, bind(all, cat, specs)} {
			var list render.ErrorList
			if errors.As(err, &list) {
				found.add(in.Node.Name, list)
			} else if err != nil {
				return nil, nil, err
			}
		}
		complete = complete && err == nil
		if err := reactions.check(in, all, specs, found); err != nil {
			return nil, nil, err
		}
		if render.Spent(err) { // every other host would take as long
			break
		}
	}
	mistakes = append(found.once(len(names), listed), all.Findings(complete)...)
	for _, m := range mistakes {
		lacking(m, view)
	}
	return mistakes, more, nil
}

// withoutEchoes returns the findings without warnings at the place of a mistake, which says what there is to say.
func withoutEchoes(all render.ErrorList) render.ErrorList {
	wrong := map[render.Position]bool{}
	for _, e := range all.Mistakes() {
		wrong[e.Pos] = e.Pos.Line > 0
	}
	return slices.DeleteFunc(all, func(e *render.Error) bool { return e.Severity == render.Warning && wrong[e.Pos] })
}

// found are the mistakes of all hosts. One that several hosts have is one, also where it names the host.
type found map[string]*render.Error

func (f found) add(host string, list render.ErrorList) {
	for _, e := range list {
		key := strings.ReplaceAll(e.Error(), host, "\x00")
		if f[key] == nil {
			one := *e
			f[key] = &one
		}
		if !slices.Contains(f[key].Hosts, host) {
			f[key].Hosts = append(f[key].Hosts, host)
		}
	}
}

// once are the mistakes, with their hosts where not all have them and they are not made up.
func (f found) once(all int, listed bool) render.ErrorList {
	var out render.ErrorList
	for _, key := range slices.Sorted(maps.Keys(f)) {
		e := f[key]
		if len(e.Hosts) == all || !listed {
			e.Hosts = nil
		}
		out = append(out, e)
	}
	return out
}

// hostsOf are the nodes as hosts of the systems that the files describe, or as made-up Debian hosts.
func hostsOf(nodes []render.Node, factFiles []string) ([]render.Input, error) {
	if len(factFiles) == 0 {
		factFiles = []string{""}
	}
	var out []render.Input
	for _, file := range factFiles {
		for _, n := range nodes {
			known, err := readFacts(file, facts.Sample(n.Name))
			if err != nil {
				return nil, err
			}
			out = append(out, render.Input{Node: n, Facts: known, Agent: build().Version})
		}
	}
	return out, nil
}

// bind looks at what could be compiled for a node.
func bind(all *lint.Lint, cat *render.Catalog, specs []apply.Spec) error {
	if cat == nil {
		return nil
	}
	all.Add(cat)
	return bound(cat, specs)
}

// bound returns what binding a catalog's steps finds, the warnings included.
func bound(cat *render.Catalog, specs []apply.Spec) error {
	program, err := apply.Bind(cat, specs)
	if err != nil {
		return err
	}
	return program.Warnings().Err()
}

// sampleView is a fleet in which every node has reported.
func sampleView(nodes []render.Node) render.View {
	v := render.View{Nodes: map[string]render.Node{}, Facts: map[string]render.Facts{}}
	for _, n := range nodes {
		v.Nodes[n.Name], v.Facts[n.Name] = n, facts.Sample(n.Name)
	}
	return v
}

// githubMessage and githubProperty escape the message and the properties of a GitHub workflow command.
var (
	githubMessage  = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	githubProperty = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
)

// printMistakes prints what validate found, in the form that was asked for.
func printMistakes(a *app, checked int, mistakes render.ErrorList) error {
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
			fmt.Fprintln(a.out, githubLine(m))
		}
	case "table":
		if len(mistakes) > 0 {
			fmt.Fprintln(a.out, mistakes.Error())
		}
	}
	warnings := ""
	if n := mistakes.Count(render.Warning); n > 0 {
		warnings = " with " + count(n, "warning")
	}
	if n := mistakes.Count(render.Mistake); n > 0 {
		return &exit{
			agent.ExitError,
			fmt.Errorf("%s%s, checked for %s", count(n, "mistake"), warnings, count(checked, "node")),
		}
	}
	if a.output == "table" {
		fmt.Fprintf(a.out, "ok%s: checked for %s\n", warnings, count(checked, "node"))
	}
	return nil
}

// githubLine is a finding as a workflow command of GitHub.
func githubLine(m *render.Error) string {
	at := "file=" + githubProperty.Replace(m.Pos.File)
	if m.Pos.Line > 0 {
		at += fmt.Sprintf(",line=%d,col=%d", m.Pos.Line, m.Pos.Col)
	}
	text, level := *m, m.Severity.String()
	text.Pos, text.Severity = render.Position{}, render.Mistake
	if m.Severity == render.Note {
		level = "notice"
	}
	return fmt.Sprintf("::%s %s::%s", level, at, githubMessage.Replace(text.Error()))
}
