package agent

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/lock"
	"github.com/pullet/pullet/render"
	"github.com/pullet/pullet/state"
)

// gates is where the steps of one run wait for other nodes: apply.Gates on etcd.
type gates struct {
	*pull
	req     lock.Request
	rollout render.Rollout
	catalog *render.Catalog
	steps   *lock.Steps
	passed  bool // the node came through here before, or its version is not the fleet's any more: nobody waits for it

	turn    *lock.Turn   // nil: drift is corrected without a slot
	turning sync.Mutex   // guards turn, also while the node waits for it
	fence   atomic.Int64 // of turn

	electing   sync.Mutex // guards candidates and records
	candidates map[string]*lock.Candidate
	records    map[string]lock.Record // of the steps that this node was chosen for, as they were read
	keptSteps  int                    // places at serialized steps that a run which was killed left, and this one goes on with

	remembering sync.Mutex // guards the node's own record, which steps write beside each other

	ending   sync.Mutex // guards the following
	endedAt  *lock.Wait // what the run waited for as it ended
	overtook bool       // the fleet moved on to another version in mid-run
}

// gatesFor are the gates of a run; nil while the store is away.
func (p *pull) gatesFor(ctx context.Context, v *state.Version, program *compiled, turn *lock.Turn) (*gates, error) {
	if p.store == nil {
		return nil, nil
	}
	req, err := p.request(v, program)
	if err != nil {
		return nil, err
	}
	rollout, err := program.rules(v)
	if err != nil {
		return nil, err
	}
	g := &gates{
		pull: p, req: req, rollout: rollout, catalog: program.catalog, steps: lock.NewSteps(p.store, req), turn: turn,
		passed: turn == nil && (req.Stale || p.local.Through == v.Rollout()), candidates: map[string]*lock.Candidate{}, records: map[string]lock.Record{},
	}
	return g, g.leaveSteps(ctx)
}

// leaveSteps frees the places at serialized steps that a run which was killed left behind, but for the steps that this one goes on with.
func (g *gates) leaveSteps(ctx context.Context) error {
	goesOn := map[string]bool{}
	for _, job := range g.catalog.Jobs {
		for _, s := range job.Steps {
			if s.Options.Serialize != nil {
				goesOn[state.StepHash(job.GateID(s))] = g.local.journal.CutOff(s.ID()) || g.local.journal.Open(s.ID())
			}
		}
	}
	if g.turn == nil && len(goesOn) == 0 { // a newer version gives back what an older one took
		return nil
	}
	if !g.mayBeInStep() {
		return nil
	}
	var err error
	g.keptSteps, err = lock.LeaveSteps(ctx, g.store, g.config.Node.Name, func(hash string) bool { return goesOn[hash] })
	return err
}

// mayBeInStep reports that the node may hold places at serialized steps: it did when it registered, or this pull took some. Nobody else takes places
// for it.
func (p *pull) mayBeInStep() bool { return p.presence.Found.InStep || p.inStep.Load() }

// leftSteps frees, behind a run that ended, the places of steps that it was to go on with and that turned out to be done.
func (g *gates) leftSteps(ctx context.Context) error {
	if g == nil || g.keptSteps == 0 {
		return nil
	}
	ctx, cancel := afterwards(ctx)
	defer cancel()
	_, err := lock.LeaveSteps(ctx, g.store, g.config.Node.Name, func(string) bool { return false })
	return err
}

// Fence is the number of the claim under which commands run; 0 without one.
func (g *gates) Fence() int64 { return g.fence.Load() }

func (g *gates) Hold(ctx context.Context, s apply.GatedStep) error {
	if g.turn == nil {
		return nil
	}
	g.turning.Lock()
	defer g.turning.Unlock()
	if !g.turn.Holds() {
		if err := g.acquire(ctx, g.turn); err != nil {
			return g.leaves(err)
		}
		if err := g.remembers(g.turn.Slot()); err != nil {
			return err
		}
	}
	g.fence.Store(g.turn.Fence())
	g.held.Store(g.turn.Slot())
	id := ""
	if s.Step != nil {
		id = s.ID()
	}
	return g.leaves(g.turn.Check(ctx, id))
}

// remembers writes a claim to disk before a step begins under it: a pull that is killed then knows a record that lacks it.
func (g *gates) remembers(place *state.HeldPlace) error {
	g.remembering.Lock()
	defer g.remembering.Unlock()
	if place.Step == "" {
		g.local.Held = place
	}
	return g.local.save()
}

// leaves notes that the fleet moved on to another version: no further step of this one starts, and the next pull goes on inside the claim.
func (g *gates) leaves(err error) error {
	if errors.Is(err, lock.ErrSuperseded) {
		g.ends(newerComes(g.req.Version, err), true)
	}
	return err
}

// acquire makes it the node's turn, within the time that the pull may wait.
func (g *gates) acquire(ctx context.Context, turn *lock.Turn) error {
	wait, err := g.admit(ctx, turn, g.waits.within, nil)
	switch {
	case wait != nil:
		return g.pending(wait)
	case err == nil || errors.Is(err, lock.ErrSuperseded):
		g.reporter.waitsNoMore()
		return err
	}
	return g.pending(err)
}

func (g *gates) Park(ctx context.Context, why string) error {
	if g.turn == nil || !g.turning.TryLock() { // a step waits for the slot: there is none to give back
		return nil
	}
	defer g.turning.Unlock()
	if !g.turn.Holds() {
		return nil
	}
	w := g.waits.reason()
	if w == nil {
		w = &lock.Wait{Kind: state.WaitInRun, Gate: "other nodes", Reason: why, Remedy: inRunRemedy(g.req.Version)}
	}
	ctx, cancel := afterwards(ctx)
	defer cancel()
	g.held.Store(nil)
	return g.turn.Park(ctx, g.reporter.waitStatus(g.req.Version, w))
}

// admit makes it the node's turn, within the time that within gives for the wait: else it says what stood in the way at last. What there is to do
// meanwhile is done when the node is not admitted at once: the fleet learns why with the first that it is told of that.
func (p *pull) admit(ctx context.Context, turn *lock.Turn, within func(context.Context, func(context.Context) error) error, meanwhile func() error) (*lock.Wait, error) {
	p.reporter.holdsBack = meanwhile != nil
	wait, err := turn.Try(ctx)
	p.reporter.holdsBack = false
	if wait == nil || err != nil {
		return nil, err
	}
	if meanwhile != nil {
		err := meanwhile()
		p.reporter.tellHeldBack()
		if err != nil {
			return nil, errors.Join(err, turn.Leave(ctx))
		}
	}
	err = within(ctx, p.patiently(wait, turn.Acquire))
	if err == nil {
		return nil, nil
	}
	if errors.As(err, &wait) || errors.Is(err, context.DeadlineExceeded) { // no time was left to ask again
		return wait, nil
	}
	return nil, err
}

// pending says in the words of steps that a wait ended too early.
func (g *gates) pending(err error) error {
	var wait *lock.Wait
	switch {
	case errors.As(err, &wait):
	case errors.Is(err, lock.ErrSuperseded):
		wait = newerComes(g.req.Version, err)
	case err == nil:
		return nil
	case errors.Is(err, state.ErrLeaseLost), errors.Is(err, lock.ErrFenced):
		wait = &lock.Wait{Kind: state.WaitLease, Gate: "lease of " + g.config.Node.Name, Reason: err.Error(), Remedy: state.Itself("the next pull goes on"), Since: time.Now()}
	case state.Unanswered(err), errors.Is(err, lock.ErrMoved): // neither the commit nor the host is at fault
		wait = &lock.Wait{Kind: state.WaitEtcd, Gate: "etcd", Reason: g.store.Explain(err).Error(), Remedy: state.Itself("the next pull goes on"), Since: time.Now()}
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		wait = &lock.Wait{Kind: state.WaitTime, Gate: "other nodes", Reason: "no time was left to wait", Remedy: state.Itself("the next pull goes on"), Since: time.Now()}
	default:
		if wait = lock.Unreadable("etcd", err); wait == nil {
			return err
		}
		wait.Since = time.Now()
	}
	g.ends(wait, false)
	return &apply.PendingError{Reason: "waiting for " + wait.Gate + ": " + wait.Reason}
}

// ends notes what the run waits for as it ends, and whether the fleet moved on to another version.
func (g *gates) ends(at *lock.Wait, overtook bool) {
	g.ending.Lock()
	defer g.ending.Unlock()
	g.endedAt, g.overtook = at, g.overtook || overtook
}

// ended puts into the outcome what the run waited for as it ended.
func (g *gates) ended() {
	if g == nil {
		return
	}
	g.ending.Lock()
	defer g.ending.Unlock()
	if g.endedAt != nil {
		g.out.Wait, g.left = g.endedAt, g.overtook
	}
}

// tell remembers and tells what is waited for.
func (g *gates) tell(w *lock.Wait) {
	g.waits.says(w)
	g.req.Waiting(w)
}

// step names a step with all who have it.
func (g *gates) step(s apply.GatedStep) lock.Step {
	return lock.Step{ID: s.Job.GateID(s.Step), Once: once(s), Members: func(node string, m state.Member) (bool, string) { return s.Job.Has(node, m.Labels), "" }}
}

// staged names a step with those who come to it in the same stage of the rollout.
func (g *gates) staged(s apply.GatedStep) lock.Step {
	stage := g.stageOf(g.catalog.Node.Name, g.catalog.Node.Labels)
	return lock.Step{ID: s.Job.GateID(s.Step), Stage: strconv.Itoa(stage), Members: func(node string, m state.Member) (bool, string) {
		if !s.Job.Has(node, m.Labels) || g.stageOf(node, m.Labels) != stage {
			return false, ""
		}
		if g.rollout.LimitFor(g.rollout.Group(node, m.Labels), 1) == 0 {
			return false, "frozen"
		}
		return true, ""
	}}
}

func (g *gates) stageOf(node string, labels map[string]string) int {
	return g.rollout.Stage(g.rollout.Group(node, labels))
}

// with are the gates inside the run with the step's own word on lost nodes.
func (g *gates) with(s apply.GatedStep) *lock.Steps {
	if s.Options.OnLost == "" {
		return g.steps
	}
	req := g.req
	req.Rules.OnLost = s.Options.OnLost
	return lock.NewSteps(g.store, req)
}

func (g *gates) Serialize(ctx context.Context, s apply.GatedStep) (apply.EndSerial, error) {
	count := s.Options.Serialize.Count
	g.inStep.Store(true)
	turn, err := g.with(s).Serialize(ctx, g.step(s), func(roster int) int { n, _ := count.Of(roster); return n })
	if err != nil {
		return nil, g.pending(err)
	}
	if err := g.acquire(ctx, turn); err != nil {
		return nil, g.pending(err)
	}
	g.inSteps.add(turn, turn.Slot())
	if err := g.remembers(turn.Slot()); err != nil {
		g.inSteps.remove(turn)
		return nil, errors.Join(err, turn.Release(ctx))
	}
	g.goesOn(ctx)
	return func(ctx context.Context, how apply.Outcome, fault apply.Fault, why string) error {
		ctx, cancel := afterwards(ctx)
		defer cancel()
		g.inSteps.remove(turn)
		switch {
		case how == apply.Pending, how == apply.Failed && s.Options.FailAfterAllTargetsRan:
			return turn.Release(ctx)
		case how == apply.Failed:
			return g.pending(turn.StopStep(ctx, why, failureOf(fault)))
		}
		return g.pending(turn.GoOnStep(ctx))
	}, nil
}

// goesOn tells the fleet that the node changes again, if it was told that it waits.
func (g *gates) goesOn(ctx context.Context) {
	if g.turn == nil || !g.reporter.toldWait.Swap(false) {
		return
	}
	v := g.req.Version
	if err := g.store.Tell(ctx, g.presence, g.store.StatusOps(g.config.Node.Name, state.Rollout, state.Running, g.reporter.status(v, ""))...); err != nil {
		g.log.WithError(err).Warn("that the node goes on could not be recorded")
	}
}

func (g *gates) Arrive(ctx context.Context, s apply.GatedStep, how string, fault apply.Fault) (bool, error) {
	if g.passed {
		return true, nil
	}
	if how == lock.Failed && fault == apply.HostFault {
		how = lock.Faulty
	}
	ctx, cancel := afterwards(ctx)
	defer cancel()
	open, err := g.with(s).Arrive(ctx, g.staged(s), how)
	return open, g.pending(err)
}

func (g *gates) Await(ctx context.Context, s apply.GatedStep) error {
	if g.turn == nil { // drift of what this node runs already: it passed here before
		return nil
	}
	steps := g.with(s)
	err := g.waits.within(ctx, func(ctx context.Context) error { return steps.AwaitOpen(ctx, g.staged(s), g.tell) })
	if err != nil {
		return g.pending(err)
	}
	return nil
}
