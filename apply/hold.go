package apply

import (
	"context"
	"errors"
)

// hold makes sure that it is the node's turn.
func (g *gating) hold(ctx context.Context) bool {
	if g.s.x.options.Gates == nil {
		return true
	}
	ask := func() error { return g.s.x.options.Gates.Hold(ctx, g.s.step.gated()) }
	var err error
	if g.s.mates.group != nil {
		err = g.s.mates.group.gate.get(ask)
	} else {
		err = ask()
	}
	var pending *PendingError
	switch {
	case err == nil:
		return true
	case errors.As(err, &pending):
		g.s.waitOrFail(err)
	default:
		g.s.endRun(err)
		g.s.r.Reason = "not started: " + g.s.r.Reason
	}
	return false
}

// claimed records with the others that this node, which was chosen for the step, starts it.
func (g *gating) claimed(ctx context.Context) bool {
	if !g.elected {
		return true
	}
	err := g.s.entry.claim()
	if err == nil {
		err = g.s.x.options.Gates.Begin(ctx, g.s.step.gated(), g.attempt)
	}
	if err != nil {
		g.s.waitOrFail(err)
	}
	return err == nil
}

// claim writes which attempt the node is about to start, for a step that the fleet's record is asked for: so that a
// node which lost its journal is told from one that was killed before it began.
func (e *entry) claim() error {
	e.s.gates.attempt = e.s.x.options.Run
	key := e.key()
	if key == "" {
		return nil
	}
	e.s.x.mu.Lock()
	defer e.s.x.mu.Unlock()
	return e.s.x.options.Journal.Claim(e.s.step.ID(), key, e.s.gates.attempt)
}
