package agent

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/pullet/pullet/lock"
	"github.com/pullet/pullet/lock/arbiter"
	"github.com/pullet/pullet/puller"
	"github.com/pullet/pullet/render"
	"github.com/pullet/pullet/state"
)

// reactions are the runs of reactions that the node has to do, in one pull.
type reactions struct{ *pull }

// work does what there is to do about them, the oldest first: one that the node began with before all others. It
// reports that one goes on in a later pull, and that a new version waits for it: see lock/arbiter. What goes wrong in
// one keeps the node from nothing else.
func (p reactions) work(ctx context.Context, v *state.Version) (goesOn bool) {
	if p.store == nil {
		return p.comesFirst()
	}
	if w := p.out.Wait; w != nil && w.Kind == state.WaitReaction { // it may have waited for the upgrade of this pull
		p.out.awaits(nil)
	}
	asked := time.Now()
	begun := p.local.Reacting
	ids := p.orders.reactions
	if begun != nil {
		ids = append(slices.Clone(ids), begun.Run.ID)
	}
	all, err := p.store.Reactions.For(ctx, p.config.Node.Name, ids)
	if err != nil {
		p.orders.troubled(ctx, fmt.Errorf("runs of reactions: %w", p.store.Explain(err)), asked)
		return p.comesFirst()
	}
	if begun != nil {
		p.answer(ctx, v, goesOnWith(begun, all))
	}
	for _, run := range all {
		if begun == nil || run.ID != begun.Run.ID {
			goesOn = p.answer(ctx, v, run) || goesOn
		}
	}
	return p.comesFirst() || goesOn
}

// comesFirst reports a run that the node began with and that goes on before a new version.
func (p reactions) comesFirst() bool {
	at := p.local.Reacting
	return at != nil && !at.Run.OnChange
}

// goesOnWith is a run that the node is at: what it is stands on the host's disk, and whether it is halted on record.
func goesOnWith(begun *state.Reacting, all []state.PendingReaction) state.PendingReaction {
	out := state.PendingReaction{ReactionRun: begun.Run, Own: begun.Result, Open: true}
	for _, run := range all {
		if run.ID == begun.Run.ID {
			out.Halted = run.Halted
		}
	}
	return out
}

// answer does what there is to do about one run now. It reports an open run that the node has not begun yet.
func (p reactions) answer(ctx context.Context, v *state.Version, run state.PendingReaction) (opened bool) {
	asked := time.Now()
	r := &reaction{pull: p.pull, of: run.ReactionRun, version: v, said: run.Own}
	r.said.Node = p.config.Node.Name
	err := r.work(ctx, run)
	if err != nil && p.store != nil {
		err = fmt.Errorf("reaction %s (run %s): %w", run.Reaction, run.ID, p.store.Explain(err))
		p.orders.troubled(ctx, err, asked)
	}
	return r.first && !r.said.Over() && !r.of.OnChange
}

// reaction is a run of a reaction on this host.
type reaction struct {
	*pull
	of      state.ReactionRun
	version *state.Version // whose jobs it runs
	said    state.ReactionResult
	first   bool // its hosts begin with nothing else before they are through
}

// work does what there is to do about the run now.
func (r *reaction) work(ctx context.Context, run state.PendingReaction) error {
	at := r.local.Reacting
	begun, over := at != nil && at.Run.ID == run.ID, r.local.Ended(run.ID)
	switch {
	case begun && run.Halted != "" && at.Held == nil:
		return r.ends(ctx, nil, state.Failed, "the run was halted while this host waited for others: "+run.Halted)
	case begun:
		r.version = at.Version
	case at != nil: // one at a time
		return r.stays(ctx, "the run "+at.Run.ID+" of "+at.Run.Reaction+" on this host", "see pullet reactions")
	case over.Run != "": // by a record that was restored it is not
		return r.ends(ctx, nil, over.State, over.Reason)
	case run.Own.State == state.Running:
		return r.breaksOff(ctx, "this host lost its record of the run; it is not begun again")
	case run.Halted != "":
		return r.ends(ctx, nil, state.ReactionLeft, "the run is halted: "+run.Halted)
	case !run.Open:
		late := fmt.Sprintf("the host came later than %s after it was given", state.ReactionTime)
		return r.ends(ctx, nil, state.ReactionLeft, late)
	}
	next := r.version
	earlier := !begun && !run.OnChange && r.local.changes(next)
	if earlier && r.local.Running == nil {
		return r.stays(ctx, "this host's upgrade to "+next.String(), "see pullet rollout status")
	}
	if earlier {
		r.version = r.local.Running
	}
	program, err := r.compiler.reaction(ctx, r.version, r.of)
	if earlier && !run.Opened && (neverCompiles(err) || err == nil && len(program.catalog.Jobs) == 0) { // the next one may
		return r.stays(ctx, "this host's upgrade to "+next.String(), "see pullet rollout status")
	}
	if neverCompiles(err) {
		r.out.warn(fmt.Errorf("reaction %s (run %s) cannot run here: %w", r.of.Reaction, r.of.ID, err))
		return r.cannot(ctx, firstLine(err))
	}
	if err != nil {
		return err
	}
	if begun {
		return r.take(ctx, program, begun)
	}
	if len(program.catalog.Jobs) == 0 {
		return r.ends(ctx, nil, state.ReactionDone, "it has no job for this host")
	}
	if may, err := r.mayBegin(ctx, program); !may || err != nil {
		return err
	}
	return r.take(ctx, program, begun)
}

// mayBegin reports whether the host may begin with the run: it is in the middle of nothing else. If the hosts of the
// run wait for each other, none of them is.
func (r *reaction) mayBegin(ctx context.Context, program *compiled) (bool, error) {
	within := r.local.Upgrading
	switch {
	case program.catalog.WaitsForHosts():
		crossed, err := arbiter.Open(ctx, r.store, r.of)
		if crossed != nil {
			return false, r.stays(ctx, crossed.Text(), "see pullet rollout status and pullet reactions")
		}
		r.first = err == nil
		return r.first, err
	case !r.of.OnChange && within != "" && within != r.local.Failed:
		const how = "see pullet rollout status"
		return false, r.stays(ctx, "this host is in the middle of its upgrade to "+state.Short(within), how)
	}
	return true, nil
}

// neverCompiles reports an error that a later pull has, too: mistakes, or commits that the repositories do not have any
// more. The host had them when the version was new to it, so that a remote that lags is not why.
func neverCompiles(err error) bool {
	_, mistakes := errors.AsType[render.ErrorList](err)
	_, missing := errors.AsType[*puller.MissingCommitError](err)
	return mistakes || missing
}

// take takes the node's turn and runs the jobs.
func (r *reaction) take(ctx context.Context, program *compiled, begun bool) error {
	req, rollout, err := r.request(program)
	if err != nil {
		return err
	}
	waiting, cancel := context.WithCancel(ctx)
	defer cancel()
	req.Waiting = r.waiting(ctx, cancel)
	turn := lock.NewReactionTurn(r.store, req, r.of)
	if !begun || r.local.Reacting.Held != nil { // else it takes a place before it changes anything
		wait, err := r.turns.admit(waiting, turn, r.waits.standBy, nil)
		if waiting.Err() != nil && ctx.Err() == nil {
			return r.leaves(ctx, begun)
		}
		if wait != nil {
			return r.stays(ctx, wait.Gate+": "+wait.Reason, wait.Clear)
		}
		if err != nil {
			return err
		}
		r.places.slot.Store(turn.Slot())
	}
	if err := r.begins(ctx, turn); err != nil {
		return errors.Join(err, turn.Release(ctx))
	}
	return r.runs(ctx, req, rollout, program, turn)
}

// breaksOff ends a run as failed and halts it: no further host begins with it, and no host waits for its results.
func (r *reaction) breaksOff(ctx context.Context, why string) error {
	if err := r.store.Reactions.Fail(ctx, r.of.ID, state.ReactionResult{Node: r.said.Node, Reason: why}, 0); err != nil {
		return err
	}
	return r.ends(ctx, nil, state.Failed, why)
}

// cannot ends a run whose jobs do not compile here. Other hosts do not begin with it. A place that it had is given
// back.
func (r *reaction) cannot(ctx context.Context, why string) error {
	if r.program == nil { // nor does the version: nothing says how many failures the run survives
		return r.breaksOff(ctx, why)
	}
	rollout, err := r.program.rules(r.version)
	if err != nil {
		return err
	}
	failed := state.ReactionResult{Node: r.said.Node, Reason: why}
	if err := r.store.Reactions.Fail(ctx, r.of.ID, failed, rollout.MaxFailures); err != nil {
		return err
	}
	if at := r.local.Reacting; at != nil && at.Run.ID == r.of.ID && at.Held != nil && !r.of.OnChange {
		req := r.turns.requestUnder(rollout, &state.Version{ID: r.of.ID}, r.program.catalog)
		if err := lock.ReleaseSlot(ctx, r.store, req); err != nil {
			return err
		}
	}
	return r.ends(ctx, nil, state.Failed, why)
}

// request is the node's wish to run the jobs. The rules of rollouts hold but for the order of roles: canaries and
// dependencies are of versions.
func (r *reaction) request(program *compiled) (lock.Request, render.Rollout, error) {
	rollout, err := program.rules(r.version)
	if err != nil {
		return lock.Request{}, rollout, err
	}
	rollout.Canary, rollout.RoleDependencies = nil, nil
	of := &state.Version{ID: r.of.ID}
	req := r.turns.requestUnder(rollout, of, program.catalog)
	req.Apart, req.Stale, req.Order, req.Parked = true, false, 0, r.local.Reacting != nil && r.local.Reacting.Held == nil
	return req, rollout, nil
}

// leaves ends a run that was halted while the node waited for its turn. One that began here waits only if its slot
// was reclaimed.
func (r *reaction) leaves(ctx context.Context, begun bool) error {
	if begun {
		return r.ends(ctx, nil, state.Failed, "the run was halted, and the slot of this host was reclaimed")
	}
	now, err := r.store.Reactions.For(ctx, r.said.Node, []string{r.of.ID})
	if len(now) == 0 || err != nil {
		return err
	}
	return r.ends(ctx, nil, state.ReactionLeft, "the run is halted: "+now[0].Halted)
}

// waiting shows and tells for what the run waits. A run that is halted meanwhile is none to wait for.
func (r *reaction) waiting(ctx context.Context, halted func()) func(*lock.Wait) {
	shows := r.reporter.waiting(r.version, true)
	return func(w *lock.Wait) {
		if w.Kind == state.WaitHalt {
			halted()
			return
		}
		shows(w)
		if err := r.tells(ctx, w.Gate+": "+w.Reason, w.Clear); err != nil { // the wait goes on all the same
			r.log.WithError(r.store.Explain(err)).Debug("for what the reaction waits is not on record")
		}
	}
}

// begins remembers that the node is at the run, here and in the fleet's record, before anything changes.
func (r *reaction) begins(ctx context.Context, turn *lock.Turn) error {
	r.said.State, r.said.Version, r.said.Reason, r.said.Remedy = state.Running, r.version.ID, "", ""
	if r.said.Started.IsZero() {
		r.said.Started = time.Now().UTC()
	}
	var untold *state.Untold
	if at := r.local.Reacting; at != nil && at.Run.ID == r.of.ID {
		untold = at.Untold
	}
	r.local.Reacting = &state.Reacting{Run: r.of, Version: r.version, Result: r.said, Held: turn.Slot(), Untold: untold}
	if err := r.local.save(); err != nil {
		return err
	}
	e := r.of.Event
	r.log.WithField("run", r.of.ID).Infof("reaction %s answers %s; occurrences: %d", r.of.Reaction, e.Name, e.Occurrences)
	return r.store.Reactions.Tell(ctx, r.of.ID, r.said)
}

// stays tells for what the run waits on this host, and leaves it in the outcome of a pull that waits for nothing else.
func (r *reaction) stays(ctx context.Context, reason, remedy string) error {
	if r.out.Wait == nil {
		r.out.awaits(&lock.Wait{
			Kind: state.WaitReaction, Gate: "reaction " + r.of.Reaction, Reason: reason, Remedy: state.Act(remedy),
			Since: time.Now(),
		})
	}
	return r.tells(ctx, reason, remedy)
}

// tells tells the fleet for what the run waits.
func (r *reaction) tells(ctx context.Context, reason, remedy string) error {
	if r.said.State != state.Running {
		r.said.State = state.ReactionWaits
	}
	if r.said.Reason == reason {
		return nil
	}
	r.said.Reason, r.said.Remedy = reason, remedy
	return r.store.Reactions.Tell(ctx, r.of.ID, r.said)
}

// ends records the end of the run on this host, with the release of its place.
func (r *reaction) ends(ctx context.Context, turn *lock.Turn, how, reason string) error {
	ctx, cancel := afterwards(ctx)
	defer cancel()
	r.said.State, r.said.Reason, r.said.Remedy, r.said.Ended = how, reason, "", time.Now().UTC()
	ops := r.store.Reactions.EndOps(r.of.ID, r.said)
	var err error
	if turn != nil {
		err = turn.End(ctx, ops...)
	} else {
		_, err = r.store.Client.Txn(ctx).Then(ops...).Commit()
	}
	if err != nil {
		return err
	}
	r.local.Ends(state.EndedReaction{Run: r.of.ID, State: how, Reason: reason})
	if at := r.local.Reacting; at != nil && at.Run.ID == r.of.ID {
		r.places.slot.Store(r.local.Held)
		r.local.Reacting = nil
		err = r.forgetJournal()
	}
	return errors.Join(r.local.save(), err, r.store.Reactions.Ended(ctx, r.of))
}

// reaction makes the program of a run of a reaction for this host.
func (c *compiler) reaction(ctx context.Context, v *state.Version, run state.ReactionRun) (*compiled, error) {
	repo, err := c.versions.repository(ctx, v)
	if err != nil {
		return nil, err
	}
	view, err := c.view(ctx)
	if err != nil {
		return nil, err
	}
	return c.bind(ctx, repo, v, view, &run)
}

// answerTo has an input compile the jobs of a reaction.
func answerTo(in *render.Input, run *state.ReactionRun) {
	if run == nil {
		return
	}
	in.Event = eventOf(run.Event)
	in.Reaction = &render.Reacting{Reaction: run.Reaction, Hosts: run.Hosts}
}

// eventOf is an event as templates and expressions see it.
func eventOf(e state.Reacted) map[string]any {
	data := maps.Clone(e.Data)
	if data == nil {
		data = map[string]any{}
	}
	hosts := make([]any, len(e.About))
	for i, host := range slices.Sorted(slices.Values(e.About)) {
		hosts[i] = host
	}
	cause := make([]any, len(e.Chain))
	for i, c := range e.Chain {
		cause[i] = map[string]any{"run": c.Run, "reaction": c.Reaction}
	}
	node := ""
	if len(e.About) == 1 {
		node = e.About[0]
	}
	return map[string]any{
		"name": e.Name, "occurrences": e.Occurrences, "data": data, "node": node, "hosts": hosts, "id": e.ID,
		"time": e.Time.UTC().Format(time.RFC3339), "cause": cause,
	}
}
