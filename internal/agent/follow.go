package agent

import (
	"context"
	"slices"

	"github.com/pullet/pullet/render"
	"github.com/pullet/pullet/state"
)

// stays says why the fleet does not follow to a newer version now: that version was given up before, an operator holds
// the fleet, or the canaries of the current one are not through. "" is no reason.
func (a *agreement) stays(ctx context.Context, current, next *state.Version) (why string, err error) {
	if current == nil || next.Same(current) || a.rewind {
		return "", nil
	}
	if slices.Contains(current.Bad, next.ID) {
		return state.SkipBad, nil
	}
	if held, err := a.store.Versions.Holds(ctx, current); err != nil || held {
		return state.SkipHeld, err
	}
	if !current.Canary {
		return "", nil
	}
	through, err := a.store.Rollouts.CanariesDone(ctx, current, render.CanaryGroup)
	if through || err != nil {
		return "", err
	}
	a.log.WithField("version", next.String()).Info("newer commits wait for the canaries of " + current.String())
	return state.SkipCanaries, nil
}
