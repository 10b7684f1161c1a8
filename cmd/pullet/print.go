package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/internal/safetext"
	"github.com/pullet/pullet/render"
	"github.com/pullet/pullet/state"
)

// structured prints a value as JSON or YAML where that was asked for; false means that a table is wanted.
func (a *app) structured(v any) (bool, error) {
	switch a.output {
	case "json":
		return true, printJSON(a.out, v)
	case "yaml":
		return true, printYAML(a.out, v)
	}
	return false, nil
}

// printYAML prints a value with the names that its JSON form has.
func printYAML(w io.Writer, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	value, err := render.FromJSON(string(data))
	if err != nil {
		return err
	}
	out, err := yaml.Dump(render.PlainNumbers(value), yaml.WithIndent(2))
	if err != nil {
		return err
	}
	if safetext.Text(string(out)) != string(out) { // YAML would leave some characters as they are; JSON is YAML, too
		return printJSON(w, v)
	}
	_, err = w.Write(out)
	return err
}

// sign is what stands before a step, never colour alone.
func sign(o apply.Outcome) string {
	return map[apply.Outcome]string{
		apply.OK: " ", apply.Changed: "~", apply.Failed: "!", apply.Skipped: "-", apply.Unmet: "!", apply.Pending: "?",
	}[o]
}

// printStep is a step in a line or, with its diff, in several.
func printStep(w io.Writer, s *apply.StepReport, diff bool) {
	text := s.Summary
	if s.Reason != "" {
		text = s.Reason
	}
	if s.Unsettled != "" {
		text += "; " + state.SettleHint(s.Unsettled)
	}
	text = strings.ReplaceAll(text, "\n", "\n           ") // no line of it can be taken for another step
	begin := span{wordInk(string(s.Outcome)), fmt.Sprintf("%s %-8s", sign(s.Outcome), s.Outcome)}
	_ = inked(w, begin, span{noInk, fmt.Sprintf(" %s: %s", s.Title(), text+driftMark(s))}) // as with every line for people
	if diff {
		printDiff(w, s.Diff)
	}
}

// printSteps shows the steps of a report that are to be shown, those that failed with where they stand.
func (a *app) printSteps(r *apply.Report, shown func(apply.Outcome) bool, diff bool) {
	for _, s := range r.Steps {
		if shown(s.Outcome) {
			printStep(a.out, s, diff)
			a.printPlace(s)
		}
	}
	a.printNotUndone(r)
}

// printReport shows what is not as it should be, and counts the rest.
func (a *app) printReport(r *apply.Report, diff bool) {
	a.printSteps(r, func(o apply.Outcome) bool {
		return o != apply.OK && (o != apply.Skipped || a.verbose > 0)
	}, diff)
	printLeftovers(a.out, r.Leftovers)
	said := slices.ContainsFunc(
		r.Steps,
		func(s *apply.StepReport) bool { return strings.HasSuffix(s.Reason, r.Stopped) },
	)
	if r.Stopped != "" && !said {
		fmt.Fprintf(a.out, "stopped: %s\n", r.Stopped)
	}
}

// printPlace says of a step that failed where it stands, and whose fault it is where that is the host's.
func (a *app) printPlace(s *apply.StepReport) {
	if s.Outcome != apply.Failed {
		return
	}
	whose := ""
	if s.Fault == apply.HostFault {
		whose = " (host fault)"
	}
	fmt.Fprintf(a.out, "           at %s%s\n", safetext.OneLine(s.Pos.String()), whose)
}

func (a *app) printNotUndone(r *apply.Report) {
	for _, step := range r.NotUndone {
		fmt.Fprintf(a.out, "! what %s changed cannot be undone and stays\n", safetext.OneLine(step))
	}
}

// printLeftovers shows what is left on the host. What is held back because it is so much is said once.
func printLeftovers(w io.Writer, all []apply.Leftover) {
	var held []apply.Leftover
	for _, l := range all {
		if l.Held {
			held = append(held, l)
			continue
		}
		fmt.Fprintf(w, "  left     %s of job %s, which no job declares any longer: %s\n",
			safetext.OneLine(l.ID), safetext.OneLine(l.Job), safetext.OneLine(l.Why))
	}
	if len(held) > 0 {
		fmt.Fprintf(
			w,
			"  left     %s and %d more, which no job declares any longer: %s\n",
			safetext.OneLine(held[0].ID),
			len(held)-1,
			held[0].Why,
		)
	}
	printKeeping(w, all)
}

// printKeeping shows the commands that decide what becomes of the things left, each as it is to be typed.
func printKeeping(w io.Writer, all []apply.Leftover) {
	var jobs []string
	for _, l := range all {
		if !l.Held && !slices.Contains(jobs, l.Job) {
			jobs = append(jobs, l.Job)
			fmt.Fprintf(w, "           keep all that job %s left: pullet forget --job %s\n",
				safetext.OneLine(l.Job), safetext.OneLine(l.Job))
		}
	}
	if len(jobs) > 0 {
		fmt.Fprintln(w, "           remove what deleted jobs left: pullet pull --prune-removed")
	}
}

// recap is the last line of a report: what it was about, and its counts.
func recap(w io.Writer, about string, r *apply.Report) {
	_ = inked(w, append([]span{{noInk, about + ": "}}, counted(counts(r))...)...) // as with every line for people
}

// counts is what became of the steps of a report, and how long it took.
func counts(r *apply.Report) string {
	changed := "changed"
	if r.Plan {
		changed = "to change"
	}
	line := fmt.Sprintf("%d %s, %d unchanged", r.Counts[apply.Changed], changed, r.Counts[apply.OK])
	for _, o := range []apply.Outcome{apply.Failed, apply.Unmet, apply.Skipped, apply.Pending} {
		if n := r.Counts[o]; n > 0 {
			line += fmt.Sprintf(", %d %s", n, o)
		}
	}
	return line + fmt.Sprintf(" in %s", time.Duration(r.Seconds*float64(time.Second)).Round(time.Millisecond))
}

// count is a number of things: 1 node, 2 nodes.
func count(n int, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return fmt.Sprintf("%d %s", n, thing)
}
