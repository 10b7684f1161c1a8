package agent

import (
	"context"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/lock"
	"github.com/pullet/pullet/state"
)

// through tells a rollout that comes back to the version which already runs here that this node is through: others may wait for it.
func (p *pull) through(ctx context.Context, v *state.Version, program *compiled, report *apply.Report) error {
	if p.store == nil || p.local.Through == v.Rollout() || report.Failed() || report.Pending() {
		return nil
	}
	req, err := p.request(v, program)
	if err != nil {
		return err
	}
	ctx, cancel := afterwards(ctx)
	defer cancel()
	if err := lock.NewTurn(p.store, req).Succeed(ctx); err != nil {
		return err
	}
	p.local.Through = v.Rollout()
	return p.local.save()
}
