package agent

import (
	"context"
	"errors"
	"time"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/lock"
	"github.com/pullet/pullet/state"
)

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
		if !g.req.Apart {
			g.reporter.parked.Store(false)
		}
	}
	g.fence.Store(g.turn.Fence())
	g.places.slot.Store(g.turn.Slot())
	id := ""
	if s.Step != nil {
		id = s.ID()
	}
	if err := g.leaves(g.check(ctx, id)); err != nil {
		return err
	}
	g.places.slot.Store(g.turn.Slot()) // with the step, for a record that goes back in time
	return nil
}

// check makes sure that the claim is the node's still. While etcd does not answer, who holds it is not known: the step
// waits, and the run ends when the pull may wait no longer.
func (g *gates) check(ctx context.Context, step string) error {
	err := g.ask(ctx, step)
	if unanswered(g.store, err) && ctx.Err() == nil {
		g.tell(etcdWait(g.store.Explain(err)))
		err = g.waits.within(ctx, func(ctx context.Context) error {
			return askOn(ctx, g.store, err, func() error { return g.ask(ctx, step) })
		})
	}
	if w := g.forgotten(err); w != nil {
		return w
	}
	if !unanswered(g.store, err) || ctx.Err() != nil {
		return err
	}
	err = g.store.Explain(err)
	g.end.record(runEnd{at: etcdWait(err), silent: true})
	return err
}

// askPause is how long a step waits before it asks etcd again.
const askPause = 500 * time.Millisecond

// askOn asks until etcd answers, and returns the last error that it had time for.
func askOn(ctx context.Context, s *state.Store, err error, ask func() error) error {
	for unanswered(s, err) {
		select {
		case <-ctx.Done():
			return err
		case <-time.After(askPause):
		}
		again := ask()
		if ctx.Err() != nil {
			return err
		}
		err = again
	}
	return err
}

// ask asks etcd once whether the claim is the node's.
func (g *gates) ask(ctx context.Context, step string) error {
	limited, cancel := context.WithTimeout(ctx, recordTime)
	defer cancel()
	err := g.turn.Check(limited, step)
	if limited.Err() == nil || ctx.Err() != nil {
		return err
	}
	err = g.store.Explain(err)
	if away, ok := errors.AsType[*state.UnreachableError](err); ok { // whatever else was answered meanwhile
		away.Silent = true
	}
	return err
}

// unanswered reports an error that says no more than that etcd did not answer.
func unanswered(s *state.Store, err error) bool {
	if state.Unanswered(err) {
		return true
	}
	away, ok := errors.AsType[*state.UnreachableError](s.Explain(err))
	return ok && !away.Denied() && (away.Silent || !errors.Is(err, context.DeadlineExceeded))
}

// remembers writes a claim to disk before a step begins under it: a pull that is killed then knows a record that lacks
// it.
func (g *gates) remembers(place *state.HeldPlace) error {
	g.remembering.Lock()
	defer g.remembering.Unlock()
	switch {
	case place == nil || place.Step != "":
	case g.req.Apart:
		g.local.Reacting.Held = place
	default:
		g.local.Held = place
	}
	return g.local.save()
}

// leaves notes that the fleet moved on to another version: no further step of this one starts, and the next pull goes
// on inside the claim.
func (g *gates) leaves(err error) error {
	if errors.Is(err, lock.ErrSuperseded) {
		g.end.record(runEnd{at: newerComes(g.req.Version, err), overtook: true})
	}
	return err
}

// acquire makes it the node's turn, within the time that the pull may wait.
func (g *gates) acquire(ctx context.Context, turn *lock.Turn) error {
	wait, err := g.turns.admit(ctx, turn, g.waits.within, nil)
	switch {
	case wait != nil:
		return g.pending(wait)
	case errors.Is(err, lock.ErrSuperseded):
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
	ctx, cancel := afterwards(ctx)
	defer cancel()
	if failed, err := g.tellFailure(ctx); failed || err != nil { // others would run what failed here
		return err
	}
	w := g.waits.reason()
	if w == nil {
		w = &lock.Wait{Kind: state.WaitInRun, Gate: "other nodes", Reason: why, Remedy: inRunRemedy(g.req.Version)}
	}
	g.places.slot.Store(nil)
	if !g.req.Apart {
		g.reporter.parked.Store(true)
	}
	return g.turn.Park(ctx, g.reporter.waitStatus(g.req.Version, w))
}
