package agent

import (
	"slices"
	"time"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/internal/safetext"
	"github.com/pullet/pullet/internal/traces"
)

// traced is what the trace of a pull is made of.
type traced struct {
	*Outcome
	phases []Phase
	waits  []waited
	failed error               // why the pull could not be made; nil: it was
	shown  func(string) string // a text without what is secret
}

// span is the pull, with its phases, and in them its waits and steps. Runs of reactions stand beside the phases.
func (t traced) span() traces.Span {
	root := traces.Span{Name: "pull", Failed: t.why(), Attributes: t.attributes()}
	inside := t.waiting()
	if t.Report != nil {
		inside = append(inside, t.steps(t.Report)...)
	}
	for _, p := range t.phases {
		phase := traces.Span{Name: string(p.Name), Began: p.Began, Ended: p.Ended}
		inside = slices.DeleteFunc(inside, func(s traces.Span) bool {
			in := !s.Began.Before(p.Began) && s.Began.Before(p.Ended)
			if in {
				phase.Inside = append(phase.Inside, s)
			}
			return in
		})
		root.Inside = append(root.Inside, phase)
	}
	if n := len(t.phases); n > 0 {
		root.Began, root.Ended = t.phases[0].Began, t.phases[n-1].Ended
	}
	for _, r := range t.Reactions {
		root.Inside = append(root.Inside, t.reaction(r))
	}
	return root
}

// why is why the pull failed or was refused, in a line.
func (t traced) why() string {
	switch {
	case t.failed != nil:
		return t.shown(firstLine(t.failed))
	case len(t.Failures) > 0:
		return t.shown(firstLine(t.Failures[0]))
	case len(t.Refused) > 0:
		return t.shown(firstLine(t.Refused[0]))
	}
	return t.whyRun(t.Report)
}

// whyRun is why a run failed.
func (t traced) whyRun(r *apply.Report) string {
	if r == nil || !r.Failed() {
		return ""
	}
	reason, _ := safetext.Headline(r.Why())
	return t.shown(reason)
}

func (t traced) attributes() traces.Attributes {
	out := traces.Attributes{
		"pullet.run": t.Run, "pullet.outcome": t.result(), "pullet.upgrade": t.Upgrade, "pullet.warnings": len(t.Warnings),
	}
	if v := t.Version; v != nil {
		out["pullet.version"] = v.ID
		if v.Release != "" {
			out["pullet.release"] = v.Release
		}
		if len(v.Commits) == 1 { // of several none is the version
			out[traces.Commit] = v.Commits[0].Commit
		}
	}
	if t.Report != nil {
		out["pullet.steps"], out["pullet.changed"] = len(t.Report.Steps), t.Report.Changed()
	}
	if w := t.Wait; w != nil {
		out["pullet.gate"], out["pullet.wait"] = t.shown(w.Gate), t.shown(w.Reason)
	}
	return out
}

// result is what came of the pull, in a word.
func (t traced) result() string {
	switch t.ExitCodeAfter(t.failed) {
	case ExitOK:
		return "ok"
	case ExitWaiting:
		return "waiting"
	case ExitRefused:
		return "refused"
	}
	return "failed"
}

// waiting are the waits of the pull that have an end.
func (t traced) waiting() []traces.Span {
	var out []traces.Span
	for _, w := range t.waits {
		out = append(out, traces.Span{
			Name: "wait for " + t.shown(w.gate), Began: w.began, Ended: w.ended,
			Attributes: traces.Attributes{"pullet.gate": t.shown(w.gate), "pullet.wait": t.shown(w.reason)},
		})
	}
	return out
}

// reaction is a run of a reaction.
func (t traced) reaction(r Reacted) traces.Span {
	return traces.Span{
		Name: "reaction " + r.Reaction, Began: r.Started, Ended: r.Ended,
		Failed: t.whyRun(r.Report), Inside: t.steps(r.Report),
		Attributes: traces.Attributes{"pullet.run": r.Run, "pullet.reaction": r.Reaction, "pullet.event": r.Event},
	}
}

// mostSteps is how many steps of a run are in its trace. Of more, those that were right already are left out first.
const mostSteps = 2000

// steps are the steps of a run that began, by their begin. What they read and wrote is not in it.
func (t traced) steps(r *apply.Report) []traces.Span {
	steps := slices.DeleteFunc(slices.Clone(r.Steps), func(s *apply.StepReport) bool { return s.Began.IsZero() })
	if len(steps) > mostSteps {
		steps = slices.DeleteFunc(steps, func(s *apply.StepReport) bool {
			return s.Outcome == apply.OK || s.Outcome == apply.Skipped
		})
	}
	steps = steps[:min(len(steps), mostSteps)]
	slices.SortStableFunc(steps, func(a, b *apply.StepReport) int { return a.Began.Compare(b.Began) })
	var out []traces.Span
	for _, s := range steps {
		out = append(out, t.step(s))
	}
	return out
}

// step is a step. Its reason is in the trace where it failed.
func (t traced) step(s *apply.StepReport) traces.Span {
	took := time.Duration(s.Seconds * float64(time.Second))
	out := traces.Span{
		Name: t.shown(s.Title()), Began: s.Began, Ended: s.Began.Add(took),
		Attributes: traces.Attributes{
			"pullet.step": t.shown(s.Job + "/" + s.Step), "pullet.action": s.Action, "pullet.outcome": string(s.Outcome),
			"pullet.drift": s.Drift, "pullet.validation": s.Validation,
		},
	}
	if s.Pos.File != "" {
		out.Attributes[traces.File], out.Attributes[traces.Line] = s.Pos.File, s.Pos.Line
	}
	if s.Outcome == apply.Failed {
		reason, _ := safetext.Headline(s.Reason)
		out.Failed = t.shown(reason)
		out.Attributes[traces.ErrorType] = string(s.Fault)
	}
	return out
}
