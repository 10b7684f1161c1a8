package puller

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/storage/filesystem"
	"github.com/google/renameio/v2"

	"github.com/pullet/pullet/internal/gitremote"
)

// fetchInto gets an offer, and another tag if one is given, with the objects
// behind them into a store. A depth of 0 adds what is new, in full for a store
// that has nothing; any other depth is for a store that has nothing. What it
// returns nil for is on disk.
func (r *repository) fetchInto(ctx context.Context, s *store, o offer, extra tag, depth int) error {
	q := gitremote.Request{Depth: depth, Place: s.placePack, Haves: s.haves()}
	refs := refsOf(o, extra)
	for name, id := range refs {
		if name != headRef {
			q.Wants = append(q.Wants, id)
		}
	}
	st := filesystem.NewStorage(osfs.New(s.dir), cache.NewObjectLRU(cacheSize))
	defer st.Close()
	var err error
	if q.Shallow, err = st.Shallow(); err != nil {
		return err
	}
	got, err := r.git.Fetch(ctx, r.src.remote(), q)
	if err != nil {
		return err
	}
	if len(got.Shallow) > 0 {
		if err := st.SetShallow(got.Shallow); err != nil {
			return err
		}
	}
	for name, id := range refs {
		if err := writeRef(s.dir, name, id); err != nil {
			return err
		}
	}
	return errors.Join(syncTree(s.dir), s.reset())
}

// placePack puts a pack, or its index, among the others.
func (s *store) placePack(name, file string) error {
	return os.Rename(file, filepath.Join(s.dir, "objects", "pack", name))
}

// headRef is the commit of an offer: a tag that is followed is not one.
const headRef = "refs/pullet/head"

// refsOf are the references that a store has for what was fetched. Their names
// are fixed: tags and branches that come and go cannot get into each other's
// way, and old ones do not pile up.
func refsOf(o offer, extra tag) map[string]plumbing.Hash {
	refs := map[string]plumbing.Hash{headRef: o.hash(), "refs/pullet/followed": o.id}
	if o.tag != "" && o.tagID != o.id {
		refs["refs/pullet/tag0"] = o.tagID
	}
	if extra.name != "" && extra.id != o.id {
		refs["refs/pullet/tag1"] = extra.id
	}
	return refs
}

func writeRef(dir, name string, id plumbing.Hash) error {
	file := filepath.Join(dir, filepath.FromSlash(name))
	return renameio.WriteFile(file, fmt.Appendln(nil, id), 0o644, renameio.WithTempDir(filepath.Dir(file)))
}

const maxHaves = 64

// haves are commits that the store has, for the remote to leave out: the latest
// one and those before it, in case that it was taken back.
func (s *store) haves() []plumbing.Hash {
	if !s.exists() || s.sound() != nil {
		return nil
	}
	var next plumbing.Hash
	err := s.with(func(st *filesystem.Storage) error {
		ref, err := st.Reference(headRef)
		if err == nil {
			next = ref.Hash()
		}
		return err
	})
	var haves []plumbing.Hash
	for err == nil && len(haves) < maxHaves {
		c, bad := s.commit(next)
		if bad != nil {
			break // the history ends here, or is cut off
		}
		haves = append(haves, next)
		if len(c.ParentHashes) == 0 {
			break
		}
		next = c.ParentHashes[0]
	}
	return haves
}

// unreachable is an error about a remote, with what a person can try.
func (s Source) unreachable(err error) error {
	e := &UnreachableError{Repo: s.Name, URL: s.remote().Redacted(), Err: err, Try: s.remote().Try()}
	_, limit := errors.AsType[*gitremote.LimitError](err)
	_, child := errors.AsType[*gitremote.ChildError](err)
	if limit || child {
		e.Try = "pullet doctor"
	}
	return e
}
