package agent

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/lock"
	"github.com/pullet/pullet/puller"
	"github.com/pullet/pullet/state"
)

// Options are what one pull may be told.
type Options struct {
	Wait         time.Duration           // how long to wait at gates
	AcceptRewind bool                    // accept a rewritten history of the repositories, for the whole fleet
	PruneAll     bool                    // remove what jobs no longer declare also where it is more than the limit
	By           string                  // who asked, for the record
	Watch        func(*apply.StepReport) // sees each step as it ends; may be nil
	Waiting      func(*lock.Wait)        // sees each reason to wait; may be nil
	loop         bool                    // the agent's loop: the lease is short and renewed
}

// pull is one pull in progress.
type pull struct {
	*Agent
	Options
	out      *Outcome
	local    state.Local
	journal  *state.Journal
	store    *state.Store // nil: unreachable
	presence *state.Presence
	current  *state.Version  // the fleet's
	agreed   int64           // the revision at which it was agreed
	ctx      context.Context // of the pull, for what is recorded beside it

	waitMu sync.Mutex
	waited time.Duration // at gates, of Wait
	said   *lock.Wait    // the last reason to wait inside the run
	log    *logrus.Entry
}

// Pull brings the node to the fleet's version, once: do below is how. What went wrong with the commit, the host or the fleet is in the Outcome; an
// error means that the pull could not be made at all.
func (a *Agent) Pull(ctx context.Context, o Options) (*Outcome, error) {
	p := &pull{Agent: a, Options: o, out: &Outcome{Run: runID()}, ctx: ctx}
	p.log = a.log.WithField("run", p.out.Run)
	held, err := state.LockRun(a.config.Paths.State, p.out.Run)
	if err != nil {
		return p.out, err
	}
	defer p.unlock(held)
	p.work(p.config.Agent.Deadline.Std() + 2*p.Wait + time.Hour)
	err = p.do(ctx)
	if err == nil && p.out.Rebooting() {
		err = p.host("").Reboot(ctx)
	}
	if p.store != nil {
		err = p.store.Explain(err)
	}
	return p.out, err
}

// do is the one pull, from start to end.
func (p *pull) do(ctx context.Context) error {
	if err := p.remember(); err != nil {
		return err
	}
	if err := p.awaitOrphans(ctx); err != nil {
		return err
	}
	heads, err := p.puller.Pull(ctx)
	if err != nil {
		return err
	}
	if err := p.join(ctx); err != nil {
		return err
	}
	version, err := p.agree(ctx, heads)
	if version == nil || err != nil {
		return err
	}
	program, err := p.compile(ctx, version)
	if err != nil {
		return p.cannotCompile(ctx, version, err)
	}
	if err := p.relabel(ctx, program.catalog.Node.Labels); err != nil {
		return err
	}
	if p.store == nil || p.upToDate(version) {
		if err := p.converge(ctx, version, program); err != nil || !p.needsTurn() {
			return err
		}
	}
	turn, err := p.gate(ctx, version, program)
	if turn == nil || err != nil {
		return err
	}
	return p.upgrade(ctx, version, program, turn)
}

// awaitOrphans waits for commands of a pull that was killed: to start them once more beside themselves would make two.
func (p *pull) awaitOrphans(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, max(p.Wait, time.Second)) // one that just lost its pull is about to end
	defer cancel()
	told := false
	for {
		err := apply.Orphans(p.notes())
		var orphan *apply.OrphanError
		if !errors.As(err, &orphan) {
			return err
		}
		if !told && p.Waiting != nil {
			p.Waiting(&lock.Wait{Gate: "a command that outlived its pull", Reason: orphan.What(), Clear: orphan.Clear(), Since: time.Now()})
			told = true
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func (p *pull) unlock(held *state.RunLock) {
	if err := errors.Join(p.closeJournal(), held.Release()); err != nil {
		p.log.WithError(err).Warn("run lock")
	}
}

func (p *pull) closeJournal() error {
	if p.journal == nil {
		return nil
	}
	return p.journal.Close()
}

// remember reads what the node knows of itself.
func (p *pull) remember() error {
	dir := p.config.Paths.State
	var err error
	if p.local, err = state.LoadLocal(dir); err != nil {
		return err
	}
	if p.journal, err = state.OpenJournal(dir); err != nil {
		return err
	}
	if p.local.Secret != "" {
		return nil
	}
	p.local.Secret = randomID() + randomID()
	return p.local.Save(dir)
}

// upToDate reports that the node runs the version and its last run was validated.
func (p *pull) upToDate(v *state.Version) bool {
	return v.Same(p.local.Running) && p.local.Validated && !p.halfway()
}

// halfway reports that half of another version than the one that runs here may be on the host.
func (p *pull) halfway() bool {
	_, cutOff := p.journal.Unfinished()
	return p.local.Failed != "" || p.local.Upgrading != "" || cutOff != "" && (p.local.Running == nil || cutOff != p.local.Running.ID)
}

// needsTurn reports that something is left for which this node has to have its turn although the version is the same: a boot.
func (p *pull) needsTurn() bool {
	return p.store != nil && p.out.Report != nil && p.out.Report.NeedsTurn
}

// converge corrects drift of the version that the node runs. It takes no slot.
func (p *pull) converge(ctx context.Context, v *state.Version, program *compiled) error {
	p.out.Version = v
	report, err := p.run(ctx, v, program, nil)
	if err != nil {
		return err
	}
	if err := p.through(ctx, v, program, report); err != nil {
		return err
	}
	return p.publish(ctx, v, report)
}

// upgrade brings the node to a version under its slot.
func (p *pull) upgrade(ctx context.Context, v *state.Version, program *compiled, turn *lock.Turn) error {
	p.out.Version, p.out.Upgrade = v, true
	p.log.WithFields(logrus.Fields{"version": v.String(), "from": p.local.Running.String()}).Info("upgrading")
	if p.local.Upgrading != v.ID {
		p.local.Upgrading = v.ID
		if err := p.local.Save(p.config.Paths.State); err != nil {
			return err
		}
	}
	report, err := p.run(ctx, v, program, turn)
	if err != nil {
		return errors.Join(err, p.settle(ctx, v, turn, &apply.Report{Stopped: err.Error()}))
	}
	if err := p.settle(ctx, v, turn, report); err != nil {
		return err
	}
	return p.publish(ctx, v, report)
}

// run applies a program to the host.
func (p *pull) run(ctx context.Context, v *state.Version, program *compiled, turn *lock.Turn) (*apply.Report, error) {
	ctx, cancel := context.WithTimeout(ctx, p.config.Agent.Deadline.Std()+p.Wait) // waits are not counted
	defer cancel()
	gates, err := p.gatesFor(v, program, turn)
	if err != nil {
		return nil, err
	}
	o := apply.Options{
		Run: p.out.Run, Host: p.host(v.ID), Journal: p.journal, Watch: p.Watch, Log: p.log, Keep: filepath.Join(p.config.Paths.State, "lastgood"), Turn: turn != nil,
		PruneLimit: p.config.Agent.PruneLimit, PruneAll: p.PruneAll,
		Upgrade: !p.upToDate(v) && turn != nil,
	}
	if gates != nil { // an interface that holds a nil pointer would not be nil
		o.Gates, o.Host.Fence = gates, gates.Fence
	}
	o.Host.Fleet = p.fleet()
	report, err := program.Run(ctx, o)
	p.out.Report = report
	return report, err
}

// settle records how an upgrade ended: in the fleet first, then on disk. A pull that is killed in between finds the fleet's record
// ahead of its own, and takes a slot again only to find nothing to do.
func (p *pull) settle(ctx context.Context, v *state.Version, turn *lock.Turn, report *apply.Report) error {
	ctx, cancel := afterwards(ctx)
	defer cancel()
	switch {
	case report.Failed():
		p.local.Failed, p.local.Failures, p.local.LastFailure = v.ID, p.local.Failures+1, time.Now().UTC()
		return errors.Join(turn.Fail(ctx, report.Why(), p.howItFailed(v, report)), p.local.Save(p.config.Paths.State))
	case report.Pending():
		return p.pause(ctx, v, turn, report)
	}
	if err := turn.Succeed(ctx); err != nil {
		return fmt.Errorf("the run succeeded but could not be recorded; the next pull does it: %w", err)
	}
	p.local.Running, p.local.Validated, p.local.Through = v, true, v.Rollout()
	p.local.Parked, p.local.Upgrading, p.local.Failed, p.local.Failures, p.local.LastFailure = "", "", "", 0, time.Time{}
	return p.local.Save(p.config.Paths.State)
}

// howItFailed says what the failure of a run means for the other nodes.
func (p *pull) howItFailed(v *state.Version, report *apply.Report) lock.Failure {
	switch {
	case report.Late():
		return lock.Late
	case v.Same(p.local.Running): // the version did work here: it is this host that broke
		return lock.Broken
	}
	return lock.Halting
}

// pause records that the run waits. What only other nodes can end is waited for without the slot; a boot, and a pull that was told to stop,
// keep it.
func (p *pull) pause(ctx context.Context, v *state.Version, turn *lock.Turn, report *apply.Report) error {
	w := p.out.Wait
	if w == nil {
		w = &lock.Wait{Gate: "a step", Reason: report.Why(), Clear: "the next pull goes on with it"}
	}
	if report.Stopped != "" || report.Reboot {
		return p.store.SetStatus(ctx, p.config.Node.Name, state.Rollout, state.Pending, p.status(v, report.Why()))
	}
	st := p.waitStatus(v, w)
	st.Parked = true
	p.local.Parked = v.Rollout()
	return errors.Join(turn.Park(ctx, w), p.store.SetStatus(ctx, p.config.Node.Name, state.Rollout, state.Pending, st), p.local.Save(p.config.Paths.State))
}

// publish tells the fleet and the disk what came of the run.
func (p *pull) publish(ctx context.Context, v *state.Version, report *apply.Report) error {
	ctx, cancel := afterwards(ctx)
	defer cancel()
	dir := p.config.Paths.State
	validated := !report.Failed()
	if v.Same(p.local.Running) && p.local.Validated != validated && !report.Pending() {
		p.local.Validated = validated
		if err := p.local.Save(dir); err != nil {
			return err
		}
	}
	if report.Changed() > 0 || report.Failed() || p.out.Upgrade {
		if err := state.SaveReport(dir, report.Run, report); err != nil {
			return err
		}
	}
	if p.store == nil {
		return nil
	}
	st := p.status(v, report.Why())
	for _, e := range append(p.out.Warnings, p.out.Refused...) { // also of a node that is fine: it may not hear of the next version
		st.Reason = firstLine(e)
	}
	for _, e := range p.out.Failures { // a newer commit that this node cannot use is why it lags
		st.Reason = firstLine(e)
	}
	ops := append(p.store.StatusOps(p.config.Node.Name, state.Configured, stateOf(p.out), st),
		p.store.StatusOps(p.config.Node.Name, state.Validated, validationOf(report), st)...)
	if v.Same(p.local.Running) && !p.out.Upgrade && p.presence.Node.Running != v.ID { // the fleet forgot: it was decommissioned, or the store is new
		ops = append(append(ops, p.store.RunningOps(p.presence, v.ID)...), p.store.RingOp())
	}
	if _, err := p.store.Client.Txn(ctx).Then(ops...).Commit(); err != nil {
		return err
	}
	if report.Pending() { // what was ready stays so while the node waits
		return nil
	}
	return p.setReady(ctx, validated)
}

// stateOf is the configured state of a node after a pull.
func stateOf(o *Outcome) string {
	switch o.ExitCode() {
	case ExitError:
		return state.Failed
	case ExitWaiting:
		return state.Pending
	}
	return state.Success
}

// validationOf is the validated state: that of the validation steps alone.
func validationOf(r *apply.Report) string {
	for _, s := range r.Steps {
		if s.Validation && (s.Outcome == apply.Failed || s.Outcome == apply.Unmet) {
			return state.Failed
		}
	}
	if r.Failed() || r.Pending() {
		return state.Pending
	}
	return state.Success
}

func (p *pull) status(v *state.Version, reason string) state.Status {
	return state.Status{Version: v.ID, Release: v.Release, Run: p.out.Run, Reason: reason, Time: time.Now().UTC()}
}

// recordTime is how long the end of a pull may take to be recorded, also when the pull itself was told to stop.
const recordTime = 10 * time.Second

// afterwards is a context for recording what happened.
func afterwards(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), recordTime)
}

// heads are a version's commits as the puller names them.
func heads(v *state.Version) []puller.Head {
	out := make([]puller.Head, len(v.Commits))
	for i, c := range v.Commits {
		out[i] = puller.Head{Repo: c.Repo, Commit: c.Commit, Tag: c.Tag}
	}
	return out
}
