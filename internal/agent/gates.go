package agent

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/internal/datastore"
	"github.com/pullet/pullet/internal/journal"
	"github.com/pullet/pullet/lock"
	"github.com/pullet/pullet/render"
	"github.com/pullet/pullet/state"
)

// gates is where the steps of one run wait for other nodes: apply.Gates on etcd.
type gates struct {
	*joined
	local    *local
	journal  *journal.Journal // of the run
	reporter *reporter
	says     *stepSays
	turns    *turns
	waits    *waits
	places   *places
	node     string
	log      *logrus.Entry

	req     lock.Request
	rollout render.Rollout
	catalog *render.Catalog
	member  datastore.Config // of the fleet's datastore, on this host
	vouches *vouches
	steps   *lock.Steps
	passed  bool // the node came through here before, or its version is not the fleet's any more: nobody waits for it

	turn    *lock.Turn   // nil: drift is corrected without a slot
	turning door         // guards turn, also while the node waits for it
	fence   atomic.Int64 // of turn

	electing   door // guards candidates and records
	candidates map[string]*lock.Candidate
	records    map[string]lock.Record // of the steps that this node was chosen for, as they were read
	// places at serialized steps that a run which was killed left, and this one goes on with
	keptSteps int

	absence absence // of the member

	remembering sync.Mutex // guards the node's own record, which steps write beside each other, and failed
	failed      bool       // the run did
	teller      teller     // of that

	end runEnding
}

// runEnding notes what ends a run before its time. It may be used by several goroutines.
type runEnding struct {
	mu sync.Mutex
	at runEnd
}

// runEnd is what ended a run before its time.
type runEnd struct {
	at       *lock.Wait // what the run waited for; nil: for nothing
	overtook bool       // the fleet moved on to another version
	silent   bool       // etcd did not answer
}

// gatesFor are the gates of a run; nil while the store is away.
func (p *pull) gatesFor(
	ctx context.Context,
	v *state.Version,
	program *compiled,
	turn *lock.Turn,
	says *stepSays,
) (*gates, error) {
	if p.store == nil {
		return nil, nil
	}
	req, err := p.turns.request(v, program)
	if err != nil {
		return nil, err
	}
	rollout, err := program.rules(v)
	if err != nil {
		return nil, err
	}
	return newGates(ctx, p, req, rollout, program, turn, &upgradeTeller{p, v, turn}, says, p.local.journal)
}

// newGates are the gates of a run under the rules of a request, with its journal.
func newGates(
	ctx context.Context,
	p *pull,
	req lock.Request,
	rollout render.Rollout,
	program *compiled,
	turn *lock.Turn,
	failures teller,
	says *stepSays,
	of *journal.Journal,
) (*gates, error) {
	g := &gates{
		joined: p.joined, local: p.local, journal: of, reporter: p.reporter, says: says, turns: p.turns, waits: &p.waits,
		places: &p.places, node: p.config.Node.Name, log: p.log, req: req, rollout: rollout, catalog: program.catalog,
		steps: lock.NewSteps(p.store, req), turn: turn, teller: failures,
		passed: turn == nil &&
			(req.Stale || p.local.Through == req.Version.Rollout()), candidates: map[string]*lock.Candidate{},
		records: map[string]lock.Record{},
		member:  p.config.Datastore,
		vouches: newVouches(&p.config, p.compiler.keys, program),
		turning: newDoor(), electing: newDoor(), absence: absence{door: newDoor()},
	}
	return g, g.leaveSteps(ctx)
}

// Fence is the number of the claim under which commands run; 0 without one.
func (g *gates) Fence() int64 { return g.fence.Load() }

// admit makes it the node's turn, within the time that within gives for the wait: else it says what stood in the way
// at last, or that the fleet's record forgot the node meanwhile. What there is to do meanwhile is done when the node is
// not admitted at once: the fleet learns why with the first that it is told of that.
func (t *turns) admit(
	ctx context.Context,
	turn *lock.Turn,
	within func(context.Context, func(context.Context) error) error,
	meanwhile func() error,
) (*lock.Wait, error) {
	wait, err := t.attend(ctx, turn, within, meanwhile)
	why := err
	if wait != nil {
		why = wait
	}
	if w := t.registration.forgotten(ctx, why); w != nil {
		return w, nil
	}
	return wait, err
}

// attend does what admit says.
func (t *turns) attend(
	ctx context.Context,
	turn *lock.Turn,
	within func(context.Context, func(context.Context) error) error,
	meanwhile func() error,
) (*lock.Wait, error) {
	wait, err := t.try(ctx, turn, meanwhile != nil)
	if wait == nil || err != nil {
		return nil, err
	}
	if meanwhile != nil {
		err := meanwhile()
		t.reporter.tellHeldBack()
		if err != nil {
			return nil, errors.Join(err, turn.Leave(ctx))
		}
	}
	err = within(ctx, t.patiently(wait, turn.Acquire))
	if err == nil {
		return nil, nil
	}
	if errors.As(err, &wait) || errors.Is(err, context.DeadlineExceeded) { // no time was left to ask again
		return wait, nil
	}
	return nil, err
}

// try asks for the turn once. With holdsBack the fleet is not told yet for what the node waits: no run is at work then,
// whose steps would tell it, too.
func (t *turns) try(ctx context.Context, turn *lock.Turn, holdsBack bool) (*lock.Wait, error) {
	if holdsBack {
		t.reporter.holdsBack = true
		defer func() { t.reporter.holdsBack = false }()
	}
	return turn.Try(ctx)
}

// pending says in the words of steps that a wait ended too early.
func (g *gates) pending(err error) error {
	if w := g.forgotten(err); w != nil {
		return &apply.PendingError{Reason: w.Error()}
	}
	var wait *lock.Wait
	silent := false
	switch {
	case errors.As(err, &wait):
		silent = wait.Kind == state.WaitEtcd
	case errors.Is(err, lock.ErrSuperseded):
		wait = newerComes(g.req.Version, err)
	case err == nil:
		return nil
	case errors.Is(err, lock.ErrReplaced):
		wait = passing(state.WaitInRun, "other nodes", err.Error(), "the next pull reads its result")
	case errors.Is(err, state.ErrLeaseLost), errors.Is(err, lock.ErrFenced):
		wait = passing(state.WaitLease, "lease of "+g.node, err.Error(), "the next pull goes on")
	case unanswered(g.store, err): // neither the commit nor the host is at fault
		silent, wait = true, etcdWait(g.store.Explain(err))
	case errors.Is(err, lock.ErrMoved):
		wait = etcdWait(err)
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		wait = passing(state.WaitTime, "other nodes", "no time was left to wait", "the next pull goes on")
	default:
		if wait = lock.Unreadable("etcd", err); wait == nil {
			return err
		}
		wait.Since = time.Now()
	}
	g.end.record(runEnd{at: wait, silent: silent})
	return &apply.PendingError{Reason: "waiting for " + wait.Gate + ": " + wait.Reason}
}

// passing is a wait that began now and ends by itself; then says what comes next.
func passing(kind state.WaitKind, gate, reason, then string) *lock.Wait {
	return &lock.Wait{Kind: kind, Gate: gate, Reason: reason, Remedy: state.Itself(then), Since: time.Now()}
}

// etcdWait is the wait of a node that etcd does not answer, or refuses.
func etcdWait(err error) *lock.Wait {
	w := passing(state.WaitEtcd, "etcd", err.Error(), "the next pull goes on")
	if away, ok := errors.AsType[*state.UnreachableError](err); ok && away.Denied() {
		w.Remedy = state.Act("give this host's user its rights in etcd, or fix etcd.username in its configuration")
	}
	return w
}

// record keeps what ends the run.
func (e *runEnding) record(by runEnd) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.at = runEnd{by.at, e.at.overtook || by.overtook, e.at.silent || by.silent}
}

// ended is what was noted of the end.
func (g *gates) ended() runEnd {
	if g == nil {
		return runEnd{}
	}
	g.end.mu.Lock()
	defer g.end.mu.Unlock()
	return g.end.at
}

// tell remembers and tells what is waited for.
func (g *gates) tell(w *lock.Wait) {
	g.waits.says(w)
	g.req.Waiting(w)
}

// gateStep names a step with all who have it.
func gateStep(s apply.GatedStep) lock.Step {
	return lock.Step{
		ID:      s.Job.GateID(s.Step),
		Once:    once(s),
		Members: func(node string, m state.Member) (bool, string) { return s.Job.Has(node, m.Labels), "" },

		Repeatable: s.Repeatable,
	}
}

// staged names a step with those who come to it in the same stage of the rollout.
func (g *gates) staged(s apply.GatedStep) lock.Step {
	stage := g.stageOf(g.catalog.Node.Name, g.catalog.Node.Labels)
	return lock.Step{
		ID:    s.Job.GateID(s.Step),
		Stage: strconv.Itoa(stage),
		Members: func(node string, m state.Member) (bool, string) {
			if !s.Job.Has(node, m.Labels) || g.stageOf(node, m.Labels) != stage {
				return false, ""
			}
			if g.rollout.LimitFor(g.rollout.Group(node, m.Labels), 1) == 0 {
				return false, "frozen"
			}
			return true, ""
		},
	}
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
	g.says.rests(s.Step.ID())
	steps := g.with(s)
	err := g.waits.within(ctx, func(ctx context.Context) error { return steps.AwaitOpen(ctx, g.staged(s), g.tell) })
	if err != nil {
		return g.pending(err)
	}
	return nil
}
