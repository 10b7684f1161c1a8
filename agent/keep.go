package agent

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pullet/pullet/lock"
	"github.com/pullet/pullet/puller"
	"github.com/pullet/pullet/state"
)

// keeps is the version to work on while nobody can take the fleet's: the one that runs here.
func (p *pull) keeps(own []puller.Head, wait *lock.Wait) *state.Version {
	p.noteProblems(own)
	wait.Since = time.Now()
	p.out.Wait = wait
	return p.local.fallback()
}

// takes is the fleet's version as it was read at a revision, or the one that runs here where this host refuses it.
func (p *pull) takes(ctx context.Context, current *state.Version, rev int64, own []puller.Head) (*state.Version, error) {
	p.agreed, p.out.seen = rev, max(rev, p.out.seen)
	var refused *RefusedVersionError
	if err := p.doubt(ctx, current, own); errors.As(err, &refused) {
		return p.refuses(own, refused), nil
	} else if err != nil {
		return nil, err
	}
	p.noteProblems(own)
	p.local.NoTrouble("")
	return current, p.warnRewound(ctx, current, own)
}

// refuses is the version to work on instead of one that the host does not take: the one that runs here.
func (p *pull) refuses(own []puller.Head, refused *RefusedVersionError) *state.Version {
	p.noteProblems(own)
	p.out.Refused, p.out.doubted = append(p.out.Refused, refused), refused.Version.ID
	p.local.Trouble("", state.Trouble{Kind: state.WaitRefused, Why: refused.What(), Clear: refused.Clear()})
	return p.local.fallback()
}

// withoutFleet is the version to work on while the store is away: the one that runs here.
func (p *pull) withoutFleet(own []puller.Head) *state.Version {
	p.noteProblems(own)
	running := p.local.Running
	if running == nil || running.ID != puller.Version(own) {
		next := state.Version{ID: puller.Version(own), Release: puller.Release(own)}
		p.out.Wait = &lock.Wait{
			Kind: state.WaitEtcd, Gate: "etcd", Reason: fmt.Sprintf("it is unreachable, and version %s is new here", &next), Remedy: state.Act("see the warning above"), Since: time.Now(),
		}
		if p.wentBack {
			p.out.Wait.Kind = state.WaitStore
			p.out.Wait.Reason = fmt.Sprintf("the fleet's record there was restored or replaced, and version %s is new here", &next)
			p.out.Wait.Remedy = state.Act("look whether anybody is in the middle of an upgrade, then run: pullet rollout resume --store")
		}
	}
	return p.local.fallback()
}
