package agent

import (
	"context"
	"errors"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/lock"
	"github.com/pullet/pullet/state"
)

// recordEnd says how an upgrade ended: in the fleet first, then on disk. A pull that is killed in between finds the
// fleet's record ahead of its own, and takes a slot again only to find nothing to do. It returns the result of the run,
// where that is on record with it.
func (p *pull) recordEnd(
	ctx context.Context,
	v *state.Version,
	turn *lock.Turn,
	report *apply.Report,
) (told *state.Status, err error) {
	ctx, cancel := afterwards(ctx)
	defer cancel()
	switch {
	case p.silent && !report.Failed():
		return nil, p.local.staysAtWork(v, turn.Slot())
	case report.Failed():
		p.local.Fails(v.ID, time.Now().UTC())
		err := turn.FailFor(ctx, lock.UpgradeFailure{
			Reason: report.Why(), How: p.howItFailed(v, report), Unsettled: report.Unsettled(),
		})
		if err == nil {
			p.local.Untold = nil
		}
		if w := p.registration.forgotten(ctx, err); w != nil {
			err = fmt.Errorf("the fleet does not know of the failure: %w", w)
		}
		p.local.Held = turn.Slot() // a late failure gives it back
		return nil, errors.Join(err, p.local.save())
	case report.Pending():
		return nil, p.settleWaiting(ctx, v, turn, report)
	}
	st := p.result(v, report)
	if err := unlessForgotten(ctx, p, turn.Succeed(ctx, p.resultOps(st, report)...)); p.silent {
		return nil, p.local.staysAtWork(v, turn.Slot())
	} else if err != nil {
		return nil, fmt.Errorf("the run succeeded but could not be recorded; the next pull does it: %w", err)
	}
	p.places.runs.Store(v)
	p.places.slot.Store(nil) // before the next pull, it is not to be put back
	p.local.Running, p.local.Validated, p.local.Through = v, true, v.Rollout()
	p.local.Held, p.local.Parked, p.local.Upgrading = nil, "", ""
	p.local.Failed, p.local.Failures, p.local.LastFailure, p.local.Untold = "", 0, time.Time{}, nil
	p.local.RolledBack = nil
	return &st, p.local.save()
}

// howItFailed says what the failure of a run means for the other nodes.
func (p *pull) howItFailed(v *state.Version, report *apply.Report) lock.Failure {
	switch {
	case report.Late():
		return lock.Late
	case v.Same(p.local.Running): // the version did work here: it is this host that broke
		return lock.Broken
	}
	return failureOf(report.Fault())
}

// failureOf is what a fault means for the other nodes.
func failureOf(fault apply.Fault) lock.Failure {
	if fault == apply.HostFault {
		return lock.Host
	}
	return lock.Halting
}

// settleWaiting records that the run waits. What only other nodes can end is waited for without the slot; a boot, a
// pull that a signal stopped, and one whose version the fleet left keep it.
func (p *pull) settleWaiting(ctx context.Context, v *state.Version, turn *lock.Turn, report *apply.Report) error {
	if report.Stopped != "" || report.Reboot {
		st := p.reporter.status(v, report.Why())
		if p.overtaken {
			st = p.reporter.waitStatus(v, p.out.Wait)
		}
		p.local.Held = turn.Slot() // none where a step that waited for others gave it back
		st.Parked = p.local.Held == nil
		err := p.store.Statuses.Tell(
			ctx, p.presence, p.store.Statuses.Ops(p.config.Node.Name, state.Rollout, state.Pending, st)...,
		)
		return errors.Join(unlessForgotten(ctx, p, err), p.local.save())
	}
	st := p.reporter.status(v, report.Why())
	st.Kind, st.Remedy = state.WaitInRun, inRunRemedy(v)
	if p.out.Wait != nil {
		st = p.reporter.waitStatus(v, p.out.Wait)
	}
	if err := (&upgradeTeller{p, v, turn}).tell(ctx); err != nil {
		return unlessForgotten(ctx, p, err)
	}
	p.places.slot.Store(nil)
	p.local.Parked, p.local.Held = v.Rollout(), nil
	return errors.Join(unlessForgotten(ctx, p, turn.Park(ctx, st)), p.local.save())
}

// inRunRemedy is what ends a wait in mid-run for a service or a condition. With canaries, the commit that fixes it may
// wait as well.
func inRunRemedy(v *state.Version) state.Remedy {
	clear := "start or fix what it waits for, or push a commit that does not wait for it"
	if v.Canary {
		clear += "; while newer commits wait for the canaries: pullet rollout fail"
	}
	return state.Act(clear)
}

// publish tells the fleet and the disk what came of the run. The result that was told before is not told again, unless
// something turned up since.
func (p *pull) publish(ctx context.Context, v *state.Version, report *apply.Report, told *state.Status) error {
	broken := p.announcer.check(ctx, v, report)
	p.agent.checks = p.announcer.rechecks(v, !report.Failed() && !report.Pending())
	ctx, cancel := afterwards(ctx)
	defer cancel()
	validated := !report.Failed()
	if v.Same(p.local.Running) && p.local.Validated != validated && !report.Pending() {
		p.local.Validated = validated
		if err := p.local.save(); err != nil {
			return err
		}
	}
	if report.Changed() > 0 || report.Failed() || p.out.Upgrade || len(p.out.Failures) > 0 {
		p.reports.keep(report)
	}
	if p.store == nil {
		return nil
	}
	if st := p.result(v, report); told == nil || st.Reason != told.Reason {
		ops := p.resultOps(st, report)
		if v.Same(p.local.Running) && !p.out.Upgrade &&
			p.presence.Node.Running != v.ID { // the fleet forgot: it was decommissioned, or the store is new
			ops = append(append(ops, p.store.Statuses.RunningOps(p.presence, v.ID)...), p.store.Bells.RingOp())
		}
		if err := p.store.Statuses.Tell(ctx, p.presence, ops...); err != nil {
			return err
		}
	}
	if err := p.announcer.withdraw(ctx, v); err != nil || report.Pending() {
		return err
	}
	return p.announcer.offer(ctx, v, validated, broken)
}

// result is what the fleet learns of a run.
func (p *pull) result(v *state.Version, report *apply.Report) state.Status {
	st := p.reporter.status(v, report.Why())
	if w := p.awaited; w != nil && report.Pending() {
		saysWait(&st, w)
		st.Gate, st.Since, st.Until = w.Gate, w.Since.UTC(), w.Until.UTC()
	}
	st.Host = report.Fault() == apply.HostFault && len(p.out.Failures) == 0
	if step := report.Unsettled(); step != "" {
		st.Unknown, st.Remedy = step, state.Act(state.SettleHint(step))
	}
	if st.Reason == "" { // also of a node that is fine: it may not hear of the next version
		p.reporter.saysTrouble(&st)
	}
	if w := p.out.Wait; w != nil && p.out.lacking != nil && st.Reason == "" {
		saysWait(&st, w)
	}
	if n := len(p.out.Warnings); st.Reason == "" && n > 0 {
		st.Reason = firstLine(p.out.Warnings[n-1])
	}
	p.reporter.saysFailure(&st) // a newer commit that this node cannot use is why it lags
	return st
}

// configuredOf is the configured state of a node after a pull. Failed validations are another category.
func configuredOf(o *Outcome) string {
	if len(o.Failures) == 0 && o.Report != nil && o.Report.OnlyValidationsFailed() {
		return state.Success
	}
	switch o.ExitCode() {
	case ExitError, ExitRefused: // what is offered is at fault, whatever runs here meanwhile
		return state.Failed
	case ExitWaiting:
		return state.Pending
	}
	return state.Success
}

// resultOps tell the fleet what came of a run.
func (p *pull) resultOps(st state.Status, r *apply.Report) []clientv3.Op {
	configured := state.StateOf{State: configuredOf(p.out), Status: st}
	return p.store.Statuses.ResultOps(p.config.Node.Name, configured, validationOf(st, r), digest(r))
}

// validationOf is how the validations are, of a run with a status: that of the validation steps alone.
func validationOf(st state.Status, r *apply.Report) state.StateOf {
	for _, s := range r.Steps {
		if s.Validation && (s.Outcome == apply.Failed || s.Outcome == apply.Unmet) {
			own := state.Status{Version: st.Version, Release: st.Release, Run: st.Run, Log: st.Log, Time: st.Time}
			own.Reason, own.Host = s.Why(), s.Fault == apply.HostFault
			return state.StateOf{State: state.Failed, Status: own}
		}
	}
	if r.Failed() || r.Pending() {
		return state.StateOf{State: state.Pending, Status: st}
	}
	return state.StateOf{State: state.Success, Status: st}
}

// recordTime is how long the end of a pull may take to be recorded, also when a signal stopped the pull itself.
const recordTime = 10 * time.Second

// afterwards is a context for recording what happened.
func afterwards(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), recordTime)
}
