package agent

import (
	"context"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/lock"
	"github.com/pullet/pullet/state"
)

// teller tells the fleet that a run failed, before anybody else may get the node's slot. What is not told yet is on the
// node's own disk: it outlives the pull. Its methods are not called at the same time.
type teller interface {
	// note writes to disk that the run failed, where that is anything to others.
	note(soFar *apply.Report) error
	// tell tells the fleet what it may not know yet of this run, whichever pull it failed in.
	tell(ctx context.Context) error
}

// untold is the failure as the disk has it; nil for one that stops nobody.
func untold(rollout string, how lock.Failure, r *apply.Report) *state.Untold {
	if how == lock.Late || how == lock.Broken {
		return nil
	}
	return &state.Untold{Rollout: rollout, Reason: r.Why(), Unsettled: r.Unsettled(), Host: how == lock.Host}
}

// upgradeTeller is the teller of an upgrade.
type upgradeTeller struct {
	*pull
	version *state.Version
	turn    *lock.Turn
}

func (t *upgradeTeller) note(soFar *apply.Report) error {
	u := untold(t.version.Rollout(), t.howItFailed(t.version, soFar), soFar)
	if u == nil {
		return nil
	}
	t.local.Untold = u
	return t.local.save()
}

func (t *upgradeTeller) tell(ctx context.Context) error {
	u := t.local.Untold
	if u == nil || u.Rollout != t.version.Rollout() || !t.turn.Holds() {
		return nil
	}
	how := lock.Halting
	if u.Host {
		how = lock.Host
	}
	what := lock.UpgradeFailure{Reason: u.Reason, How: how, Unsettled: u.Unsettled, GoesOn: true}
	if err := t.turn.FailFor(ctx, what); err != nil {
		return err
	}
	t.local.Untold = nil
	return t.local.save()
}

// reactionTeller is the teller of a run of a reaction.
type reactionTeller struct {
	*reaction
	survives int // failures
}

func (t *reactionTeller) note(soFar *apply.Report) error {
	t.local.Reacting.Untold = untold(t.of.ID, failureOf(soFar.Fault()), soFar)
	return t.local.save()
}

func (t *reactionTeller) tell(ctx context.Context) error {
	at := t.local.Reacting
	if at.Untold == nil {
		return nil
	}
	why := state.ReactionResult{Node: t.said.Node, Reason: at.Untold.Reason}
	if err := t.store.Reactions.Fail(ctx, t.of.ID, why, t.survives); err != nil {
		return err
	}
	at.Untold = nil
	return t.local.save()
}

// Failed notes that the run failed: it does not give its slot to others any more.
func (g *gates) Failed(soFar *apply.Report) error {
	if g.turn == nil || soFar.Late() {
		return nil
	}
	g.remembering.Lock()
	defer g.remembering.Unlock()
	g.failed = true
	return g.teller.note(soFar)
}

// tellFailure tells the fleet of a failure that it may not know of, and reports whether the run itself failed.
func (g *gates) tellFailure(ctx context.Context) (failed bool, err error) {
	g.remembering.Lock()
	defer g.remembering.Unlock()
	return g.failed, g.teller.tell(ctx)
}
