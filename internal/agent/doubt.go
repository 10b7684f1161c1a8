package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pullet/pullet/puller"
	"github.com/pullet/pullet/state"
)

// RefusedVersionError says that this host does not take the fleet's version: its own repositories do not confirm it.
type RefusedVersionError struct {
	Version *state.Version
	Commit  string
	Why     string
	Offered bool          // the host's own remote offers it, by a rewrite that the host refuses
	Own     []puller.Head // of this host's repositories, where the version is of other ones; then it says nothing else

	Unverified *puller.UnverifiedError // it is not signed as this host demands; then it says nothing else
}

func (e *RefusedVersionError) Error() string { return e.What() + "; " + e.Clear() }

// What says what is refused, without what helps.
func (e *RefusedVersionError) What() string {
	by := e.Version.By
	if by == "" {
		by = "somebody"
	}
	why := fmt.Sprintf("commit %s %s", state.Short(e.Commit), e.Why)
	if e.Unverified != nil {
		why = e.Unverified.Fault()
	}
	if e.Own != nil {
		why = fmt.Sprintf("its repositories are %s, and this host's configuration lists %s",
			strings.Join(repositoriesOf(heads(e.Version)), ", "), strings.Join(repositoriesOf(e.Own), ", "))
	}
	return fmt.Sprintf("the fleet's version %s, set by %s, is refused by this host: %s",
		state.Short(e.Version.ID), by, why)
}

// Clear is the command that helps.
func (e *RefusedVersionError) Clear() string {
	if e.Own != nil {
		return "list the same repositories in the same order on every host; if this list is the new one: " +
			"pullet rollout start " + e.revision() + ", then pullet rollout follow"
	}
	if e.Offered { // undo would take back the hosts that run it
		return "if the rewrite is intended: pullet pull --accept-rewind"
	}
	if e.Unverified != nil {
		return e.Unverified.Clear() + "; to leave the version: pullet rollout undo"
	}
	return "to leave it: pullet rollout undo"
}

// revision names this host's list to rollout start: by a repository that the version lacks, where there is one.
func (e *RefusedVersionError) revision() string {
	if len(e.Own) == 1 {
		return state.Short(e.Own[0].Commit)
	}
	lacks := func(h puller.Head) bool { _, has := e.Version.Commit(h.Repo); return !has }
	h := e.Own[max(0, slices.IndexFunc(e.Own, lacks))]
	return h.Repo + "=" + state.Short(h.Commit)
}

// repositoriesOf are the names of the repositories that heads are of.
func repositoriesOf(of []puller.Head) (names []string) {
	for _, h := range of {
		names = append(names, h.Repo)
	}
	return names
}

// otherRepositories reports a version that is made of other repositories than this host lists, or in another order: it
// is another state. The host neither takes it nor replaces it by a version of its own, which hosts with the other list
// would replace in turn.
func otherRepositories(v *state.Version, own []puller.Head) bool {
	return !slices.Equal(repositoriesOf(heads(v)), repositoriesOf(own))
}

// doubt says why this host does not take a version that the fleet's record names: who can write there chooses the
// moment of a change, and not what is applied. A commit must be in what the host's own repository follows, and must not
// go back behind what the host runs. It may go back, within what is followed, where the record says that what runs here
// was undone, or that an operator accepted a rewrite to that commit or one before it.
func (a *agreement) doubt(ctx context.Context, v *state.Version, own []puller.Head) error {
	if len(v.Commits) == 0 || puller.Version(heads(v)) != v.ID {
		return &RefusedVersionError{Version: v, Commit: v.ID, Why: "is not what the version's repositories are at"}
	}
	if otherRepositories(v, own) {
		return &RefusedVersionError{Version: v, Own: own}
	}
	for _, h := range own {
		c, _ := v.Commit(h.Repo)
		to, followed, err := a.outside.Repositories.Follows(ctx, h, puller.Head{Repo: c.Repo, Commit: c.Commit})
		if unverified, ok := errors.AsType[*puller.UnverifiedError](err); ok {
			return &RefusedVersionError{Version: v, Commit: c.Commit, Unverified: unverified}
		}
		if err != nil {
			return err
		}
		if !followed {
			offered, err := a.offers(ctx, h, c.Commit)
			if err != nil {
				return err
			}
			why := fmt.Sprintf("is not in the history of %s of repository %q", a.outside.Repositories.Follow(h.Repo), h.Repo)
			return &RefusedVersionError{Version: v, Commit: c.Commit, Why: why, Offered: offered}
		}
		if back, err := a.goesBack(ctx, v, h, to); back || err != nil {
			if err != nil {
				return err
			}
			why := "goes back behind what this host runs (" + a.local.Running.String() + "), and nobody undid that"
			return &RefusedVersionError{Version: v, Commit: c.Commit, Why: why}
		}
	}
	return nil
}

// offers reports a commit in the history of the rewritten branch that this host's remote offers and the host refuses.
func (a *agreement) offers(ctx context.Context, own puller.Head, commit string) (bool, error) {
	_, to := refusedCommits(own.Problem)
	if to == "" {
		return false, nil
	}
	r, err := a.outside.Repositories.Relate(
		ctx,
		puller.Head{Repo: own.Repo, Commit: commit},
		puller.Head{Repo: own.Repo, Commit: to},
	)
	return r == puller.Same || r == puller.Newer, err
}

// goesBack reports a commit that does not come after the one that runs here, without a record that allows it.
func (a *agreement) goesBack(ctx context.Context, v *state.Version, own, to puller.Head) (bool, error) {
	running := a.local.Running
	if running == nil || slices.Contains(v.Bad, running.ID) {
		return false, nil
	}
	at, ok := running.Commit(own.Repo)
	if !ok {
		return false, nil
	}
	from := puller.Head{Repo: at.Repo, Commit: at.Commit, Tag: at.Tag}
	for _, pair := range [][2]puller.Head{
		{from, to}, {{Repo: from.Repo, Commit: from.Commit}, {Repo: to.Repo, Commit: to.Commit}},
	} {
		relation, err := a.outside.Repositories.Relate(ctx, pair[0], pair[1])
		if err != nil || relation == puller.Newer || relation == puller.Same || relation == puller.Unknown {
			return false, err
		}
	}
	accepted, ok := v.RewoundTo(own.Repo)
	if !ok {
		return true, nil
	}
	relation, err := a.outside.Repositories.Relate(
		ctx,
		puller.Head{Repo: accepted.Repo, Commit: accepted.Commit},
		puller.Head{Repo: to.Repo, Commit: to.Commit},
	)
	return relation != puller.Same && relation != puller.Newer, err
}
