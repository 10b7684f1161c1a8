package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/pullet/pullet/lock"
	"github.com/pullet/pullet/puller"
	"github.com/pullet/pullet/state"
)

// keeps is the version to work on while nobody can take the fleet's: the one that runs here.
func (a *agreement) keeps(own []puller.Head, wait *lock.Wait) *state.Version {
	a.noteProblems(own)
	wait.Since = time.Now()
	a.out.awaits(wait)
	return a.local.fallback()
}

// takes is the fleet's version as it was read at a revision, or the one that runs here where this host refuses it.
func (a *agreement) takes(
	ctx context.Context,
	current *state.Version,
	rev int64,
	own []puller.Head,
) (*state.Version, error) {
	a.agrees(rev)
	a.out.looked(rev)
	var refused *RefusedVersionError
	if err := a.doubt(ctx, current, own); errors.As(err, &refused) {
		return a.refuses(own, refused), nil
	} else if err != nil {
		return nil, err
	}
	a.noteProblems(own)
	a.local.NoTrouble("")
	return current, a.warnRewound(ctx, current, own)
}

// refuses is the version to work on instead of one that the host does not take: the one that runs here. There is none
// where that is made of a repository that the host does not list any more.
func (a *agreement) refuses(own []puller.Head, refused *RefusedVersionError) *state.Version {
	a.noteProblems(own)
	a.out.doubts(refused)
	a.local.Trouble("", state.Trouble{Kind: state.WaitRefused, Why: refused.What(), Clear: refused.Clear()})
	running := a.local.fallback()
	unlisted := func(repo string) bool { return !slices.Contains(repositoriesOf(own), repo) }
	if running != nil && slices.ContainsFunc(repositoriesOf(heads(running)), unlisted) {
		return nil
	}
	return running
}

// withoutFleet is the version to work on while the store is away: the one that runs here.
func (a *agreement) withoutFleet(own []puller.Head) *state.Version {
	a.noteProblems(own)
	running := a.local.Running
	if running == nil || running.ID != puller.Version(own) {
		next := state.Version{ID: puller.Version(own), Release: puller.Release(own)}
		a.out.awaits(awayWait(&next, a.wentBack))
	}
	return a.local.fallback()
}

// awayWait is the wait for a fleet's record that is away, or that went back, with a version that is new here.
func awayWait(next *state.Version, wentBack bool) *lock.Wait {
	w := &lock.Wait{
		Kind:   state.WaitEtcd,
		Gate:   "etcd",
		Reason: fmt.Sprintf("it is unreachable, and version %s is new here", next),
		Remedy: state.Act("see why: pullet doctor"),
		Since:  time.Now(),
	}
	if wentBack {
		w.Kind = state.WaitStore
		w.Reason = fmt.Sprintf("the fleet's record there was restored or replaced, and version %s is new here", next)
		w.Remedy = state.Act(
			"look whether anybody is in the middle of an upgrade, then run: pullet rollout resume --store",
		)
	}
	return w
}
