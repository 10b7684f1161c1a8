package puller

import (
	"context"
	"errors"
	"io/fs"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/sirupsen/logrus"

	"github.com/pullet/pullet/internal/gitremote"
)

// repository is one source with its store and its record.
type repository struct {
	src        Source
	git        gitremote.Client
	store      *store
	rec        record
	recordFile string
	cleaned    bool // once
	log        *logrus.Entry
}

// newRepository is a source whose files nobody has looked at yet.
func newRepository(base string, src Source, client gitremote.Client, log *logrus.Entry) *repository {
	return &repository{
		src:        src,
		git:        client,
		store:      newStore(src.Name, base+".git"),
		recordFile: base + ".json",
		log:        log.WithField("repository", src.Name),
	}
}

// list reads what the remote has and selects what to follow.
func (r *repository) list(ctx context.Context) (listing, offer, error) {
	remote, err := r.git.List(ctx, r.src.remote())
	if err != nil {
		return listing{}, offer{}, r.src.unreachable(err)
	}
	l := newListing(remote)
	o, err := r.src.pick(l)
	if err != nil {
		return l, o, r.src.unreachable(err)
	}
	return l, o, nil
}

// obtain reads the directories of a commit, with the help of the remote where
// it must: as things are, or after a fetch, or after building the store anew.
// The commit need not be the offered one; extra is a tag to fetch besides.
func (r *repository) obtain(ctx context.Context, o offer, extra tag, commit plumbing.Hash) (*tree, error) {
	if err := r.usable(ctx, o, extra); err != nil {
		return nil, err
	}
	t, err := r.store.tree(ctx, commit)
	if damage(err) {
		if err := r.rebuild(ctx, o, extra, err); err != nil {
			return nil, err
		}
		return r.store.tree(ctx, commit)
	}
	if !errors.Is(err, plumbing.ErrObjectNotFound) {
		return t, err
	}
	if err := r.fetch(ctx, o, extra); err != nil {
		return nil, err
	}
	t, err = r.store.tree(ctx, commit)
	if !errors.Is(err, plumbing.ErrObjectNotFound) || r.store.lacks(commit) && !r.store.shallow() {
		return t, err
	}
	// It is older than a shallow store. Or it is there in part: a server that
	// answers from reachability bitmaps takes a shallow store for a full one
	// and leaves out what it believes to be there.
	r.log.Infof("fetching the whole history: the store lacks commit %s or a part of it", short(commit.String()))
	if err := r.build(ctx, o, extra, 0); err != nil {
		return nil, err
	}
	return r.store.tree(ctx, commit)
}

// usable builds the store if there is none, or if it is damaged.
func (r *repository) usable(ctx context.Context, o offer, extra tag) error {
	if !r.store.exists() {
		return r.build(ctx, o, extra, r.src.firstDepth())
	}
	if err := r.store.sound(); err != nil {
		return r.rebuild(ctx, o, extra, err)
	}
	return nil
}

// rebuild replaces a damaged store.
func (r *repository) rebuild(ctx context.Context, o offer, extra tag, cause error) error {
	r.log.WithError(cause).Warn("the store is damaged: building it anew")
	return r.build(ctx, o, extra, 0)
}

// fetch adds what is new.
func (r *repository) fetch(ctx context.Context, o offer, extra tag) error {
	if err := r.fetchInto(ctx, r.store, o, extra, 0); err != nil {
		return err
	}
	if err := r.store.compact(); err != nil {
		r.log.WithError(err).Warn("cannot put the packs of the store together; it goes on with many")
	}
	return r.store.reset()
}

// find reads the directories of a commit that need not be offered now. It asks
// the remote only if it must.
func (r *repository) find(ctx context.Context, h Head) (*tree, error) {
	if r.store.exists() {
		t, err := r.store.tree(ctx, h.hash())
		if !damage(err) && !errors.Is(err, plumbing.ErrObjectNotFound) {
			return t, err
		}
	}
	t, err := r.fetchCommit(ctx, h)
	switch {
	case err == nil || atFault(err) || ctx.Err() != nil:
		return t, err
	case !r.store.exists() || r.store.lacks(h.hash()):
		if errors.Is(err, plumbing.ErrObjectNotFound) {
			err = nil // the remote was asked
		}
		return nil, &MissingCommitError{Repo: h.Repo, Commit: h.Commit, Err: err}
	}
	return nil, r.store.damaged("commit "+short(h.Commit), err)
}

// fetchCommit asks the remote for a commit, and for the followed tag on it. It goes by no other tag: whoever can name
// one for this host could otherwise bring a commit into the store that was never merged.
func (r *repository) fetchCommit(ctx context.Context, h Head) (*tree, error) {
	l, o, err := r.list(ctx)
	if err != nil {
		return nil, err
	}
	return r.obtain(ctx, o, r.release(l, h.Commit), h.hash())
}

// damage says whether an error means that the store cannot be read, as opposed
// to not having something.
func damage(err error) bool {
	for _, other := range []error{plumbing.ErrObjectNotFound, fs.ErrClosed, context.Canceled, context.DeadlineExceeded} {
		if errors.Is(err, other) {
			return false
		}
	}
	return err != nil && !atFault(err)
}
