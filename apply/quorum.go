package apply

import "context"

// keepsQuorum waits until this host's member of the fleet's datastore may be away.
func (g *gating) keepsQuorum(ctx context.Context) bool {
	var err error
	switch {
	case g.s.x.options.Gates != nil:
		g.endQuorum, err = g.s.x.options.Gates.Quorum(ctx, g.s.step.gated())
	case g.s.step.Options.KeepQuorum:
		err = &PendingError{Reason: "waiting for the members of the datastore: " + noStore}
	}
	if err != nil {
		g.s.waitOrFail(err)
	}
	return err == nil
}

// quorumKept lets other hosts take their members of the datastore away.
func (g *gating) quorumKept() {
	if g.endQuorum != nil {
		g.endQuorum(g.boots)
	}
}
