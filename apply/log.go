package apply

import (
	"fmt"
	"strings"
	"time"

	"github.com/pullet/pullet/internal/safetext"
)

// Log is the report as a text, for people: all steps with what they changed and printed. What sensitive steps read and
// wrote is not in it.
func (r *Report) Log() string {
	var b strings.Builder
	version := r.Version
	if r.Release != "" {
		version = r.Release + " (" + r.Version + ")"
	}
	fmt.Fprintf(&b, "run     %s\nnode    %s\nversion %s\nstarted %s\nended   %s\ntook    %.3fs\n",
		r.Run, r.Node, version, r.Started.UTC().Format(time.RFC3339), r.Ended.UTC().Format(time.RFC3339), r.Seconds)
	for _, text := range r.Errors {
		section(&b, "error", text)
	}
	for _, s := range r.Steps {
		s.log(&b)
	}
	for _, step := range r.NotUndone {
		fmt.Fprintf(&b, "\nwhat %s changed cannot be undone and stays\n", step)
	}
	for _, l := range r.Leftovers {
		fmt.Fprintf(&b, "\nleft: %s of job %s, which no job declares any longer: %s\n",
			safetext.OneLine(l.ID), safetext.OneLine(l.Job), safetext.OneLine(l.Why))
	}
	if r.Stopped != "" {
		fmt.Fprintf(&b, "\nstopped: %s\n", r.Stopped)
	}
	return b.String()
}

func (r *StepReport) log(b *strings.Builder) {
	fmt.Fprintf(b, "\n%-8s %s (%s), %s, %.3fs\n", r.Outcome, r.Title(), r.Action, r.Pos, r.Seconds)
	if r.Result.ExitCode != 0 {
		fmt.Fprintf(b, "  exit code %d\n", r.Result.ExitCode)
	}
	section(b, "summary", r.Summary)
	section(b, "reason", r.Reason)
	section(b, "diff", r.Diff)
	section(b, "stdout", r.Result.StdOut)
	section(b, "stderr", r.Result.StdErr)
}

// section writes a text under its title, where there is one.
func section(b *strings.Builder, title, text string) {
	if text = strings.TrimRight(text, "\n"); text != "" {
		fmt.Fprintf(b, "  %s:\n    %s\n", title, strings.ReplaceAll(text, "\n", "\n    "))
	}
}
