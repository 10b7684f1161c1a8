package puller

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
)

// Head is the commit that a repository offers, or offered last.
type Head struct {
	Repo   string // the source's name
	Commit string // full id
	// Tag is the annotated tag that is followed; for a branch, the one on the
	// commit, the highest version if there are several, empty if none.
	Tag string
	// Problem is nil if the remote said so just now. Otherwise it is why
	// Commit is only the last good one: an *UnreachableError, a
	// *RewrittenError, a *BehindError, or another error of this node.
	Problem error
	// LeftOut is a *LeftOutError where the remote has newer tags that cannot be followed, else nil.
	LeftOut error
	// Took is how long the remote took to answer this Pull, with a fetch where
	// there was something new.
	Took time.Duration
}

func (h Head) hash() plumbing.Hash { return plumbing.NewHash(h.Commit) }

// check refuses abbreviations, which would be taken for other commits.
func (h Head) check() error {
	if !plumbing.IsHash(h.Commit) {
		return fmt.Errorf("repository %q: %q is not a full commit id", h.Repo, h.Commit)
	}
	return nil
}

// Snapshot is the content of all repositories at exact commits. It does not
// change and may be read from several goroutines, until its Puller is closed.
type Snapshot struct {
	Layers []Layer // one for each head, in order
}

// Layer is the content of one repository. Its FS lists symbolic links, which
// cannot be opened, and leaves out submodules. Its errors are *CorruptError
// where the store is damaged.
type Layer struct {
	Name string
	FS   fs.FS
}

// Snapshot returns the content at the heads, which need not be the current
// ones: commits that were fetched once stay. It asks a remote only for a
// commit that is missing, and fails with a *MissingCommitError if it stays so.
// Whoever named a commit, it has to be signed as its source demands: else it is
// an *UnverifiedError.
func (p *Puller) Snapshot(ctx context.Context, heads []Head) (*Snapshot, error) {
	over, err := p.turn(ctx)
	if err != nil {
		return nil, err
	}
	defer over()
	if len(heads) == 0 {
		return nil, errors.New("cannot make a snapshot of no repositories")
	}
	s := &Snapshot{}
	for _, h := range heads {
		r, err := p.repository(h.Repo)
		if err := errors.Join(err, h.check()); err != nil {
			return nil, err
		}
		t, err := r.find(ctx, h)
		if err == nil {
			err = r.verifyHead(ctx, h)
		}
		if atFault(err) {
			return nil, fmt.Errorf("commit %s of repository %q cannot be used: %w", short(h.Commit), h.Repo, err)
		}
		if err != nil {
			return nil, err
		}
		s.Layers = append(s.Layers, Layer{Name: h.Repo, FS: t})
	}
	return s, nil
}

// Version identifies what heads stand for: the commit of one repository, or a
// digest over the names and commits of several, in order.
func Version(heads []Head) string {
	if len(heads) == 1 {
		return heads[0].Commit
	}
	h := sha256.New()
	for _, head := range heads {
		fmt.Fprintf(h, "%s=%s\n", head.Repo, head.Commit)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Release names what heads stand for, for people: the tag of one head, or all
// tags with their repositories. It is empty where there is no tag.
func Release(heads []Head) string {
	if len(heads) == 1 {
		return heads[0].Tag
	}
	var tags []string
	for _, h := range heads {
		if h.Tag != "" {
			tags = append(tags, h.Repo+"="+h.Tag)
		}
	}
	return strings.Join(tags, " ")
}
