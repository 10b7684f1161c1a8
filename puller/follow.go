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
	rel, err := r.compare(ctx, r.rec.Commit, o.commit)
	switch {
	case errors.Is(err, errCut):
		return r.unknownHistory(o)
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

// unknownHistory returns why an offer may not follow the last good head, where the remote has nothing of what lies
// between them. That is a mirror that is several commits behind, or a branch that was rewritten so far back: the dates
// of the commits say which of them is more likely, and the error claims neither.
func (r *repository) unknownHistory(o offer) error {
	good, err := r.store.commit(plumbing.NewHash(r.rec.Commit))
	if err != nil {
		return err
	}
	offered, err := r.store.commit(o.hash())
	if err != nil {
		return err
	}
	if !offered.Committer.When.After(good.Committer.When) {
		return &BehindError{Repo: r.src.Name, From: r.rec.Commit, To: o.commit, Unsure: true}
	}
	how := fmt.Sprintf(
		"branch %q does not contain the last good commit, as far as the remote shows its history: it was rewritten, or "+
			"the remote is a stale mirror", r.src.branch(),
	)
	return &RewrittenError{Repo: r.src.Name, How: how, From: r.rec.Commit, To: o.commit}
}

// relation compares two commits by ancestry. What is nowhere to be had changes nothing.
func (r *repository) relation(ctx context.Context, from, to string) (Relation, error) {
	rel, err := r.compare(ctx, from, to)
	if errors.Is(err, errCut) {
		err = nil
	}
	return rel, err
}

// compare compares two commits by ancestry, with the whole history if it takes that. It fails with errCut where the
// remote does not have the rest of the history, and returns what holds if that changes nothing.
func (r *repository) compare(ctx context.Context, from, to string) (Relation, error) {
	a, b := plumbing.NewHash(from), plumbing.NewHash(to)
	rel, err := r.store.relate(ctx, a, b)
	if errors.Is(err, errCut) && r.store.shallow() {
		if err := r.deepen(ctx); err != nil {
			return Unknown, err
		}
		rel, err = r.store.relate(ctx, a, b)
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
