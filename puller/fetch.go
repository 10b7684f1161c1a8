package puller

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/go-git/go-billy/v5/osfs"
	git "github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/config"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/storage/filesystem"
	"github.com/go-git/go-git/v5/storage/memory"
	"github.com/google/renameio/v2"
)

// list asks the remote for its references: one request.
func (s Source) list(ctx context.Context) (listing, error) {
	refs, err := talk(ctx, s, listTimeout, memory.NewStorage(), func(ctx context.Context, t session) ([]*plumbing.Reference, error) {
		return t.remote.ListContext(ctx, &git.ListOptions{Auth: t.auth, PeelingOption: git.AppendPeeled})
	})
	return newListing(refs), err
}

// fetch gets refs and the objects behind them into a store. A depth of 0 adds
// what is new, in full for a store that has nothing; any other depth downloads
// everything to that depth again. What it returns nil for is on disk.
func (s Source) fetch(ctx context.Context, dir string, o offer, extra string, depth int) error {
	st := filesystem.NewStorage(osfs.New(dir), cache.NewObjectLRU(cacheSize))
	defer st.Close()
	_, err := talk(ctx, s, fetchTimeout, st, func(ctx context.Context, t session) (none struct{}, err error) {
		err = t.remote.FetchContext(ctx, &git.FetchOptions{
			RefSpecs: specs(o, extra), Depth: depth, Auth: t.auth, Tags: git.NoTags, Force: true,
		})
		if errors.Is(err, git.NoErrAlreadyUpToDate) {
			return none, nil
		}
		return none, err
	})
	if err := errors.Join(err, tidy(dir)); err != nil {
		return err
	}
	// go-git tells the remote which commits it has by refs that are commits;
	// one that follows a tag would have none, and download everything again.
	head := filepath.Join(dir, "refs", "pullet", "head")
	if err := renameio.WriteFile(head, []byte(o.commit+"\n"), 0o644, renameio.WithTempDir(filepath.Dir(head))); err != nil {
		return err
	}
	return syncTree(dir)
}

// specs maps what is wanted to fixed local names: tags and branches that come
// and go cannot get into each other's way, and old ones do not pile up.
func specs(o offer, extra string) []config.RefSpec {
	specs := []config.RefSpec{config.RefSpec("+" + o.ref.String() + ":refs/pullet/followed")}
	for i, name := range []string{o.tag, extra} {
		ref := plumbing.NewTagReferenceName(name)
		if name != "" && ref != o.ref {
			specs = append(specs, config.RefSpec(fmt.Sprintf("+%s:refs/pullet/tag%d", ref, i)))
		}
	}
	return specs
}
