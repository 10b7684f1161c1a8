package puller

import (
	"context"
	"encoding/hex"
	"fmt"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/storage/filesystem"
)

// RevisionError says that a repository has no such revision, or one that
// other nodes could not fetch.
type RevisionError struct {
	Repo, Rev string
	What      string   // is wrong with it
	Known     []string // the tags and branches that there are
}

func (e *RevisionError) Error() string {
	return fmt.Sprintf("repository %q: %s", e.Repo, e.What)
}

// Resolve finds the commit that an annotated tag, a branch or a commit id,
// which may be cut off, stands for, and fetches it. It refuses what Follows
// refuses on every host.
func (p *Puller) Resolve(ctx context.Context, repo, rev string) (Head, error) {
	over, err := p.turn(ctx)
	if err != nil {
		return Head{}, err
	}
	defer over()
	r, err := p.repository(repo)
	if err != nil {
		return Head{}, err
	}
	l, o, err := r.list(ctx)
	if err != nil {
		return Head{}, err
	}
	if _, err := r.obtain(ctx, o, tag{}, o.hash()); err != nil {
		return Head{}, r.failed(o, err)
	}
	h, err := r.named(ctx, l, rev)
	if err != nil {
		return h, err
	}
	release := r.release(l, h.Commit)
	if release.name == "" {
		rel, err := r.relation(ctx, h.Commit, o.commit)
		if err != nil {
			return h, err
		}
		if rel != Same && rel != Newer {
			return h, r.unfollowed(rev, o)
		}
	}
	if _, err = r.obtain(ctx, o, release, h.hash()); err == nil {
		err = r.verify(ctx, h.hash(), release)
	}
	return h, err
}

// unfollowed refuses a revision that hosts would refuse, too.
func (r *repository) unfollowed(rev string, o offer) error {
	if !r.src.tagged() {
		return r.src.refuses(
			rev,
			fmt.Sprintf(
				"%s is not in the history of %s, which hosts follow, so they would refuse it: merge it into %[3]s, and push",
				rev,
				r.src.follow(),
				r.src.branch(),
			),
		)
	}
	return r.src.refuses(
		rev,
		fmt.Sprintf(
			"%s is neither in the history of %s nor a release that matches %s, which hosts follow, so they would refuse it: "+
				"release it under a name that matches: git tag -a -m MESSAGE NAME COMMIT, and push the tag",
			rev,
			o.tag,
			r.src.follow(),
		),
	)
}

// named is the commit that a name stands for, with its tag.
func (r *repository) named(ctx context.Context, l listing, rev string) (Head, error) {
	h := Head{Repo: r.src.Name}
	for _, t := range l.tags {
		if t.name == rev && t.annotated {
			h.Commit, h.Tag = t.commit, t.name
			return h, nil
		}
		if t.name == rev {
			return h, r.src.refuses(
				rev,
				fmt.Sprintf(
					"the tag %q is lightweight, which is no release: name its commit, or make it anew with: git tag -a",
					rev,
				),
			)
		}
	}
	h.Commit = l.branches[rev]
	if h.Commit == "" {
		found, err := r.abbreviated(ctx, rev)
		if err != nil {
			return h, err
		}
		switch len(found) {
		case 0:
			return h, r.unknown(l, rev)
		case 1:
			h.Commit = found[0]
		default:
			return h, r.src.refuses(rev, fmt.Sprintf("%q begins the ids of several commits: write more of it", rev))
		}
	}
	for _, t := range l.tags {
		if t.annotated && t.commit == h.Commit && (h.Tag == "" || r.src.newer(t.name, h.Tag)) {
			h.Tag = t.name
		}
	}
	return h, nil
}

func (s Source) refuses(rev, what string) error {
	return &RevisionError{Repo: s.Name, Rev: rev, What: what}
}

func (r *repository) unknown(l listing, rev string) error {
	known := l.branchNames()
	for _, t := range l.tags {
		if t.annotated {
			known = append(known, t.name)
		}
	}
	slices.Sort(known)
	return &RevisionError{
		Repo:  r.src.Name,
		Rev:   rev,
		What:  fmt.Sprintf("there is no tag, branch or commit %q", rev),
		Known: known,
	}
}

// abbreviated are the commits whose ids begin with what may be the start of
// one, with the whole history if it takes that.
func (r *repository) abbreviated(ctx context.Context, rev string) ([]string, error) {
	if len(rev) < 4 || len(rev) > 40 {
		return nil, nil
	}
	prefix, err := hex.DecodeString(rev[:len(rev)/2*2])
	if err != nil {
		return nil, nil
	}
	found, err := r.store.commits(prefix, rev)
	if err != nil || len(found) > 0 || !r.store.shallow() {
		return found, err
	}
	if err := r.deepen(ctx); err != nil {
		return nil, err
	}
	return r.store.commits(prefix, rev)
}

// commits are those whose ids begin with a text; prefix is its whole bytes.
func (s *store) commits(prefix []byte, text string) (found []string, err error) {
	err = s.with(func(st *filesystem.Storage) error {
		ids, err := st.HashesWithPrefix(prefix)
		if err != nil {
			return err
		}
		for _, id := range ids {
			if id.String()[:len(text)] != text {
				continue
			}
			if _, err := st.EncodedObject(plumbing.CommitObject, id); err == nil &&
				!slices.Contains(found, id.String()) {
				found = append(found, id.String())
			}
		}
		return nil
	})
	return found, err
}
