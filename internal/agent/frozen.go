package agent

import (
	"context"

	"github.com/sirupsen/logrus"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/lock"
	"github.com/pullet/pullet/state"
)

// orders are what operators want of the node: that it changes nothing, and commands to run.
type orders struct {
	*self
	*joined
	away         *outage
	host         func(version string) *apply.Host
	local        *local
	registration *registration
	reporter     *reporter
	turns        *turns
	waits        *waits
	out          *Outcome
	log          *logrus.Entry
	loop         bool     // see Options
	ordered      []string // commands, when the record was asked last
	reactions    []string // runs of reactions, the same
}

// frozen reports that an operator stopped all changes of this node, and leaves it in the outcome. While the fleet's
// record is away, what the node knew last holds. Where a run of a version begins otherwise, the fleet is told so in the
// same request; nil is none.
func (o *orders) frozen(ctx context.Context, begins *state.Version) (bool, error) {
	if err := o.learnFreeze(ctx, begins); err != nil {
		return false, err
	}
	f := o.local.Frozen
	if f == nil || o.store == nil && f.Ended(o.outside.Host.Boot) { // etcd ends it by its own clock
		return false, nil
	}
	o.out.awaits(lock.FrozenWait(f.Scope, f.Switch))
	return true, nil
}

// readOrders reads what operators want of the node. Where no run begins those hold that it found as it registered: what
// changes the host asks again, as it begins, is admitted, or runs a command. For what the node waits is told with them,
// where it was not yet.
func (o *orders) readOrders(ctx context.Context, run *state.Status) (state.Orders, error) {
	role := o.registration.node().Role()
	if run == nil && role == o.presence.Found.Role {
		return o.presence.Found.Orders, nil
	}
	waits := o.reporter.untold.Swap(nil)
	word, err := o.store.Switches.Orders(ctx, o.presence, role, run, waits)
	if waits != nil {
		o.reporter.toldWait.Store(err == nil)
	}
	return word, err
}

// learnFreeze reads the switches of the node, its role and the fleet, and remembers the one that stops all changes.
func (o *orders) learnFreeze(ctx context.Context, begins *state.Version) error {
	if o.store == nil {
		return nil
	}
	var run *state.Status
	if begins != nil {
		st := o.reporter.status(begins, state.InRun)
		run = &st
	}
	word, err := o.readOrders(ctx, run)
	if err != nil {
		return err
	}
	o.ordered, o.reactions, o.reporter.begun = word.Commands, word.Reactions, word.Begun
	was := o.local.Frozen
	var now *state.Freeze
	if word.Freeze != nil {
		now = state.NewFreeze(*word.Freeze, word.Scope, o.outside.Host.Boot)
	}
	if now.Same(was) {
		return nil
	}
	o.local.Frozen = now
	return o.local.save()
}
