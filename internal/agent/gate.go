package agent

import (
	"context"
	"errors"

	"github.com/pullet/pullet/internal/safetext"
	"github.com/pullet/pullet/lock"
	"github.com/pullet/pullet/render"
	"github.com/pullet/pullet/state"
)

// gate takes a slot for the version. While the node is not admitted it corrects drift of its current version, and waits
// as long as the pull may. No turn and no error: it still waits, and the outcome says for what. A node that gave its
// slot back in mid-run goes on without one: it takes a slot again before it changes anything.
func (p *pull) gate(ctx context.Context, v *state.Version, program *compiled) (*lock.Turn, error) {
	p.phases.begin(PhaseWait)
	req, err := p.turns.request(v, program)
	if err != nil {
		return nil, err
	}
	if err := p.turns.resealOnce(ctx, req, newVouches(&p.config, p.compiler.keys, program)); err != nil {
		return nil, err
	}
	turn := lock.NewTurn(p.store, req)
	if p.local.Parked == v.Rollout() {
		if left, err := turn.HasLeftover(ctx); !left || err != nil { // else it was killed before it gave its slot back
			p.reporter.parked.Store(true)
			return turn, err
		}
	}
	if err := p.turns.queued(v); err != nil {
		return nil, err
	}
	wait, err := p.turns.admit(ctx, turn, p.waits.within, func() error {
		p.out.worksOn(v)
		if p.local.upToDate(v) { // drift was corrected just now, and the report says what is left for its turn
			return p.turns.leaveSteps(ctx)
		}
		return errors.Join(p.turns.leaveSteps(ctx), p.keepRunning(ctx))
	})
	if errors.Is(err, lock.ErrSuperseded) {
		wait, err = newerComes(v, err), nil
	}
	if wait == nil && err == nil {
		return turn, nil
	}
	p.out.worksOn(v)
	p.out.awaits(wait)
	return nil, err
}

// newerComes is the wait of a node whose version was superseded meanwhile.
func newerComes(v *state.Version, err error) *lock.Wait {
	return passing(state.WaitNewer, "rollout of "+v.String(), err.Error(), "the next pull follows")
}

// leaveSteps frees the places at serialized steps that a run which was killed left behind: while the node waits for its
// turn, those who have theirs may wait for them.
func (t *turns) leaveSteps(ctx context.Context) error {
	if !t.local.halfway() || !t.places.mayBeInStep(t.presence) {
		return nil
	}
	_, err := lock.ReleaseSteps(ctx, t.store, t.config.Node.Name, func(string) bool { return false })
	return err
}

// queued remembers the node's place in the queue, which it has again at its next pull. It is on disk before the node
// queues: one that is killed right then would come back with another place, and wait for itself.
func (t *turns) queued(v *state.Version) error {
	if t.local.Order(v.Rollout()) != 0 {
		return nil
	}
	t.local.Queued, t.local.Place = v.Rollout(), t.presence.Revision
	return t.local.save()
}

// keepRunning corrects drift of the version that the node runs while it waits for a newer one. It leaves a node alone
// on which half of a newer version is, which would be turned back.
func (p *pull) keepRunning(ctx context.Context) error {
	running := p.local.fallback()
	if running == nil {
		return nil
	}
	program, err := p.compiler.compile(ctx, running)
	if err != nil {
		p.out.warn(err)
		return nil
	}
	if frozen, err := p.orders.frozen(ctx, running); frozen || err != nil {
		return err
	}
	report, err := p.run(ctx, running, program, nil)
	p.phases.begin(PhaseWait)
	if err != nil {
		return err
	}
	return p.publish(ctx, running, report, nil)
}

// firstLine is the headline of a message that may have many lines.
func firstLine(err error) string {
	text := err.Error()
	if list, ok := errors.AsType[render.ErrorList](err); ok && text == list.Error() {
		text = list.Mistakes().Error() // a warning is no reason
	}
	line, more := safetext.Headline(text)
	if more {
		line += " ..."
	}
	return line
}
