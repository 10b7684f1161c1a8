package agent

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/lock"
	"github.com/pullet/pullet/state"
)

// reporter tells the fleet, and who watches the pull, what the node does: that a run begins, which step takes long, for
// what it waits.
type reporter struct {
	*joined
	ctx    context.Context // of the pull, for what is recorded beside it
	local  *local
	node   string
	run    string
	out    *Outcome
	shows  func(*lock.Wait)  // to who watches; may be nil
	notes  func(*lock.Wait)  // remembers each reason to wait
	begins func(apply.Begun) // the same, of steps
	ends   func(*apply.StepReport)
	away   func(error, time.Time) bool // see outage.begins; always false outside of the loop
	log    *logrus.Entry

	waitMu    sync.Mutex
	before    state.Status                 // for what the node waited last, as the fleet was told
	begun     bool                         // the fleet was told that a run begins
	toldWait  atomic.Bool                  // the fleet's record says that the node waits
	parked    atomic.Bool                  // the node gave its slot back in the middle of the version
	holdsBack bool                         // the reason to wait goes on record with the begin of the next run
	untold    atomic.Pointer[state.Status] // what was held back
	lastShown atomic.Pointer[shownWait]    // the wait that was shown last
}

// status is the status of the node at a version.
func (r *reporter) status(v *state.Version, reason string) state.Status {
	return state.Status{Version: v.ID, Release: v.Release, Run: r.run, Reason: reason, Time: time.Now().UTC()}
}

// begin tells the fleet that a run begins. A fleet that cannot be told does not keep the host from being put right.
func (r *reporter) begin(ctx context.Context, v *state.Version, turn *lock.Turn) {
	claimed := turn != nil && turn.Holds()
	if claimed {
		r.waitsNoMore()
	}
	told := r.begun || claimed // with what was asked before the run, or with the claim
	if r.begun = false; r.store == nil || told {
		return
	}
	if err := r.store.Statuses.BeginRun(ctx, r.presence, r.status(v, state.InRun)); err != nil {
		r.out.warn(fmt.Errorf("the begin of the run is not recorded: %w", r.store.Explain(err)))
	}
}

// followed is a wait as it is shown now: it says for what the node really waits, where that is behind the nodes that it
// names.
func (r *reporter) followed(w *lock.Wait) *lock.Wait {
	if w == nil || r.current == nil || r.store == nil {
		return w
	}
	ctx, cancel := afterwards(r.ctx)
	defer cancel()
	now, _ := w.Follow(ctx, r.store, r.current.ID) // what cannot be asked is shown as it is
	return now
}

// waiting tells everybody why the node waits. Several steps may wait at once. What a settled node waits for is no
// matter of the rollout.
func (r *reporter) waiting(v *state.Version, settled bool) func(*lock.Wait) {
	said := ""
	mu := newDoor()
	return func(w *lock.Wait) {
		mu.Lock()
		defer mu.Unlock()
		if w.Error() == said {
			return
		}
		said = w.Error()
		r.notes(w)
		if !settled && w.Kind != state.WaitEtcd { // which cannot be recorded
			r.recordWait(v, w)
		}
		if r.shows != nil { // behind the record: what is shown asks etcd
			now := r.followed(w)
			r.lastShown.Store(&shownWait{w, now.Error(), r.store, v.ID})
			r.shows(now)
		}
	}
}

// recordWait tells the fleet for what the node waits, or holds that back until a run begins.
func (r *reporter) recordWait(v *state.Version, w *lock.Wait) {
	st := r.waitStatus(v, w)
	st.Parked = r.parked.Load()
	if r.holdsBack {
		r.untold.Store(&st)
		return
	}
	r.tellWait(st)
}

// tellWait tells the fleet for what the node waits.
func (r *reporter) tellWait(st state.Status) {
	ctx, cancel := afterwards(r.ctx)
	defer cancel()
	asked := time.Now()
	err := r.store.Explain(
		r.store.Statuses.Tell(ctx, r.presence, r.store.Statuses.Ops(r.node, state.Rollout, state.Pending, st)...),
	)
	r.toldWait.Store(err == nil)
	if err != nil && !r.away(err, asked) {
		r.log.WithError(err).Warn("the reason to wait could not be recorded")
	}
}

// tellHeldBack tells for what the node waits, where the begin of a run did not.
func (r *reporter) tellHeldBack() {
	if st := r.untold.Swap(nil); st != nil {
		r.tellWait(*st)
	}
}

// waitStatus is the status of a node that waits. It began to wait when an earlier pull said so that came to the same
// gate.
func (r *reporter) waitStatus(v *state.Version, w *lock.Wait) state.Status {
	r.waitMu.Lock()
	defer r.waitMu.Unlock()
	st := r.status(v, "")
	saysWait(&st, w)
	st.Holders, st.Depends, st.Ahead, st.Frees, st.Since = w.Holders, w.Depends, w.Ahead, w.Frees, st.Time
	if before := r.before; before.Version == v.ID && before.Gate == w.Gate {
		st.Since = before.Time
		if !before.Since.IsZero() {
			st.Since = before.Since
		}
	}
	r.before = st
	return st
}

// saysWait puts into a status what the node waits for.
func saysWait(st *state.Status, w *lock.Wait) {
	st.Kind, st.Gate, st.Reason, st.Remedy, st.Halt, st.Until = w.Kind, w.Gate, w.Gate+": "+
		w.Reason, w.Remedy, w.Halt, w.Until.UTC()
}

// tellConfigured records the node's configured state when there was no run.
func (r *reporter) tellConfigured(ctx context.Context, v *state.Version) error {
	if r.store == nil {
		return nil
	}
	st := r.status(v, "")
	r.saysTrouble(&st)
	if w := r.out.Wait; w != nil {
		saysWait(&st, w)
	}
	r.saysFailure(&st)
	return r.store.Statuses.Tell(
		ctx, r.presence, r.store.Statuses.Ops(r.node, state.Configured, configuredOf(r.out), st)...,
	)
}

// tellIdle tells the fleet why a node without a version does nothing: else its record would say what was so before.
func (r *reporter) tellIdle(ctx context.Context) error {
	if len(r.out.Failures) > 0 || r.out.lacking != nil ||
		len(r.out.Refused) == 0 && r.out.Wait == nil { // that was told
		return nil
	}
	v := r.current
	if v == nil {
		v = &state.Version{}
	}
	return r.tellConfigured(ctx, v)
}

// saysTrouble puts into a status why the node does not follow its repositories.
func (r *reporter) saysTrouble(st *state.Status) {
	if t, ok := r.local.WorstTrouble(); ok {
		st.Kind, st.Reason, st.Remedy, st.Since = t.Kind, t.Why, state.Act(t.Clear), t.Since
	}
}

// saysFailure says of the node what failed last, if anything did.
func (r *reporter) saysFailure(st *state.Status) {
	for _, err := range r.out.Failures {
		st.Kind, st.Reason, st.Remedy, st.Since = "", saidOf(err), state.Remedy{}, time.Time{}
		st.Host = failureOf(faultOf(err)) == lock.Host
	}
}

// waitsNoMore forgets for what the node waited: it has its place.
func (r *reporter) waitsNoMore() {
	r.waitMu.Lock()
	defer r.waitMu.Unlock()
	r.before = state.Status{}
}
