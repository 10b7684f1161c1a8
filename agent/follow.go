package agent

import (
	"context"
	"slices"

	"github.com/pullet/pullet/render"
	"github.com/pullet/pullet/state"
)

// stays reports that the fleet does not follow to a newer version now: an operator holds it, that version was given up before, or the
// canaries of the current one are not through.
func (p *pull) stays(ctx context.Context, current, next *state.Version) (bool, error) {
	if current == nil || next.Same(current) || p.AcceptRewind {
		return false, nil
	}
	if held, err := p.store.Holds(ctx, current); err != nil || held || slices.Contains(current.Bad, next.ID) {
		return true, err
	}
	if !current.Canary {
		return false, nil
	}
	through, err := p.store.CanariesDone(ctx, current, render.CanaryGroup)
	if err == nil && !through {
		p.log.WithField("version", next.String()).Info("newer commits wait for the canaries of " + current.String())
	}
	return !through, err
}
