package agent

import (
	"context"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/lock"
	"github.com/pullet/pullet/state"
)

// conditionWait is the wait of a node for a condition.
func conditionWait(v *state.Version, a apply.Awaited) *lock.Wait {
	return &lock.Wait{
		Kind:   state.WaitCondition,
		Gate:   a.Gate(),
		Reason: a.Reason(),
		Remedy: inRunRemedy(v),
		Since:  a.Since,
		Until:  a.Until,
	}
}

// awaitsCondition tells everybody that a condition begins to wait, in place of the step that does nothing more
// meanwhile. What it returns is called when it waits no more.
func (p *pull) awaitsCondition(
	ctx context.Context,
	v *state.Version,
	g *gates,
	says *stepSays,
	a apply.Awaited,
) func(held bool) {
	says.rests(a.Of)
	w := conditionWait(v, a.Within(p.waits.until()))
	p.waits.awaits(w, nil)
	switch {
	case g != nil:
		g.req.Waiting(w)
	case p.reporter.shows != nil:
		p.reporter.notes(w)
		p.reporter.shows(w)
	default:
		p.reporter.notes(w)
	}
	return func(held bool) {
		p.waits.awaits(nil, w)
		if held && g != nil && g.places.slot.Load() != nil {
			g.goesOn(ctx)
		}
	}
}

// noteAwaited leaves in the outcome the condition that a run still waits for, in place of that of an earlier run.
func (p *pull) noteAwaited(v *state.Version, report *apply.Report) {
	if p.out.Wait == p.awaited {
		p.out.awaits(nil)
	}
	p.awaited = nil
	if a := report.Awaited(); a != nil && p.out.Wait == nil {
		p.awaited = conditionWait(v, a.Within(p.waits.until()))
		p.out.awaits(p.awaited)
	}
}
