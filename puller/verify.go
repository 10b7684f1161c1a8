package puller

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"
)

// verify says whether a commit may be used, with the followed tag on it: nil, an *UnverifiedError, or an error of this
// node. It needs no network, unless the store lacks history. What it lets pass is recorded, so the next time costs
// nothing, also when a key was removed or has expired by then.
func (r *repository) verify(ctx context.Context, commit plumbing.Hash, t tag) error {
	if r.rec.verified(r.src, commit, t) {
		return nil
	}
	v, err := newVerifier(r.src, r.store, r.rec)
	if err == nil {
		err = r.obtainTag(ctx, commit, t)
	}
	if err != nil {
		return err
	}
	err = v.verify(ctx, commit, t)
	if errors.Is(err, errCut) && r.store.shallow() {
		if err := r.deepen(ctx); err != nil {
			return err
		}
		err = v.verify(ctx, commit, t)
	}
	if err != nil || !v.looked && r.rec.Verified.Since == r.src.Verify.Since { // it is since, or was verified
		return err
	}
	next := r.rec
	next.Verified = next.Verified.with(r.src, commit, t, v.settled)
	return r.save(next)
}

// obtainTag fetches the annotated tag on a commit, where the store has the commit only.
func (r *repository) obtainTag(ctx context.Context, commit plumbing.Hash, t tag) error {
	if r.src.verifyMode() != verifyTag || t.id.IsZero() {
		return nil
	}
	_, err := r.store.object(plumbing.TagObject, t.id, maxCommit)
	if !errors.Is(err, plumbing.ErrObjectNotFound) {
		return err
	}
	return r.fetch(ctx, offer{commit: commit.String(), tag: t.name, id: t.id, tagID: t.id}, tag{})
}

// verified reports a commit, and a tag on it that is followed, that need no look at their signatures. A tag without
// an id is none.
func (rec record) verified(s Source, commit plumbing.Hash, t tag) bool {
	known, mode := rec.Verified, s.verifyMode()
	switch {
	case !s.Verify.on():
		return true
	case known.Mode != mode || known.Since != s.Verify.Since || !slices.Contains(known.Commits, commit.String()):
		return false
	}
	return mode != verifyTag || t.id.IsZero() || known.Tags[t.name] == t.id.String()
}

// verifyHead is verify for a commit that somebody named, such as the fleet's record.
func (r *repository) verifyHead(ctx context.Context, h Head) error {
	var t tag
	if r.src.verifyMode() == verifyTag && !r.rec.verified(r.src, h.hash(), t) {
		l, _, err := r.list(ctx)
		if err != nil {
			return err
		}
		t = r.release(l, h.Commit)
	}
	return r.verify(ctx, h.hash(), t)
}

// maxVerified is how many commits are remembered, for a fleet that goes back to one.
const maxVerified = 32

// verification is what was verified, in the mode in which it was.
type verification struct {
	Mode    string   `json:"mode,omitempty"`
	Since   string   `json:"since,omitempty"`   // that all of them have in their histories
	Commits []string `json:"commits,omitempty"` // newest last
	// Tags are the annotated tags that were verified: their ids by their names.
	Tags map[string]string `json:"tags,omitempty"`
}

// in are the commits that were verified in a mode.
func (v verification) in(mode string) []string {
	if v.Mode != mode {
		return nil
	}
	return v.Commits
}

// with adds a commit, and the tag on it that was verified. A commit that is older than the last one does not become the
// base of what is new.
func (v verification) with(s Source, commit plumbing.Hash, t tag, older bool) verification {
	mode := s.verifyMode()
	if v.Mode != mode {
		v = verification{Mode: mode}
	}
	if v.Since != s.Verify.Since { // nobody looked whether the others have it
		v.Since, v.Commits = s.Verify.Since, nil
	}
	commits := slices.DeleteFunc(slices.Clone(v.Commits), func(id string) bool { return id == commit.String() })
	place := len(commits)
	if older {
		place = max(0, place-1)
	}
	commits = slices.Insert(commits, place, commit.String())
	v.Commits = commits[max(0, len(commits)-maxVerified):]
	if mode == verifyTag {
		v.Tags = maps.Clone(v.Tags)
		if v.Tags == nil {
			v.Tags = map[string]string{}
		}
		v.Tags[t.name] = t.id.String()
	}
	return v
}
