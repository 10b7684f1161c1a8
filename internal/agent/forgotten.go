package agent

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/pullet/pullet/lock"
	"github.com/pullet/pullet/state"
)

// forgotten is the wait of a node whose fleet's record was restored or replaced while it pulled: its claim, its lease
// or the version is not there. It is nil where an error has another reason. The fleet learns what the node holds.
func (r *registration) forgotten(ctx context.Context, err error) *lock.Wait {
	back, _ := errors.AsType[*state.WentBackError](err)
	if r.compare == nil || back == nil && !lacking(err) {
		return nil
	}
	ctx, cancel := afterwards(ctx)
	defer cancel()
	if back = cmp.Or(r.compare(ctx), back); back == nil {
		return nil
	}
	w := lock.DoubtedWait(r.config.Node.Name, back.What())
	w.Since = time.Now()
	return w
}

// lacking reports an error that a record shows which lacks what the node made or saw there.
func lacking(err error) bool {
	if w, waits := errors.AsType[*lock.Wait](err); waits {
		return w.Kind == state.WaitLease
	}
	return errors.Is(err, lock.ErrFenced) || errors.Is(err, state.ErrLeaseLost) || errors.Is(err, lock.ErrSuperseded)
}

// forgotten ends a run whose node the fleet's record forgot.
func (g *gates) forgotten(err error) *lock.Wait {
	w := g.turns.registration.forgotten(g.reporter.ctx, err)
	if w != nil {
		g.end.record(runEnd{at: w, silent: true})
	}
	return w
}

// unlessForgotten leaves in the outcome that the pull waits until an operator accepts a record that forgot the node,
// and asks that record nothing more. Any other error it returns.
func unlessForgotten(ctx context.Context, p *pull, err error) error {
	w := p.registration.forgotten(ctx, err)
	if w == nil {
		return err
	}
	if _, others := err.(interface{ Unwrap() []error }); others { // what went wrong beside is said, too
		p.out.warn(err)
	}
	p.silent = true
	p.out.awaits(w)
	p.drop()
	return nil
}
