package agent

import (
	"context"
	"errors"
	"time"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/lock"
	"github.com/pullet/pullet/state"
)

// waitsForOrphan tells that the pull waits for a command of one that was killed: here, and the fleet, where others may
// wait for this node.
func (p *pull) waitsForOrphan(orphan *apply.OrphanError) {
	w := orphanWait(p.config.Node.Name, orphan)
	p.reporter.notes(w)
	if p.reporter.shows != nil {
		p.reporter.shows(w)
	}
	if p.store == nil {
		return
	}
	v := p.presence.Found.Version
	if v != nil && !v.Same(p.local.Running) {
		p.reporter.tellWait(p.reporter.waitStatus(v, w))
	}
}

// orphanWait names the host: others print it, too.
func orphanWait(node string, orphan *apply.OrphanError) *lock.Wait {
	return &lock.Wait{
		Kind:   state.WaitOrphan,
		Gate:   "a command that outlived its pull",
		Reason: orphan.What(),
		Remedy: state.Act(orphan.ClearOn(node)),
		Since:  time.Now(),
	}
}

// awaitOrphans waits for commands of a pull that was killed, as long as the pull may wait in all: to start them once
// more beside themselves would make two.
func (p *pull) awaitOrphans(ctx context.Context) error {
	err := p.outside.Host.Orphans(p.notes())
	orphan, ok := errors.AsType[*apply.OrphanError](err)
	if !ok {
		return err
	}
	p.waitsForOrphan(orphan)
	return p.waits.within(ctx, func(ctx context.Context) error { // one that just lost its pull is about to end
		for {
			err := p.outside.Host.Orphans(p.notes())
			if !errors.As(err, &orphan) {
				return err
			}
			select {
			case <-ctx.Done():
				return err
			case <-time.After(50 * time.Millisecond):
			}
		}
	})
}
