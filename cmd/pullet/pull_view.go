package main

import (
	"fmt"

	"github.com/sirupsen/logrus"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/internal/agent"
	"github.com/pullet/pullet/lock"
	"github.com/pullet/pullet/state"
)

// exitCode is that of a pull; the detailed form tells changes apart.
func exitCode(o *agent.Outcome, detailed bool) int {
	code := o.ExitCode()
	changed := o.Report != nil && o.Report.Changed() > 0
	if !detailed {
		return code
	}
	switch {
	case code == agent.ExitError && changed:
		return 6
	case code == agent.ExitError:
		return 4
	case code == agent.ExitOK && changed:
		return 2
	}
	return code
}

// printOutcome shows what came of a pull; quietly, only what failed.
func (a *app) printOutcome(o *agent.Outcome, c agent.Config, quiet bool) error {
	for _, w := range o.Warnings {
		a.warn("%v", w)
	}
	for _, e := range append(append([]error(nil), o.Refused...), o.Failures...) {
		tell(a.err, logrus.ErrorLevel, "pullet: %v", e)
	}
	if done, err := a.structured(viewOfPull(o)); done || err != nil {
		return err
	}
	if quiet {
		if o.Report != nil {
			a.printSteps(o.Report, func(s apply.Outcome) bool { return s == apply.Failed }, false)
		}
		for _, r := range o.Reactions {
			a.printSteps(r.Report, func(s apply.Outcome) bool { return s == apply.Failed }, false)
		}
		return nil
	}
	if o.Report != nil {
		a.printReport(o.Report, a.verbose > 0)
		what := withCommit(&state.Version{ID: o.Report.Version, Release: o.Report.Release})
		recap(a.out, c.Node.Name+": "+what, o.Report)
	}
	for _, r := range o.Reactions {
		a.printReport(r.Report, a.verbose > 0)
		recap(a.out, fmt.Sprintf("%s: reaction %s to %s", c.Node.Name, r.Reaction, r.Event), r.Report)
	}
	switch {
	case o.Wait != nil && o.Version == nil:
		fmt.Fprintf(a.out, "%s: %v\n", c.Node.Name, o.Wait)
	case o.Wait != nil:
		fmt.Fprintf(a.out, "%s: %s: %v\n", c.Node.Name, o.Version, o.Wait)
	}
	return nil
}

// pullView is a pull's result for programs.
type pullView struct {
	Run     string         `json:"run"`
	Version *state.Version `json:"version"`
	Upgrade bool           `json:"upgrade"` // the version was new here
	Report  *apply.Report  `json:"report"`  // null: nothing was applied
	// of runs of reactions
	Reactions []agent.Reacted `json:"reactions,omitempty"`
	ExitCode  int             `json:"exitCode"`
	Refused   []string        `json:"refused"`
	Failures  []string        `json:"failures"`
	Warnings  []string        `json:"warnings"`
	Waiting   *lock.Wait      `json:"waiting,omitempty"`
}

func viewOfPull(o *agent.Outcome) pullView {
	return pullView{
		o.Run,
		o.Version,
		o.Upgrade,
		o.Report,
		o.Reactions,
		o.ExitCode(),
		texts(o.Refused),
		texts(o.Failures),
		texts(o.Warnings),
		inUTC(o.Wait),
	}
}

// inUTC is a wait for programs: all of their times are in UTC.
func inUTC(w *lock.Wait) *lock.Wait {
	if w == nil {
		return nil
	}
	out := *w
	out.Since, out.Until = w.Since.UTC(), w.Until.UTC()
	return &out
}
