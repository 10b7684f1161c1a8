package agent

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/internal/journal"
	"github.com/pullet/pullet/lock"
	"github.com/pullet/pullet/render"
	"github.com/pullet/pullet/state"
)

// ownDir is where the run has its journal, and the files that it may put back: what it does is no part of what the
// host is to be.
func (r *reaction) ownDir() string { return filepath.Join(r.config.Paths.State, "reactions", r.of.ID) }

func (r *reaction) forgetJournal() error { return os.RemoveAll(r.ownDir()) }

// runs runs the jobs, or goes on with them, and records what came of it.
func (r *reaction) runs(
	ctx context.Context, req lock.Request, rollout render.Rollout, program *compiled, turn *lock.Turn,
) error {
	if err := os.MkdirAll(r.ownDir(), 0o700); err != nil {
		return err
	}
	own, err := journal.Open(r.ownDir())
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, r.config.Agent.Deadline.Std()+r.Wait)
	defer cancel()
	says := r.reporter.steps(ctx, nil)
	gates, err := newGates(ctx, r.pull, req, rollout, program, turn, &reactionTeller{r, rollout.MaxFailures}, says, own)
	if err != nil {
		return errors.Join(err, own.Close())
	}
	o := r.options(ctx, program, gates, says, own)
	r.applied = append(r.applied, o.Host)
	over := r.agent.pulse.during(r.self.within(PhaseApply, r.Wait))
	report, err := program.Run(ctx, o)
	over()
	end := gates.ended()
	says.over(end.silent)
	if err = errors.Join(err, own.Close()); err != nil {
		return err
	}
	report.Reaction, report.Event = r.of.Reaction, r.of.Event.Name
	r.out.reacted(report, r.of)
	if end.at != nil {
		r.out.awaits(end.at)
	}
	if end.silent { // the next pull goes on
		return nil
	}
	return errors.Join(gates.leftSteps(ctx), r.settles(ctx, report, rollout, turn))
}

// options are how the jobs run: as in an upgrade, with a journal of their own.
func (r *reaction) options(
	ctx context.Context, program *compiled, gates *gates, says *stepSays, own *journal.Journal,
) apply.Options {
	o := apply.Options{
		Run: r.of.ID, Host: r.agent.host(r.version.ID), Journal: own, Begin: says.begin, Watch: says.ended, Log: r.log,
		Keep: filepath.Join(r.ownDir(), "lastgood"), Turn: true, Upgrade: true, Rest: r.waits.rest,
		FleetReader: r.fleetReaders(gates), Vault: r.compiler.keys.vault(), Gates: gates,
	}
	o.Host.Fence, o.Host.Fleet, o.Host.Emit = gates.Fence, r.compiler.fleet(), r.agent.emits(r.of.Chain)
	o.Await = func(a apply.Awaited) func(bool) { return r.awaitsCondition(ctx, r.version, gates, says, a) }
	return o
}

// settles records what came of the run. One that waits, boots the host or was stopped goes on in the next pull.
func (r *reaction) settles(ctx context.Context, report *apply.Report, rollout render.Rollout, turn *lock.Turn) error {
	r.reports.keep(report)
	r.said.Run, r.said.Changed = report.Run, report.Changed()
	after, cancel := afterwards(ctx)
	defer cancel()
	switch {
	case report.Failed():
		why := state.ReactionResult{Node: r.said.Node, Reason: report.Why()}
		err := r.store.Reactions.Fail(after, r.of.ID, why, rollout.MaxFailures)
		return errors.Join(err, r.ends(ctx, turn, state.Failed, report.Why()))
	case report.Stopped != "" || report.Reboot || report.Leaving: // it keeps its place
		return r.tells(after, report.Why(), "no action needed: the run goes on in the next pull")
	case report.Pending():
		if err := (&reactionTeller{r, rollout.MaxFailures}).tell(after); err != nil {
			return err
		}
		r.places.slot.Store(r.local.Held)
		r.local.Reacting.Held = nil
		return errors.Join(turn.Park(after, state.Status{Reason: report.Why()}), r.local.save(),
			r.stays(after, report.Why(), "start or fix what it waits for"))
	}
	return r.ends(ctx, turn, state.ReactionDone, "")
}
