package main

import (
	"cmp"
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
	"github.com/pullet/pullet/internal/journal"
	"github.com/pullet/pullet/internal/safetext"
	"github.com/pullet/pullet/state"
)

func historyCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use: "history [RUN]", GroupID: "node", Args: upToOne,
		Short: "The last runs on this node; with RUN all that one did",
		Long: "History lists the reports that are kept in the state directory, the newest first: runs that changed\n" +
			"something, failed, or upgraded. RUN is the id of one, or the beginning of it; last is the newest.\n" +
			"With -v diffs and what was skipped are shown, too.",
		RunE: func(_ *cobra.Command, args []string) error {
			config, err := a.readConfig()
			if err != nil {
				return err
			}
			runs, err := state.Runs(config.Paths.State)
			if err != nil {
				return err
			}
			if len(args) == 1 {
				return historyCmd{a}.showRun(config.Paths.State, runs, args[0])
			}
			return historyCmd{a}.listRuns(config.Paths.State, runs)
		},
	}
	return c
}

// pastRun is a run in a line.
type pastRun struct {
	Run     string                `json:"run"`
	Started time.Time             `json:"started"`
	Seconds float64               `json:"seconds"`
	Version string                `json:"version"`
	Release string                `json:"release,omitempty"`
	Answers string                `json:"answers,omitempty"` // the reaction that the run is of, and to which event
	Commits []string              `json:"commits,omitempty"` // of the version, in a line each
	Result  string                `json:"result"`            // ok, failed, pending
	Counts  map[apply.Outcome]int `json:"counts"`
	Why     string                `json:"why,omitempty"`
}

// historyCmd is pullet history.
type historyCmd struct{ *app }

func (a historyCmd) listRuns(dir string, runs []string) error {
	list := []pastRun{}
	for _, run := range runs {
		var r apply.Report
		err := state.LoadReport(dir, run, &r)
		if errors.Is(err, fs.ErrNotExist) { // just now it was dropped for a newer one
			continue
		}
		if damaged, ok := errors.AsType[*state.DamagedReportError](err); ok { // the others are there all the same
			a.warn("%v", damaged)
			continue
		}
		if err != nil {
			return err
		}
		one := pastRun{
			run,
			r.Started,
			r.Ended.Sub(r.Started).Seconds(),
			r.Version,
			r.Release,
			answers(&r),
			r.Commits,
			"ok",
			r.Counts,
			r.Why(),
		}
		if one.Why == "" && len(r.Errors) > 0 { // of the pull, which ran what it had all the same
			one.Why, _ = safetext.Headline(r.Errors[0])
		}
		switch {
		case r.Failed() || len(r.Errors) > 0:
			one.Result = "failed"
		case r.Pending():
			one.Result = "pending"
		}
		list = append(list, one)
	}
	return a.list(list, "RUN\tSTARTED\tVERSION\tRESULT\tCHANGED\tFAILED\tTOOK\tWHY\tCOMMIT", func(w io.Writer) {
		for _, r := range list {
			fmt.Fprintf(
				w,
				"%s\t%s\t%s\t%s\t%d\t%d\t%s\t%s\t%s\n",
				r.Run,
				age(w, r.Started),
				&state.Version{ID: r.Version, Release: r.Release},
				r.Result,
				r.Counts[apply.Changed],
				r.Counts[apply.Failed],
				time.Duration(r.Seconds*float64(time.Second)).Round(time.Millisecond),
				shorten(orDash(cmp.Or(r.Why, r.Answers)), reasonRoom(w)),
				orDash(strings.Join(r.Commits, "; ")),
			)
		}
	})
}

// answers says which reaction a run is of; "" where it brings the host to a version.
func answers(r *apply.Report) string {
	if r.Reaction == "" {
		return ""
	}
	return "reaction " + r.Reaction + " to " + r.Event
}

// showRun prints a report as the pull did.
func (a historyCmd) showRun(dir string, runs []string, name string) error {
	i := slices.IndexFunc(runs, func(run string) bool { return run == name || strings.HasPrefix(run, name) })
	if name == "last" && len(runs) > 0 {
		i = 0
	}
	if i < 0 {
		return fmt.Errorf(
			"there is no report of a run %q on this node%s: see pullet history",
			name,
			fleetnames.Suggestion(name, runs),
		)
	}
	var r apply.Report
	if err := state.LoadReport(dir, runs[i], &r); err != nil {
		return err
	}
	if done, err := a.structured(&r); done || err != nil {
		return err
	}
	a.printReport(&r, a.verbose > 0)
	for _, s := range r.Steps {
		if s.Outcome == apply.Failed || a.verbose > 0 {
			a.printOutput(s)
		}
	}
	for _, text := range r.Errors {
		fmt.Fprintln(a.out, text)
	}
	for _, line := range append(slices.Clone(r.Commits), answers(&r)) {
		if line != "" {
			fmt.Fprintln(a.out, line)
		}
	}
	recap(a.out, r.Node+": "+withCommit(&state.Version{ID: r.Version, Release: r.Release}), &r)
	return nil
}

// printOutput shows what a step's command printed.
func (a historyCmd) printOutput(s *apply.StepReport) {
	for _, text := range []string{s.Result.StdOut, s.Result.StdErr} {
		for line := range strings.Lines(text) {
			fmt.Fprintf(a.out, "  %s/%s: %s\n", s.Job, s.Step, strings.TrimRight(line, "\n"))
		}
	}
}

// inProgress is the journal as it is shown.
type inProgress struct {
	Run     string          `json:"run,omitempty"`
	Version string          `json:"version,omitempty"`
	Steps   []journal.Entry `json:"steps"`
	Done    []string        `json:"done"` // for good, by earlier runs too
}

func journalCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "journal", GroupID: "node", Args: noArgs,
		Short: "The run in progress on this node, or the one that was cut off",
		Long: "Journal shows what a pull that runs now, waits, or was killed has on record. The next pull goes on\n" +
			"with it: steps that are done are not repeated. -o wide also lists the commands that succeeded for\n" +
			"good and do not run again.",
		RunE: func(_ *cobra.Command, _ []string) error {
			config, err := a.readConfig()
			if err != nil {
				return err
			}
			j, err := journal.Open(config.Paths.State)
			if err != nil {
				return err
			}
			p := inProgress{Steps: j.Entries(), Done: j.DoneForGood()}
			p.Run, p.Version = j.Unfinished()
			if done, err := a.structured(p); done || err != nil {
				return err
			}
			return historyCmd{a}.printJournal(p)
		},
	}
}

func (a historyCmd) printJournal(p inProgress) error {
	if p.Run == "" {
		fmt.Fprintln(a.out, "no run is unfinished on this node: pullet history has those that ended")
	} else {
		fmt.Fprintf(
			a.out, "run %s, version %s, is not finished; the next pull goes on with it\n", p.Run, state.Short(p.Version),
		)
		for _, e := range p.Steps {
			fmt.Fprintf(a.out, "  %-8s %s\n", e.State, e.Step)
		}
	}
	if a.output == "wide" {
		for _, step := range p.Done {
			fmt.Fprintf(a.out, "  for good %s\n", step)
		}
	}
	return nil
}
