package agent

import (
	"context"
	"slices"
	"time"

	"github.com/pullet/pullet/internal/safetext"
	"github.com/pullet/pullet/puller"
	"github.com/pullet/pullet/state"
)

// describe adds to the commits of a version what people know them by. A commit that cannot be read here has none: it is
// the version all the same.
func (a *agreement) describe(ctx context.Context, v *state.Version) {
	v.Commits = slices.Clone(v.Commits)
	for i := range v.Commits {
		c := &v.Commits[i]
		subject, author, err := a.outside.Repositories.Describe(ctx, puller.Head{Repo: c.Repo, Commit: c.Commit})
		if err != nil {
			a.log.WithError(err).Debug("the subject of a commit is not known")
			continue
		}
		c.Subject, c.Author = safetext.Line(subject, state.MaxSubject), safetext.Line(author, state.MaxSubject)
	}
}

// skips tells the fleet of a newer commit that it does not take, and why. Of many nodes that see it one tells.
func (a *agreement) skips(ctx context.Context, current, next *state.Version, kind, reason string) {
	one := &state.Skipped{Version: *next, Kind: kind}
	one.By, one.At, one.Reason, one.Bad, one.Rewound = a.config.Node.Name, time.Now().UTC(), reason, nil, nil
	if current != nil {
		one.Over = current.Rollout()
	}
	if a.presence.Found.Skipped.Says(one) {
		return
	}
	a.describe(ctx, &one.Version)
	a.tellSkipped(ctx, one)
}

// skipsNothing takes back what this node told before, where the fleet is at the newest commit that it sees.
func (a *agreement) skipsNothing(ctx context.Context, current *state.Version) {
	if was := a.presence.Found.Skipped; was != nil && was.By == a.config.Node.Name && was.Over == current.Rollout() {
		a.tellSkipped(ctx, nil)
	}
}

// tellSkipped writes it. A fleet that cannot be told goes on all the same.
func (a *agreement) tellSkipped(ctx context.Context, one *state.Skipped) {
	ctx, cancel := afterwards(ctx)
	defer cancel()
	if err := a.store.Explain(a.store.Versions.Skip(ctx, a.presence, one)); err != nil {
		a.log.WithError(err).Warn("that a newer commit is skipped could not be recorded")
	}
}
