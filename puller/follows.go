package puller

import "context"

// Follows reports a commit that this host's own repository follows: it is in the history of the repository's own head, or, where tags are
// followed, one of them stands on it. It returns the head with the tag that the repository itself has there, and never one that somebody else named.
// A commit that the repository does not have is not refused: Snapshot says so to who needs it.
func (p *Puller) Follows(ctx context.Context, own, h Head) (Head, bool, error) {
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
	if !r.store.holds(h.hash()) {
		if _, err := r.seek(ctx, h); err != nil && !r.store.holds(h.hash()) {
			return h, true, ctx.Err()
		}
	}
	h.Tag = ""
	if r.src.tagged() {
		if l, _, err := r.look(ctx); err == nil {
			for _, t := range l.tags {
				if t.annotated && t.commit == h.Commit && r.src.matches(t.name) && (h.Tag == "" || r.src.newer(t.name, h.Tag)) {
					h.Tag = t.name
				}
			}
		}
	}
	rel, err := r.relation(ctx, own.Commit, h.Commit)
	return h, h.Tag != "" || rel == Older || rel == Same, err
}

// Follow says what a repository follows, for messages.
func (p *Puller) Follow(repo string) string {
	r, err := p.repository(repo)
	if err != nil {
		return repo
	}
	return r.src.follow()
}
