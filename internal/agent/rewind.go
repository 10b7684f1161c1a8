package agent

import (
	"context"
	"errors"
	"fmt"

	"github.com/pullet/pullet/puller"
	"github.com/pullet/pullet/state"
)

// accepted takes rewritten histories that an operator accepted, here and now or for the fleet before, and asks the
// repositories again.
func (a *agreement) accepted(ctx context.Context, current *state.Version, own []puller.Head) ([]puller.Head, error) {
	changed := false
	for _, h := range own {
		from, to := refusedCommits(h.Problem)
		if to == "" {
			continue
		}
		by := a.by
		if !a.rewind {
			if by = a.acceptedBy(ctx, current, h, to); by == "" {
				continue
			}
		}
		if err := a.outside.Repositories.Accept(ctx, h.Repo, to, by); err != nil {
			return nil, err
		}
		moved := "from " + state.Short(from) + " to " + state.Short(to)
		if a.rewind {
			a.rewound = "rewind accepted " + moved
			a.out.warn(fmt.Errorf(
				"repository %q: rewind accepted by %s, %s: the other hosts follow at their next pull; "+
					"if that was a stale mirror, go forward again: pullet rollout start %s, on a host that has it",
				h.Repo,
				by,
				moved,
				state.Short(from),
			))
		} else {
			a.log.WithField("repo", h.Repo).Warnf("follows the rewind %s that %s accepted", moved, by)
		}
		changed = true
	}
	if !changed {
		return own, nil
	}
	return a.outside.Repositories.Pull(ctx)
}

// refusedCommits are the last good commit of a repository and the one that it offers and verification refused; "" where
// none is refused.
func refusedCommits(problem error) (from, to string) {
	var rewritten *puller.RewrittenError
	var behind *puller.BehindError
	switch {
	case errors.As(problem, &rewritten):
		return rewritten.From, rewritten.To
	case errors.As(problem, &behind):
		return behind.From, behind.To
	}
	return "", ""
}

// warnRewound warns where the fleet went back by an accepted rewind, and this host's own remote is still ahead of it:
// one of the two remotes is stale.
func (a *agreement) warnRewound(ctx context.Context, current *state.Version, own []puller.Head) error {
	for _, h := range own {
		at, _ := current.Commit(h.Repo)
		if h.Problem != nil {
			continue
		}
		relation := puller.Unknown
		left, err := a.leftBehind(ctx, current, h)
		if left && err == nil {
			relation, err = a.outside.Repositories.Relate(
				ctx,
				puller.Head{Repo: at.Repo, Commit: at.Commit},
				puller.Head{Repo: h.Repo, Commit: h.Commit},
			)
		}
		if err != nil {
			a.log.WithError(err).Warn("whether the fleet went back could not be found out")
			continue
		}
		if relation == puller.Newer {
			a.out.warn(fmt.Errorf(
				"repository %[1]q: the fleet went back to %[2]s, a rewind that %[3]s accepted, but the remote of this host "+
					"still offers %[4]s: fix this remote; if %[2]s came from a stale mirror, go forward again: pullet rollout "+
					"start %[4]s",
				h.Repo,
				state.Short(at.Commit),
				current.By,
				state.Short(h.Commit),
			))
		}
	}
	return nil
}

// acceptedBy says who accepted for the fleet the rewrite that this node just met: what is offered follows the accepted
// commit, and what the node had does not.
func (a *agreement) acceptedBy(ctx context.Context, current *state.Version, had puller.Head, offered string) string {
	if current == nil {
		return ""
	}
	c, ok := current.RewoundTo(had.Repo)
	if !ok {
		return ""
	}
	follows := func(from, commit string) bool {
		r, err := a.outside.Repositories.Relate(
			ctx,
			puller.Head{Repo: c.Repo, Commit: from},
			puller.Head{Repo: c.Repo, Commit: commit},
		)
		return err == nil && (r == puller.Same || r == puller.Newer)
	}
	at, _ := current.Commit(had.Repo)
	if c.Commit != offered &&
		(!follows(c.Commit, offered) || follows(had.Commit, at.Commit)) { // a tag that moved forward goes to the very commit
		return ""
	}
	return "the fleet (" + current.By + ")"
}

// justAccepted reports a head that this pull accepts over the fleet's own.
func (a *agreement) justAccepted(current *state.Version, h puller.Head) bool {
	c, done := current.RewoundTo(h.Repo)
	return a.rewind && !(done && c.Commit == h.Commit)
}
