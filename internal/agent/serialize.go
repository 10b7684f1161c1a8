package agent

import (
	"context"
	"errors"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/lock"
	"github.com/pullet/pullet/state"
)

// leaveSteps frees the places at serialized steps that a run which was killed left behind, but for the steps that this
// one goes on with.
func (g *gates) leaveSteps(ctx context.Context) error {
	goesOn := map[string]bool{}
	for _, job := range g.catalog.Jobs {
		for _, s := range job.Steps {
			if s.Options.Serialize != nil {
				goesOn[state.StepHash(job.GateID(s))] = g.journal.CutOff(s.ID()) || g.journal.Open(s.ID())
			}
		}
	}
	if g.turn == nil && len(goesOn) == 0 { // a newer version gives back what an older one took
		return nil
	}
	if !g.places.mayBeInStep(g.presence) {
		return nil
	}
	var err error
	g.keptSteps, err = lock.ReleaseSteps(ctx, g.store, g.node, func(hash string) bool { return goesOn[hash] })
	return err
}

// leftSteps frees, behind a run that ended, the places of steps that it was to go on with and that turned out to be
// done.
func (g *gates) leftSteps(ctx context.Context) error {
	if g == nil || g.keptSteps == 0 {
		return nil
	}
	ctx, cancel := afterwards(ctx)
	defer cancel()
	_, err := lock.ReleaseSteps(ctx, g.store, g.node, func(string) bool { return false })
	return err
}

func (g *gates) Serialize(ctx context.Context, s apply.GatedStep) (apply.EndSerial, error) {
	count := s.Options.Serialize.Count
	g.places.took.Store(true)
	turn, err := g.with(s).Serialize(ctx, gateStep(s), func(roster int) int { n, _ := count.Of(roster); return n })
	if err != nil {
		return nil, g.pending(err)
	}
	if err := g.acquire(ctx, turn); err != nil {
		return nil, g.pending(err)
	}
	if err := g.remembers(turn.Slot()); err != nil {
		return nil, errors.Join(err, turn.Release(ctx))
	}
	g.places.steps.add(turn, turn.Slot())
	g.goesOn(ctx)
	return func(ctx context.Context, how apply.Outcome, fault apply.Fault, why string) error {
		ctx, cancel := afterwards(ctx)
		defer cancel()
		g.places.steps.remove(turn)
		switch {
		case how == apply.Pending, how == apply.Failed && s.Options.FailAfterAllTargetsRan:
			return turn.Release(ctx)
		case how == apply.Failed:
			return g.pending(turn.FailStep(ctx, why, failureOf(fault)))
		}
		return g.pending(turn.SucceedStep(ctx))
	}, nil
}

// goesOn tells the fleet that the node changes again, if it was told that it waits.
func (g *gates) goesOn(ctx context.Context) {
	if g.turn == nil || g.req.Apart || !g.reporter.toldWait.Swap(false) {
		return
	}
	v := g.req.Version
	if err := g.store.Statuses.Tell(ctx, g.presence,
		g.store.Statuses.Ops(g.node, state.Rollout, state.Running, g.reporter.status(v, ""))...); err != nil {
		g.log.WithError(err).Warn("that the node goes on could not be recorded")
	}
}
