package agent

import (
	"context"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/lock"
	"github.com/pullet/pullet/state"
)

// frozen reports that an operator stopped all changes of this node, and leaves it in the outcome. While the fleet's record is away, what the
// node knew last holds. Where a run of a version begins otherwise, the fleet is told so in the same request; nil is none.
func (p *pull) frozen(ctx context.Context, begins *state.Version) (bool, error) {
	if err := p.learnFreeze(ctx, begins); err != nil {
		return false, err
	}
	f := p.local.Frozen
	if f == nil || p.store == nil && f.Ended(apply.Boot()) { // etcd ends it by its own clock
		return false, nil
	}
	p.out.Wait = lock.Frozen(f.Scope, f.Switch)
	return true, nil
}

// orders are what operators want of the node. Where no run begins those hold that it found as it registered: what changes the host asks again, as it
// begins, is admitted, or runs a command. For what the node waits is told with them, where it was not yet.
func (p *pull) orders(ctx context.Context, run *state.Status) (state.Orders, error) {
	role := p.node().Role()
	if run == nil && role == p.presence.Found.Role {
		return p.presence.Found.Orders, nil
	}
	waits := p.reporter.untold.Swap(nil)
	word, err := p.store.Orders(ctx, p.presence, role, run, waits)
	if waits != nil {
		p.reporter.toldWait.Store(err == nil)
	}
	return word, err
}

// learnFreeze reads the switches of the node, its role and the fleet, and remembers the one that stops all changes.
func (p *pull) learnFreeze(ctx context.Context, begins *state.Version) error {
	if p.store == nil {
		return nil
	}
	var run *state.Status
	if begins != nil {
		st := p.reporter.status(begins, state.InRun)
		run = &st
	}
	word, err := p.orders(ctx, run)
	if err != nil {
		return err
	}
	p.ordered, p.reporter.begun = word.Commands, word.Begun
	was := p.local.Frozen
	var now *state.Freeze
	if word.Freeze != nil {
		now = state.NewFreeze(*word.Freeze, word.Scope, apply.Boot())
	}
	if now.Same(was) {
		return nil
	}
	p.local.Frozen = now
	return p.local.save()
}
