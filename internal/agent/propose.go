package agent

import (
	"context"
	"errors"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/puller"
	"github.com/pullet/pullet/render"
	"github.com/pullet/pullet/state"
)

// mayPropose prepares a version that nobody proposed yet: it has to compile here and, as far as this node can tell,
// everywhere else. Where it may not be proposed, the outcome says why. A commit that the remote of a repository lacks
// still, or a service that nobody announced, needs nothing but time.
func (a *agreement) mayPropose(ctx context.Context, current, next *state.Version) (bool, error) {
	program, err := a.announcer.prepare(ctx, next)
	if err == nil {
		err = a.compiler.elsewhere(ctx, current, next, program)
	}
	var missing *puller.MissingCommitError
	var mistakes render.ErrorList
	switch {
	case err == nil:
		rollout := program.catalog.Fleet.Rollout
		next.Held, next.Canary = !rollout.Follows(), rollout.HasCanaries()
		a.compiler.ahead = program
		next.Listed = state.ListedBy(members(program.catalog.Inventory))
		return true, nil
	case errors.As(err, &missing) && current != nil:
		return false, nil
	case !errors.As(err, &mistakes):
		return false, err
	}
	if lacking := a.compiler.lacks(ctx, next, mistakes); lacking != nil {
		a.out.lacks(next, lacking)
		a.skips(ctx, current, next, state.SkipLacking, lacking.Gate+": "+lacking.Reason)
		return false, nil
	}
	kind := state.SkipBroken
	if _, compilesHere := errors.AsType[*elsewhereError](err); compilesHere {
		kind = state.SkipElsewhere
	}
	if faultOf(err) == apply.HostFault {
		kind = state.SkipHost
	}
	a.skips(ctx, current, next, kind, faultOf(err).Says(whyBroken(err)))
	a.out.fail(notProposed(next, err))
	return false, nil
}
