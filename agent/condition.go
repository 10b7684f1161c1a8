package agent

import (
	"context"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/lock"
	"github.com/pullet/pullet/state"
)

// conditionWait is the wait of a node for a condition.
func conditionWait(v *state.Version, a apply.Awaited) *lock.Wait {
	return &lock.Wait{Kind: state.WaitCondition, Gate: a.Gate(), Reason: a.Reason(), Remedy: inRunRemedy(v), Since: a.Since, Until: a.Until}
}

// awaitsCondition tells everybody that a condition begins to wait. What it returns is called when it waits no more.
func (p *pull) awaitsCondition(ctx context.Context, v *state.Version, g *gates, a apply.Awaited) func(held bool) {
	w := conditionWait(v, a.Within(p.waitsUntil()))
	p.setAwaits(w, nil)
	switch {
	case g != nil:
		g.req.Waiting(w)
	case p.Waiting != nil:
		p.Waiting(w)
	}
	return func(held bool) {
		p.setAwaits(nil, w)
		if held && g != nil && g.held.Load() != nil {
			g.goesOn(ctx)
		}
	}
}

// setAwaits notes the condition that waits, over another one where that is given.
func (p *pull) setAwaits(w, over *lock.Wait) {
	p.waitMu.Lock()
	defer p.waitMu.Unlock()
	if over == nil || p.awaits == over {
		p.awaits = w
	}
}

// noteAwaited leaves in the outcome the condition that a run still waits for, in place of that of an earlier run.
func (p *pull) noteAwaited(v *state.Version, report *apply.Report) {
	if p.out.Wait == p.awaited {
		p.out.Wait = nil
	}
	p.awaited = nil
	if a := report.Awaited(); a != nil && p.out.Wait == nil {
		p.awaited = conditionWait(v, a.Within(p.waitsUntil()))
		p.out.Wait = p.awaited
	}
}
