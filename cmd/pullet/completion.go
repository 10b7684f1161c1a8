package main

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/pullet/pullet/cmd/pullet/fleetnames"
	"github.com/pullet/pullet/internal/agent"
	"github.com/pullet/pullet/state"
)

// candidates are what can stand behind some arguments; what cannot be known now has none, without a reason.
type candidates func(ctx context.Context, args []string, typed string) ([]string, error)

// completionTime is how long a shell waits for completions at most.
const completionTime = 2 * time.Second

// completions are what the shell offers for an argument.
type completions struct{ *app }

// complete gives commands and flags their completions: the tables below are all of them.
func (a completions) complete(root *cobra.Command) {
	nodes, roles, versions := a.ofFleet(nodesIn), a.ofFleet(rolesIn), a.ofFleet(versionsIn)
	for path, find := range map[string]candidates{
		"explain": places(topicNames), "schema": places(kindNames), "facts": places(fixed(factNames()...)),
		"history": places(a.runs),
		"verify":  first(versions, nodes), "wait": places(versions),
		"logs": places(nodes, a.logRuns), "decommission": places(nodes),
		"rollout start": places(versions), "rollout undo": places(versions), "rollout settle": places(a.ofFleet(targetedIn)),
		"events": places(a.ofFleet(eventsIn)), "events show": places(a.ofFleet(eventIDsIn)),
		"reactions show": places(a.ofFleet(runsIn)), "reactions cancel": places(a.ofFleet(runsIn)),
		"reactions pause":  places(a.ofFleet(reactionsIn)),
		"reactions resume": places(a.ofFleet(pausedIn)),
		"services":         places(a.services), "extension remove": places(a.ofFleet(extensionsIn)),
		"set-status": places(fixed(state.Provisioned, state.Configured, state.Validated),
			fixed(state.Running, state.Success, state.Failed, state.Pending)),
	} {
		if c, _, err := root.Find(strings.Fields(path)); err == nil {
			c.ValidArgsFunction = completes(find)
		}
	}
	for flag, find := range map[string]candidates{
		"enable --host": nodes, "enable --role": roles, "enable --version": versions, "disable --host": nodes,
		"disable --role": roles,
		" --output":      outputs, "run --target": nodes, "run --stage": nodes, "run --cancel": a.ofFleet(commandsIn),
		" --log-format": fixed("text", "json"),
		" --color":      fixed(colorForms()...),
		" --times":      fixed(timesForms()...), "failures --category": fixed(state.Categories()...),
		"event emit --host": nodes,
		"nodes --role":      roles, "nodes --state": fixed(allStates...), "rollout resume --role": roles,
		"set-status --node": nodes, "forget --job": a.leftJobs,
		"render --node": inventoryNames, "graph --node": inventoryNames,
		"eval --node": func(ctx context.Context, args []string, typed string) ([]string, error) {
			return inventoryNames(ctx, args[min(1, len(args)):], typed)
		}, "validate --node": inventoryNames,
	} {
		path, name, _ := strings.Cut(flag, " --")
		if c, _, err := root.Find(strings.Fields(path)); err == nil {
			_ = c.RegisterFlagCompletionFunc(name, completes(find)) // a test holds the names against the flags
		}
	}
	onlyFiles(root)
}

// fileIsMeant reports a command that takes a directory or a file, or runs another command.
func fileIsMeant(use string) bool {
	return strings.Contains(use, "DIR") || strings.Contains(use, "FILE") || strings.Contains(use, "COMMAND")
}

// onlyFiles keeps shells from offering the files here where no file is meant: as an argument of other commands, and as
// the value of flags.
func onlyFiles(c *cobra.Command) {
	if c.ValidArgsFunction == nil && !fileIsMeant(c.Use) {
		c.ValidArgsFunction = completes(fixed())
	}
	c.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if _, has := c.GetFlagCompletionFunc(f.Name); !has && f.NoOptDefVal == "" && !namesFile(f.Name) {
			_ = c.RegisterFlagCompletionFunc(f.Name, completes(fixed())) // it is there
		}
	})
	for _, sub := range c.Commands() {
		onlyFiles(sub)
	}
}

// namesFile reports a flag whose value is a file or a directory.
func namesFile(flag string) bool {
	files := []string{"config", "root", "facts", "event", "host-vars", "instructions", "write", "data-file"}
	return slices.Contains(files, flag)
}

// commandsIn are the commands of run that nodes may still begin with.
func commandsIn(ctx context.Context, store *state.Store, _ *state.Overview) (ids []string, err error) {
	all, _, err := store.Commands.List(ctx)
	for _, c := range all {
		if c.Open {
			ids = append(ids, c.ID)
		}
	}
	return ids, err
}

// completed is in the context of candidates the name of the command that is typed.
type completed struct{}

// outputs are the forms in which the command prints that is typed.
func outputs(ctx context.Context, _ []string, _ string) ([]string, error) {
	name, _ := ctx.Value(completed{}).(string)
	return outputForms(name), nil
}

// completes is the one way to complete: within a short time, and only with words that a shell takes as they are.
func completes(find candidates) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(context.WithValue(cmd.Context(), completed{}, cmd.Name()), completionTime)
		defer cancel()
		found := make(chan []string, 1)
		go func() { // the process ends with its answer, whatever hangs here
			words, err := find(ctx, args, typed)
			if err != nil {
				words = nil
			}
			found <- words
		}()
		select {
		case words := <-found:
			return offered(words, typed), cobra.ShellCompDirectiveNoFileComp
		case <-ctx.Done():
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
	}
}

// offered are the words that begin with what was typed, sorted. A name that a shell would read as anything but one word
// is left out: a tag can be $(reboot).
func offered(words []string, typed string) []string {
	var out []string
	for _, word := range words {
		if strings.HasPrefix(word, typed) && shellWord(word) {
			out = append(out, word)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// shellWord reports a word that has no meaning of its own in bash, zsh, fish and PowerShell, nor for the completion
// scripts: it is no option.
func shellWord(word string) bool {
	for _, r := range word {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
		if !letter && !strings.ContainsRune("._-/+", r) {
			return false
		}
	}
	return word != "" && word[0] != '-'
}

// places are the candidates of each place of a command, and none behind the last.
func places(each ...candidates) candidates {
	return func(ctx context.Context, args []string, typed string) ([]string, error) {
		if len(args) >= len(each) {
			return nil, nil
		}
		return each[len(args)](ctx, args, typed)
	}
}

// first are the candidates of the first place, and those of every other one.
func first(one, others candidates) candidates {
	return func(ctx context.Context, args []string, typed string) ([]string, error) {
		if len(args) == 0 {
			return one(ctx, args, typed)
		}
		return others(ctx, args, typed)
	}
}

// fixed are words that do not change.
func fixed(words ...string) candidates {
	return func(context.Context, []string, string) ([]string, error) { return words, nil }
}

// ofFleet are words that the fleet's record has. A record that this host never used is not made.
func (a completions) ofFleet(find func(context.Context, *state.Store, *state.Overview) ([]string, error)) candidates {
	return func(ctx context.Context, _ []string, _ string) (words []string, err error) {
		config, err := a.readConfig()
		if err != nil {
			return nil, err
		}
		if config.NoStore() {
			return nil, nil
		}
		store, err := config.OpenStore(ctx)
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, store.Close()) }()
		o, err := store.Views.Fleet(ctx, false)
		if err != nil {
			return nil, err
		}
		return find(ctx, store, o)
	}
}

func nodesIn(_ context.Context, _ *state.Store, o *state.Overview) ([]string, error) {
	return fleetnames.Nodes(o), nil
}

func rolesIn(_ context.Context, _ *state.Store, o *state.Overview) ([]string, error) {
	return fleetnames.Groups(o), nil
}

// versionsIn are the versions that the fleet had, has or runs: their releases and short ids.
func versionsIn(ctx context.Context, store *state.Store, o *state.Overview) ([]string, error) {
	history, err := store.Versions.History(ctx)
	if err != nil {
		return nil, err
	}
	var words []string
	for _, v := range history {
		words = append(words, v.Release, state.Short(v.ID))
	}
	named := releases(o)
	for _, id := range o.Running {
		words = append(words, named[id], state.Short(id))
	}
	return words, nil
}

// targetedIn are the steps of which chosen nodes have something on record.
func targetedIn(ctx context.Context, store *state.Store, o *state.Overview) ([]string, error) {
	if o.Current == nil {
		return nil, nil
	}
	return store.Steps.Settleable(ctx, o.Current.ID)
}

// services are those that nodes publish.
func (a completions) services(ctx context.Context, args []string, typed string) ([]string, error) {
	return a.ofFleet(func(ctx context.Context, store *state.Store, _ *state.Overview) ([]string, error) {
		o, err := store.Views.Fleet(ctx, true)
		if err != nil {
			return nil, err
		}
		return slices.Collect(maps.Keys(o.Services)), nil
	})(ctx, args, typed)
}

// leftJobs are the jobs that left something on this host.
func (a completions) leftJobs(context.Context, []string, string) ([]string, error) {
	config, err := a.readConfig()
	if err != nil {
		return nil, err
	}
	left, err := agent.Leftovers(config)
	var words []string
	for _, l := range left {
		words = append(words, l.Job)
	}
	return words, err
}

// runs are those of which this host keeps a report.
func (a completions) runs(context.Context, []string, string) ([]string, error) {
	config, err := a.readConfig()
	if err != nil {
		return nil, err
	}
	words, err := state.Runs(config.Paths.State)
	return append(words, "last"), err
}

// inventoryNames are the nodes of a state repository in a directory.
func inventoryNames(ctx context.Context, args []string, _ string) ([]string, error) {
	repo, _, err := openDir(ctx, args)
	if err != nil {
		return nil, err
	}
	nodes, err := repo.Nodes()
	var words []string
	for _, n := range nodes {
		words = append(words, n.Name)
	}
	return words, err
}
