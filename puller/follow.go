package puller

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-git/go-git/v5/plumbing"
)

// checkHistory says whether an offer may follow the last good head: nil, or a
// *RewrittenError or *BehindError. The offered commit is in the store.
func (r *repository) checkHistory(ctx context.Context, o offer) error {
	switch {
	case r.rec.Commit == "":
		return nil
	case r.rec.Follow != r.src.follow():
		r.log.Infof("following %s instead of %s: its history starts here", r.src.follow(), r.rec.Follow)
		return nil
	case r.src.tagged():
		return r.checkTag(o)
	}
	rel, err := r.relation(ctx, r.rec.Commit, o.commit)
	switch {
	case err != nil:
		return err
	case rel == Older:
		return &BehindError{Repo: r.src.Name, From: r.rec.Commit, To: o.commit}
	case rel == Diverged:
		how := fmt.Sprintf("branch %q was rewritten: it no longer contains the last good commit", r.src.branch())
		return &RewrittenError{Repo: r.src.Name, How: how, From: r.rec.Commit, To: o.commit}
	}
	return nil
}

// checkTag goes by versions: releases of different branches need not descend
// from each other.
func (r *repository) checkTag(o offer) error {
	if known, ok := r.rec.Tags[o.tag]; ok && known != o.commit {
		how := fmt.Sprintf("tag %q was moved", o.tag)
		return &RewrittenError{Repo: r.src.Name, How: how, From: known, To: o.commit}
	}
	if r.rec.Tag != "" && r.src.newer(r.rec.Tag, o.tag) {
		how := fmt.Sprintf("release %q is gone, the newest is %q now", r.rec.Tag, o.tag)
		return &RewrittenError{Repo: r.src.Name, How: how, From: r.rec.Commit, To: o.commit}
	}
	return nil
}

// relation compares two commits by ancestry, with the whole history if it
// takes that.
func (r *repository) relation(ctx context.Context, from, to string) (Relation, error) {
	a, b := plumbing.NewHash(from), plumbing.NewHash(to)
	rel, err := r.store.relate(ctx, a, b)
	if errors.Is(err, errCut) && r.store.shallow() {
		if err := r.deepen(ctx); err != nil {
			return Unknown, err
		}
		rel, err = r.store.relate(ctx, a, b)
	}
	if errors.Is(err, errCut) {
		return rel, nil // the rest of the history is nowhere to be had
	}
	return rel, err
}

// deepen gets the history that a shallow store lacks.
func (r *repository) deepen(ctx context.Context) error {
	r.log.Info("fetching the whole history: it is needed to compare commits")
	_, o, err := r.list(ctx)
	if err != nil {
		return err
	}
	return r.build(ctx, o, tag{}, 0)
}
