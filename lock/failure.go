package lock

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/pullet/pullet/state"
)

// failing records that the node failed.
type failing struct {
	store  *state.Store
	req    *Request
	pool   *pool
	claim  *ownClaim
	roster *groupRoster
	gate   *poolGate
}

// Fail records that the upgrade failed and why. The claim stays, the node retries inside it. When the group has more
// failures than it survives, it is halted in the same transaction.
func (t *Turn) Fail(ctx context.Context, reason string, how Failure) error {
	return t.FailFor(ctx, UpgradeFailure{Reason: reason, How: how})
}

// UpgradeFailure is what there is to record of a failed upgrade.
type UpgradeFailure struct {
	Reason string
	How    Failure
	// Unsettled is the targeted step of which nobody knows what came, and because of which the upgrade failed: what
	// that halts goes on when the step is settled. "" is none.
	Unsettled string
	// GoesOn says that the run is not over: it waits, and may change the host afterwards. It keeps its places.
	GoesOn bool
}

// FailFor is Fail with all that there is to say.
func (t *Turn) FailFor(ctx context.Context, what UpgradeFailure) error {
	return again(ctx, t.req.node(), func() error { return t.failing.record(ctx, what) })
}

// Failure is what a node's failure means for the others.
type Failure int

const (
	Halting Failure = iota // it counts against what the group survives
	Late                   // it stops nobody before all have run the step that failed: the claim is freed for them
	Broken                 // the version worked here before: it is the host's own matter
	Host                   // a fault of the host: it counts apart, against Rules.MaxHostFailures
)

func (f *failing) record(ctx context.Context, what UpgradeFailure) error {
	s, q, how := f.store, f.req, what.How
	if how == Host && f.roster.frozen == nil {
		if err := f.roster.freeze(ctx, false); err != nil {
			return err
		}
	}
	recorded := false
	for attempt := 0; ; attempt++ {
		gate, gateRev, err := f.gate.read(ctx)
		if err != nil {
			return err
		}
		st := q.status(what.Reason)
		st.Host = how == Host
		if what.Unsettled != "" {
			st.Unknown, st.Remedy = what.Unsettled, state.Act(state.SettleHint(what.Unsettled))
		}
		ops := append(s.Statuses.Ops(q.node(), state.Rollout, state.Failed, st), s.Bells.RingOp())
		if how == Host && !what.GoesOn && !slices.Contains(gate.Failed, q.node()) {
			ops = append(ops, f.claim.releaseTotalOps()...)
		}
		if counts := how == Halting || how == Host; counts && (gate.State == state.Halted || attempt > 0) &&
			!recorded { // it is on record at once, however many fail at the same moment
			if err := f.claim.write(ctx, ops); err != nil {
				return err
			}
			recorded = true
		}
		switch {
		case recorded &&
			(gate.Counts(q.node()) && (how == Host || slices.Contains(gate.Failed, q.node())) ||
				attempt > listing && gate.State == state.Halted):
			return nil // the next failure tries to be listed again
		case how == Late:
			ops = append(s.Statuses.Ops(q.node(), state.Rollout, state.Failed, st), f.claim.releaseOps()...)
		case how == Halting || how == Host:
			if f.survived().count(&gate, q.node(), what.Reason, how) {
				gate.Unknown = what.Unsettled
			}
			ops = append(ops, f.gate.op(gate))
		}
		err = f.gate.commit(ctx, gateRev, f.claim, ops...)
		moved := errors.Is(err, ErrMoved)
		if how == Late && (err == nil || (moved || errors.Is(err, f.claim.lostError())) && f.recordedBefore(ctx)) {
			f.claim.forget() // also where an attempt whose answer was lost recorded it
			return nil
		}
		if !moved {
			return err
		}
		if !pause(ctx, q.node(), attempt, 2*retryFast, 2*time.Second) {
			return ctx.Err()
		}
	}
}

// survived is what the group survives.
func (f *failing) survived() survived { return f.pool.survived(f.req, f.roster.size) }

// listing is how often a node tries to be among the failed ones of a gate that is halted already. All of a large group
// may want that at once; what they failed of is on record beside it.
const listing = 3

// recordedBefore reports that this run's failure is on record.
func (f *failing) recordedBefore(ctx context.Context) bool {
	st, err := f.store.Statuses.Get(ctx, f.req.node(), state.Rollout, state.Failed)
	return err == nil && st.Run == f.req.Run && f.req.Run != ""
}
