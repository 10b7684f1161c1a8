package agent

import (
	"context"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/lock"
	"github.com/pullet/pullet/state"
)

// leaveSlot gives back a slot that the fleet's record has of a node which already runs the version: its run may wait,
// also for nodes that need the slot.
func (t *turns) leaveSlot(ctx context.Context, v *state.Version, program *compiled) error {
	if t.store == nil || t.local.Through == v.Rollout() || !t.local.upToDate(v) {
		return nil
	}
	req, err := t.request(v, program)
	if err != nil {
		return err
	}
	return lock.ReleaseSlot(ctx, t.store, req)
}

// through tells a rollout that comes back to the version which already runs here that this node is through: others may
// wait for it.
func (t *turns) through(ctx context.Context, v *state.Version, program *compiled, report *apply.Report) error {
	if t.store == nil || t.local.Through == v.Rollout() || report.Failed() || report.Pending() {
		return nil
	}
	req, err := t.request(v, program)
	if err != nil {
		return err
	}
	ctx, cancel := afterwards(ctx)
	defer cancel()
	if err := lock.NewTurn(t.store, req).Succeed(ctx); err != nil {
		return err
	}
	t.local.Through = v.Rollout()
	return t.local.save()
}
