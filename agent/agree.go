package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/lock"
	"github.com/pullet/pullet/puller"
	"github.com/pullet/pullet/state"
)

// join opens the fleet's record and registers the node. A store that does not answer is got around: the pull goes on with what the
// node knows.
func (p *pull) join(ctx context.Context) error {
	began := time.Now()
	store, err := p.openStore(ctx)
	var away *state.UnreachableError
	if errors.As(err, &away) {
		p.goOnWithout(err, began)
		return nil
	}
	if err != nil {
		return err
	}
	accepted := p.local.Store.Accepted
	if !p.config.alone() {
		var back *state.WentBackError
		p.local.Store, err = store.Guard(ctx, p.config.Node.Name, p.local.Store)
		if err = store.Explain(err); errors.As(err, &back) || errors.As(err, &away) {
			p.goOnWithout(err, began)
			p.warnUntold(errors.Join(p.putBack(ctx, store, back, p.local.Held), p.doubts(ctx, store, back, p.untilNext())))
			return p.dropStore()
		}
		if err != nil {
			return err
		}
	}
	self := p.node()
	node := state.Node{
		Name: self.Name, Labels: self.Labels, Role: self.Role(), LastSeen: time.Now().UTC(), Agent: p.build, RepoVars: !p.hasOwnVars(),
	}
	if p.local.Running != nil {
		node.Running = p.local.Running.ID
	}
	owner, err := p.owner()
	if err != nil {
		return err
	}
	presence, err := store.Register(ctx, node, owner, p.facts(), p.leaseTime())
	if err == nil && p.local.Store.Accepted != accepted {
		err = p.acceptedWithout(ctx, store, presence)
	}
	if err == nil && p.loop {
		err = p.countFleet(ctx, store)
	}
	if err = store.Explain(err); errors.As(err, &away) {
		p.goOnWithout(err, began)
		return p.dropStore()
	}
	if err != nil {
		return err
	}
	p.away.ends()
	p.store, p.presence, p.reporter.before, p.out.seen = store, presence, presence.Found.Waits, presence.Revision
	p.local.presence = presence
	p.local.Pulls(node.LastSeen, apply.Boot()) // the next pull tells from it how long the gap was
	if err := p.local.save(); err != nil {
		return err
	}
	p.renew(ctx, presence)
	return nil
}

// goOnWithout says that the pull goes on without the fleet's record. The loop says it once.
func (p *pull) goOnWithout(err error, since time.Time) {
	var back *state.WentBackError
	p.wentBack = errors.As(err, &back)
	if p.quiet = p.loop && p.away.lasts(); p.loop && p.away.begins(err, since) {
		return
	}
	p.out.Warnings = append(p.out.Warnings, fmt.Errorf("%w; until then no new version and no gated step, but drift is corrected", err))
}

// leaseTime is how long the node counts as alive after this pull: until the next one is surely overdue.
func (p *pull) leaseTime() time.Duration {
	if p.loop {
		return agentLease
	}
	return p.untilNext()
}

// untilNext is how long it takes until the next pull is surely overdue.
func (p *pull) untilNext() time.Duration {
	interval := max(p.config.Agent.Interval.Std(), min(p.local.Cadence(apply.Boot()), maxInterval))
	return max(pullLease, min(3*interval, interval+overdue))
}

// The times to live of leases: an agent renews its own, a single pull leaves it to run out.
const (
	agentLease  = 60 * time.Second
	pullLease   = 90 * time.Second
	maxInterval = 24 * time.Hour
	overdue     = 2 * time.Hour // no pull is waited for longer than that: a host that pulls once a day would be said to live for three
)

// renew keeps the lease alive until the next pull replaces it, or the agent is closed: also while a pull that was told to stop finishes its step.
func (p *pull) renew(ctx context.Context, presence *state.Presence) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.leased != nil {
		p.leased()
	}
	p.leased = cancel
	seen, store, alone, next := p.local.Store, p.store, p.config.alone(), p.untilNext()
	store.KeepAlive(ctx, presence, p.atWork, func(doubtful bool) {
		if !alone && (doubtful || len(p.holds()) > 0) { // a restored etcd may know the lease of an earlier pull, and be ahead again of what this node saw
			p.compare(ctx, store, presence.Seen(seen), next)
		}
	})
}

// agree finds the version that the fleet works on, and proposes a newer one when this node sees it first. It returns no version when
// there is nothing that the node can do now; the outcome says why.
func (p *pull) agree(ctx context.Context, own []puller.Head) (*state.Version, error) {
	if p.store == nil {
		return p.withoutFleet(own), nil
	}
	refused := map[string]bool{} // versions that are not proposed now
	found := p.presence.Found
	is, broken := state.Proposed{Version: found.Version, Rev: found.VersionRev}, found.VersionErr
	for {
		if wait := lock.Unreadable("the fleet's version", broken); wait != nil {
			return p.keeps(own, wait), nil
		}
		if broken != nil {
			return nil, broken
		}
		current, rev := is.Version, is.Rev
		p.current = current
		var err error
		if own, err = p.accepted(ctx, current, own); err != nil {
			return nil, err
		}
		next, err := p.newer(ctx, current, own)
		if err != nil {
			return nil, err
		}
		stays, err := p.stays(ctx, current, next)
		if err != nil {
			return nil, err
		}
		named := next.Same(current) && p.saysMore(current, next) && p.doubt(ctx, current, own) == nil
		if stays != "" {
			p.skips(ctx, current, next, stays, "")
		}
		if current != nil && (next.Same(current) && !named || refused[next.ID] || stays != "") {
			if next.Same(current) {
				p.skipsNothing(ctx, current)
			}
			return p.takes(ctx, current, rev, own)
		}
		if !next.Same(current) {
			may, err := p.mayPropose(ctx, current, next)
			switch {
			case err != nil:
				return nil, err
			case !may && current == nil:
				return nil, p.tellConfigured(ctx, next)
			case !may:
				refused[next.ID] = true
				continue
			}
		}
		p.describe(ctx, next)
		is, broken = p.store.Propose(ctx, *next, current, rev)
	}
}

// newer is the version that takes the newer commit of the fleet's and this node's own, for each repository: never back in any.
func (p *pull) newer(ctx context.Context, current *state.Version, own []puller.Head) (*state.Version, error) {
	next := &state.Version{By: p.config.Node.Name, At: time.Now().UTC()}
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
		if !known || p.justAccepted(current, h) {
			continue
		}
		theirs := puller.Head{Repo: at.Repo, Commit: at.Commit, Tag: at.Tag}
		relation, err := p.puller.Relate(ctx, theirs, h)
		if err != nil {
			return nil, err
		}
		switch {
		case relation == puller.Newer && !p.leftBehind(ctx, current, h):
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
	if p.AcceptRewind {
		next.Rewound, next.By, next.Reason = leaving(current, next.Commits), p.By, p.rewound
	}
	next.ID, next.Release = puller.Version(best), puller.Release(best)
	if !next.Same(current) {
		return next, nil
	}
	same := *current // a tag that is seen later only names the version
	if same.Release == "" {
		same.Release = next.Release
	}
	if slices.ContainsFunc(own, func(h puller.Head) bool { return p.justAccepted(current, h) }) { // hosts that refuse it take it from here on
		same.Rewound = next.Rewound
	}
	return &same, nil
}

// saysMore reports a version that is the fleet's, with more to say of it: a tag that was seen later, or an operator's word that a rewrite is accepted.
func (p *pull) saysMore(current, next *state.Version) bool {
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

// leftBehind reports a commit that the fleet left when a rewrite was accepted: a mirror that still serves it does not bring it back.
func (p *pull) leftBehind(ctx context.Context, current *state.Version, own puller.Head) bool {
	c, ok := current.RewoundTo(own.Repo)
	if !ok || c.Left == "" || c.Left == c.Commit {
		return false
	}
	r, err := p.puller.Relate(ctx, puller.Head{Repo: own.Repo, Commit: own.Commit}, puller.Head{Repo: own.Repo, Commit: c.Left})
	return err == nil && (r == puller.Same || r == puller.Newer)
}
