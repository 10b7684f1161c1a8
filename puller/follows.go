package puller

import "context"

// Follows reports a commit that this host's own repository follows: it is in the history of own, which is the
// repository's head, or of where the repository went on to since; or, where tags are followed, one of them stands on
// it. It returns the head with the tag that is followed there, and never one that somebody else named. A commit that
// the remote does not show is not refused: Snapshot says so to who needs it. One that is followed and not signed as the
// source demands is an *UnverifiedError.
func (p *Puller) Follows(ctx context.Context, own, h Head) (found Head, followed bool, err error) {
	over, err := p.turn(ctx)
	if err != nil {
		return h, false, err
	}
	defer over()
	r, err := p.repository(h.Repo)
	if err != nil {
		return h, false, err
	}
	if err := h.check(); err != nil || own.Commit == h.Commit {
		return own, err == nil, err
	}
	h.Tag = ""
	var o offer // nothing: the remote was not asked, or did not answer
	var release tag
	if r.src.tagged() || !r.store.holds(h.hash()) {
		var l listing
		if l, o, err = r.list(ctx); err == nil {
			release = r.release(l, h.Commit)
			h.Tag = release.name
			_, err = r.obtain(ctx, o, release, h.hash())
		}
		if err != nil && !r.store.holds(h.hash()) {
			return h, h.Tag != "" || !l.shows(h.Commit), ctx.Err()
		}
	}
	rel, err := r.relation(ctx, own.Commit, h.Commit)
	if err == nil && rel == Newer && h.Tag == "" {
		rel, err = r.fromRemote(ctx, o, h)
	}
	followed = h.Tag != "" || rel == Older || rel == Same
	if followed && err == nil {
		err = r.verify(ctx, h.hash(), release)
	}
	return h, followed, err
}

// fromRemote is what a commit is, seen from where the remote is now: at what it offered, or, where it was not asked
// yet, offers. A remote that cannot be asked confirms nothing.
func (r *repository) fromRemote(ctx context.Context, o offer, h Head) (rel Relation, err error) {
	if o.commit == "" {
		_, o, err = r.list(ctx)
	}
	if err == nil {
		_, err = r.obtain(ctx, o, tag{}, o.hash())
	}
	if err != nil {
		return Unknown, ctx.Err()
	}
	return r.relation(ctx, o.commit, h.Commit)
}

// release is the newest of the followed tags on a commit; zero if there is none.
func (r *repository) release(l listing, commit string) (newest tag) {
	if !r.src.tagged() {
		return newest
	}
	for _, t := range l.tags {
		if t.annotated && t.commit == commit && r.src.matches(t.name) &&
			(newest.name == "" || r.src.newer(t.name, newest.name)) {
			newest = t
		}
	}
	return newest
}

// Follow says what a repository follows, for messages.
func (p *Puller) Follow(repo string) string {
	r, err := p.repository(repo)
	if err != nil {
		return repo
	}
	return r.src.follow()
}
