package agent

import (
	"context"
	"slices"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/pullet/pullet/lock"
	"github.com/pullet/pullet/puller"
	"github.com/pullet/pullet/state"
)

// agreement finds the version that the fleet works on, and proposes newer ones.
type agreement struct {
	*self
	*joined
	local     *local
	compiler  *compiler
	announcer *announcer
	reporter  *reporter
	out       *Outcome
	log       *logrus.Entry
	by        string // who asked, for the record
	rewind    bool   // accept a rewritten history, see Options
	rewound   string // the rewind that this pull accepted, for the record
}

// agree finds the version that the fleet works on, and proposes a newer one when this node sees it first. It returns no
// version when there is nothing that the node can do now; the outcome says why.
func (a *agreement) agree(ctx context.Context, own []puller.Head) (*state.Version, error) {
	if a.store == nil {
		return a.withoutFleet(own), nil
	}
	refused := map[string]bool{} // versions that are not proposed now
	found := a.presence.Found
	is, broken := state.Proposed{Version: found.Version, Rev: found.VersionRev}, found.VersionErr
	for {
		if wait := lock.Unreadable("the fleet's version", broken); wait != nil {
			return a.keeps(own, wait), nil
		}
		if broken != nil {
			return nil, broken
		}
		a.reads(is.Version)
		seen, err := a.sees(ctx, is.Version, own)
		if err != nil {
			return nil, err
		}
		own = seen.own
		switch seen.decide(refused) {
		case takes:
			if seen.next.Same(seen.current) {
				a.skipsNothing(ctx, seen.current)
			}
			return a.takes(ctx, seen.current, is.Rev, own)
		case proposes:
			may, err := a.mayPropose(ctx, seen.current, seen.next)
			switch {
			case err != nil:
				return nil, err
			case !may && seen.current == nil:
				return nil, a.reporter.tellConfigured(ctx, seen.next)
			case !may:
				refused[seen.next.ID] = true
				continue
			}
		}
		a.describe(ctx, seen.next)
		is, broken = a.store.Versions.Propose(ctx, *seen.next, seen.current, is.Rev)
	}
}

// sighting is what a node sees when it agrees with the fleet.
type sighting struct {
	own     []puller.Head  // its repositories, with the rewrites that an operator accepted
	current *state.Version // the fleet's; nil: it has none
	next    *state.Version // the newest of both
	more    bool           // next is current, and there is more to say of it
	stays   string         // why the fleet does not follow to next now; "" is no reason
}

// move is what a node does about the newest version that it sees.
type move int

const (
	takes    move = iota // the fleet's version as it is
	names                // the fleet's version, of which it says more
	proposes             // the newer one
)

// decide is what the node does. It does not propose what it refused before.
func (s *sighting) decide(refused map[string]bool) move {
	switch {
	case s.current == nil:
		return proposes
	case refused[s.next.ID] || s.stays != "":
		return takes
	case s.more:
		return names
	case s.next.Same(s.current):
		return takes
	}
	return proposes
}

// sees looks at the fleet's version and at this node's repositories. It takes rewritten histories that an operator
// accepted, and tells the fleet which newer commit it does not follow.
func (a *agreement) sees(ctx context.Context, current *state.Version, own []puller.Head) (s *sighting, err error) {
	s = &sighting{current: current}
	if s.own, err = a.accepted(ctx, current, own); err != nil {
		return nil, err
	}
	if s.next, err = a.newer(ctx, current, s.own); err != nil {
		return nil, err
	}
	if s.stays, err = a.stays(ctx, current, s.next); err != nil {
		return nil, err
	}
	if s.stays != "" {
		a.skips(ctx, current, s.next, s.stays, "")
	}
	s.more = s.next.Same(current) && saysMore(current, s.next) && a.doubt(ctx, current, s.own) == nil
	return s, nil
}

// newer is the version that takes the newer commit of the fleet's and this node's own, for each repository: never back
// in any. Only an operator moves a fleet to other repositories, and a host that is a fleet of its own.
func (a *agreement) newer(ctx context.Context, current *state.Version, own []puller.Head) (*state.Version, error) {
	if current != nil && !a.config.alone() && otherRepositories(current, own) {
		return current, nil
	}
	next := &state.Version{By: a.config.Node.Name, At: time.Now().UTC()}
	if current != nil {
		next.Previous, next.Rewound, next.Bad = current.ID, current.Rewound, current.Bad
	}
	best := make([]puller.Head, len(own))
	for i, h := range own {
		best[i] = h
		if current == nil {
			continue
		}
		at, known := current.Commit(h.Repo)
		if !known || a.justAccepted(current, h) {
			continue
		}
		theirs := puller.Head{Repo: at.Repo, Commit: at.Commit, Tag: at.Tag}
		left := false
		relation, err := a.outside.Repositories.Relate(ctx, theirs, h)
		if err == nil && relation == puller.Newer {
			left, err = a.leftBehind(ctx, current, h)
		}
		if err != nil {
			return nil, err
		}
		switch {
		case relation == puller.Newer && !left && !isRewrite(h.Problem): // else other hosts refuse it
		case relation == puller.Same:
			if h.Tag == "" {
				best[i].Tag = at.Tag
			}
		default:
			best[i] = theirs
		}
	}
	for _, h := range best {
		next.Commits = append(next.Commits, state.Commit{Repo: h.Repo, Commit: h.Commit, Tag: h.Tag})
	}
	if a.rewind {
		next.Rewound, next.By, next.Reason = leaving(current, next.Commits), a.by, a.rewound
	}
	next.ID, next.Release = puller.Version(best), puller.Release(best)
	if !next.Same(current) {
		return next, nil
	}
	same := *current // a tag that is seen later only names the version
	if same.Release == "" {
		same.Release = next.Release
	}
	if slices.ContainsFunc(
		own,
		func(h puller.Head) bool { return a.justAccepted(current, h) },
	) { // hosts that refuse it take it from here on
		same.Rewound = next.Rewound
	}
	return &same, nil
}

// saysMore reports a version that is the fleet's, with more to say of it: a tag that was seen later, or an operator's
// word that a rewrite is accepted.
func saysMore(current, next *state.Version) bool {
	return next.Release != current.Release || !slices.Equal(next.Rewound, current.Rewound)
}

// leaving are the commits of an accepted rewrite with those that they were taken for.
func leaving(current *state.Version, commits []state.Commit) []state.Commit {
	out := append([]state.Commit(nil), commits...)
	for i := range out {
		if current == nil {
			break
		}
		if at, ok := current.Commit(out[i].Repo); ok {
			out[i].Left = at.Commit
		}
	}
	return out
}

// leftBehind reports a commit that the fleet left when a rewrite was accepted: a mirror that still serves it does not
// bring it back.
func (a *agreement) leftBehind(ctx context.Context, current *state.Version, own puller.Head) (bool, error) {
	c, ok := current.RewoundTo(own.Repo)
	if !ok || c.Left == "" || c.Left == c.Commit {
		return false, nil
	}
	r, err := a.outside.Repositories.Relate(
		ctx,
		puller.Head{Repo: own.Repo, Commit: own.Commit},
		puller.Head{Repo: own.Repo, Commit: c.Left},
	)
	return r == puller.Same || r == puller.Newer, err
}
