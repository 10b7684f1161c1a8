package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/cmd/pullet/fleetnames"
	"github.com/pullet/pullet/internal/agent"
	"github.com/pullet/pullet/internal/safetext"
	"github.com/pullet/pullet/state"
)

// logsCmd is pullet logs.
type logsCmd struct {
	*app
	list bool
}

func logsCommand(a *app) *cobra.Command {
	l := logsCmd{app: a}
	c := &cobra.Command{
		Use: "logs NODE [RUN]", GroupID: "fleet", Args: arguments(cobra.RangeArgs(1, 2)),
		Short: "What a failed run on a node did and printed, from the log store",
		Long: "Logs prints the log of a run, by default of the last one whose log is on record. It comes from the log\n" +
			"store of this host's configuration (agent.logs.put), with the credentials there; on the node itself\n" +
			"it is the report that the node keeps. An address that the fleet's record has is only shown, and never\n" +
			"asked. --list shows the runs whose logs are on record.",
		RunE: func(cmd *cobra.Command, args []string) error {
			config, err := a.readConfig()
			if err != nil {
				return err
			}
			if !safetext.Name(args[0]) {
				return usage(fmt.Errorf("%q is no name of a node", safetext.Line(args[0], 100)))
			}
			if report := localReport(config, args); report != nil && !l.list {
				return l.show(loggedText{args[0], report.Run, "this host", report.Log(), false})
			}
			return a.onFleet(cmd, func(ctx context.Context, store *state.Store) error {
				return l.fetch(ctx, store, config, args)
			})
		},
	}
	c.Flags().BoolVar(&l.list, "list", false, "only list the runs whose logs are on record")
	return c
}

// loggedRun is a run whose log is on record.
type loggedRun struct {
	Run     string    `json:"run"`
	Time    time.Time `json:"time"`
	Version string    `json:"version"`
	Release string    `json:"release,omitempty"`
	State   string    `json:"state"` // of the category in which it is on record: failed, pending and so on
	Log     string    `json:"log"`   // where the node put it
}

// loggedText is a log.
type loggedText struct {
	Node string `json:"node"`
	Run  string `json:"run"`
	From string `json:"from"` // this host, or an address
	Text string `json:"text"`
	Cut  bool   `json:"cut,omitempty"` // it was too long to be fetched whole
}

// localReport is the report of a run on this host; nil: the node is another one, or has none.
func localReport(config agent.Config, args []string) *apply.Report {
	if args[0] != config.Node.Name {
		return nil
	}
	runs, err := state.Runs(config.Paths.State)
	if err != nil || len(runs) == 0 {
		return nil
	}
	run := runs[0]
	if len(args) > 1 {
		run = args[1]
	}
	var r apply.Report
	if err := state.LoadReport(config.Paths.State, run, &r); err != nil {
		return nil // the log store may have it
	}
	return &r
}

// runsOf are the runs of a node whose logs are on record, the newest first.
func runsOf(o *state.Overview, node string) []loggedRun {
	out := []loggedRun{}
	for _, category := range state.Categories() {
		s := o.Statuses[node][category]
		known := slices.ContainsFunc(out, func(r loggedRun) bool { return r.Run == s.Run })
		if s.Log != "" && s.Run != "" && !known {
			out = append(out, loggedRun{s.Run, s.Time, s.Version, s.Release, s.State, s.Log})
		}
	}
	slices.SortFunc(out, func(x, y loggedRun) int { return y.Time.Compare(x.Time) })
	return out
}

func (l logsCmd) fetch(ctx context.Context, store *state.Store, config agent.Config, args []string) error {
	o, err := store.Views.Fleet(ctx, false)
	if err != nil {
		return err
	}
	if known := fleetnames.Nodes(o); !slices.Contains(known, args[0]) {
		return fleetnames.Unknown("node", args[0], known, "pullet nodes")
	}
	runs := runsOf(o, args[0])
	if l.list {
		return l.printRuns(args[0], runs)
	}
	if config.Agent.Logs.Put == "" {
		return fmt.Errorf("no log store is configured here: set agent.logs.put in %s, here and on the nodes (docs/node.md); "+
			"the reports of %s are on that host: pullet history", l.config, args[0])
	}
	run, err := chosenRun(args, runs)
	if err != nil {
		return err
	}
	at := agent.LogAddress(config, args[0], run.Run, run.Version)
	if run.Log != "" && run.Log != at {
		return fmt.Errorf("%s says that it put the log of run %s to %s; agent.logs.put of this host makes %s of it, and "+
			"only that server is asked", args[0], run.Run, run.Log, at)
	}
	text, cut, err := agent.FetchLog(ctx, config, args[0], run.Run, run.Version)
	if err != nil {
		return fmt.Errorf("%w; the reports of %s are on that host: pullet history", err, args[0])
	}
	return l.show(loggedText{args[0], run.Run, at, string(text), cut})
}

// chosenRun is the run that is meant: by its id or the beginning of it, else the newest. One that is not on record may
// be in the log store all the same.
func chosenRun(args []string, runs []loggedRun) (loggedRun, error) {
	if len(args) == 1 {
		if len(runs) == 0 {
			return loggedRun{}, fmt.Errorf("no log of %s is on record: logs are sent of runs that failed, where agent.logs.put "+
				"is set on the node; its reports are on that host: pullet history", args[0])
		}
		return runs[0], nil
	}
	if i := slices.IndexFunc(runs, func(r loggedRun) bool { return strings.HasPrefix(r.Run, args[1]) }); i >= 0 {
		return runs[i], nil
	}
	if !safetext.Word(args[1]) || strings.Trim(args[1], ".") == "" {
		return loggedRun{}, usage(fmt.Errorf("%q is no id of a run", safetext.Line(args[1], 100)))
	}
	return loggedRun{Run: args[1]}, nil
}

func (l logsCmd) printRuns(node string, runs []loggedRun) error {
	if len(runs) == 0 && (l.output == "table" || l.output == "wide") {
		_, err := fmt.Fprintf(l.out, "no log of %s is on record\n", node)
		return err
	}
	return l.app.list(runs, "RUN\tSINCE\tVERSION\tSTATE\tLOG", func(w io.Writer) {
		for _, r := range runs {
			v := state.Version{ID: r.Version, Release: r.Release}
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", r.Run, age(w, r.Time), &v, r.State, r.Log)
		}
	})
}

func (l logsCmd) show(log loggedText) error {
	if done, err := l.structured(log); done || err != nil {
		return err
	}
	_, err := io.WriteString(l.out, log.Text)
	if err == nil && log.Cut {
		l.warn("the log is longer than %d MiB: this is its beginning; all of it is at %s", agent.MostOfLog>>20, log.From)
	}
	return err
}

// logRuns are the runs of the node that is typed, in the record and on this host.
func (a completions) logRuns(ctx context.Context, args []string, typed string) ([]string, error) {
	words, err := a.ofFleet(func(_ context.Context, _ *state.Store, o *state.Overview) (words []string, err error) {
		for _, r := range runsOf(o, args[0]) {
			words = append(words, r.Run)
		}
		return words, nil
	})(ctx, args, typed)
	config, unread := a.readConfig()
	if unread == nil && config.Node.Name == args[0] {
		own, kept := state.Runs(config.Paths.State)
		if kept != nil && !errors.Is(kept, fs.ErrNotExist) {
			err = errors.Join(err, kept)
		}
		words = append(words, own...)
	}
	return words, err
}
