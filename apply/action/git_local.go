package action

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/plumbing/revlist"
	"github.com/go-git/go-git/v5/plumbing/transport"
	"github.com/go-git/go-git/v5/storage/filesystem"
)

// A repository on the host itself is read here: the library's own way runs the git program.

// openLocal opens a repository at a path: a bare one, or that of a work tree.
func openLocal(path string) (*filesystem.Storage, error) {
	for _, dir := range []string{filepath.Join(path, ".git"), path, path + ".git"} {
		if info, err := os.Stat(filepath.Join(dir, "shallow")); err == nil && info.Size() > 0 {
			return nil, errors.New("it is a shallow clone, which has not all that belongs to its commits: run there: git fetch --unshallow")
		}
		if exists(filepath.Join(dir, "HEAD")) && exists(filepath.Join(dir, "objects")) {
			return filesystem.NewStorage(osfs.New(dir, osfs.WithBoundOS()), cache.NewObjectLRUDefault()), nil
		}
	}
	return nil, transport.ErrRepositoryNotFound
}

// listLocal lists what a remote would: its HEAD, branches and tags, and what annotated tags point to.
func listLocal(path string) ([]*plumbing.Reference, error) {
	st, err := openLocal(path)
	if err != nil {
		return nil, err
	}
	defer st.Close()
	refs, err := localRefs(st)
	if err != nil {
		return nil, err
	}
	head, err := st.Reference(plumbing.HEAD)
	if err != nil {
		return nil, err
	}
	out := append(refs, head)
	for _, ref := range refs {
		if !ref.Name().IsTag() {
			continue
		}
		peeled, err := peel(st, ref.Hash())
		if err != nil {
			return nil, fmt.Errorf("%s: %w", ref.Name(), err)
		}
		if peeled != ref.Hash() {
			out = append(out, plumbing.NewHashReference(ref.Name()+"^{}", peeled))
		}
	}
	return out, nil
}

// peel follows a tag to what it points to in the end.
func peel(st *filesystem.Storage, hash plumbing.Hash) (plumbing.Hash, error) {
	for {
		o, err := st.EncodedObject(plumbing.AnyObject, hash)
		if err != nil || o.Type() != plumbing.TagObject {
			return hash, err
		}
		t, err := object.DecodeTag(st, o)
		if err != nil {
			return hash, err
		}
		hash = t.Target
	}
}

// localRefs are the branches and tags. A git that writes there at the same time has lock files, which are none.
func localRefs(st *filesystem.Storage) ([]*plumbing.Reference, error) {
	all, err := st.IterReferences()
	if err != nil {
		return nil, err
	}
	defer all.Close()
	var out []*plumbing.Reference
	err = all.ForEach(func(ref *plumbing.Reference) error {
		name := ref.Name()
		if ref.Type() == plumbing.HashReference && (name.IsBranch() || name.IsTag()) && !strings.HasSuffix(name.String(), ".lock") {
			out = append(out, ref)
		}
		return nil
	})
	return out, err
}

// copyLocal copies the branches and tags of a repository with all that they need, and a commit that is wanted beside them.
func copyLocal(ctx context.Context, path string, tree *gitTree, t gitTarget) error {
	from, err := openLocal(path)
	if err != nil {
		return err
	}
	defer from.Close()
	refs, err := localRefs(from)
	if err != nil {
		return err
	}
	wants := []plumbing.Hash{}
	for _, ref := range refs {
		wants = append(wants, ref.Hash())
	}
	if from.HasEncodedObject(t.commit) == nil {
		wants = append(wants, t.commit)
	}
	if err := copyObjects(ctx, from, tree.storage, wants); err != nil {
		return err
	}
	for _, ref := range refs {
		own := plumbing.NewHashReference(gitTarget{ref: ref.Name()}.tracking(), ref.Hash())
		if err := tree.storage.SetReference(own); err != nil {
			return err
		}
	}
	return nil
}

// copyObjects copies objects and all that they need, but for what both have.
func copyObjects(ctx context.Context, from, to *filesystem.Storage, wants []plumbing.Hash) error {
	own, err := to.IterReferences()
	if err != nil {
		return err
	}
	var both []plumbing.Hash
	err = own.ForEach(func(ref *plumbing.Reference) error {
		if ref.Type() == plumbing.HashReference && from.HasEncodedObject(ref.Hash()) == nil {
			both = append(both, ref.Hash())
		}
		return nil
	})
	if err != nil {
		return err
	}
	have, err := revlist.Objects(from, both, nil)
	if err != nil {
		return err
	}
	send, err := revlist.Objects(from, wants, have)
	if err != nil || len(send) == 0 {
		return err
	}
	pack, err := to.PackfileWriter()
	if err != nil {
		return err
	}
	_, err = packfile.NewEncoder(&untilDone{ctx, pack}, from, false).Encode(send, 0)
	return errors.Join(err, pack.Close())
}

// untilDone is a writer that fails when a context ended.
type untilDone struct {
	ctx context.Context
	io.Writer
}

func (w *untilDone) Write(p []byte) (int, error) {
	if err := w.ctx.Err(); err != nil {
		return 0, err
	}
	return w.Writer.Write(p)
}
