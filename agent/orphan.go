package agent

import (
	"time"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/lock"
	"github.com/pullet/pullet/state"
)

// waitsForOrphan tells that the pull waits for a command of one that was killed: here, and the fleet, where others may wait for this node.
func (p *pull) waitsForOrphan(orphan *apply.OrphanError) {
	w := orphanWait(orphan)
	if p.Waiting != nil {
		p.Waiting(w)
	}
	if p.store == nil {
		return
	}
	v := p.presence.Found.Version
	if v != nil && !v.Same(p.local.Running) {
		p.tellWait(p.waitStatus(v, w))
	}
}

func orphanWait(orphan *apply.OrphanError) *lock.Wait {
	return &lock.Wait{Kind: state.WaitOrphan, Gate: "a command that outlived its pull", Reason: orphan.What(), Clear: orphan.Clear(), Since: time.Now()}
}
