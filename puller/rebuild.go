package puller

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	git "github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing"
)

// build makes the store anew beside the old one and swaps them. It takes over
// what is sound in the old one: the remote may not have every commit any more.
// The store is replaced only when the offered commit is complete in the new one.
func (r *repository) build(ctx context.Context, o offer, extra tag, depth int) error {
	fresh := newStore(r.src.Name, r.store.dir+".new")
	defer fresh.close()
	if err := os.RemoveAll(fresh.dir); err != nil {
		return err
	}
	if _, err := git.PlainInit(fresh.dir, true); err != nil {
		return fmt.Errorf("cannot create a store: %w", err)
	}
	if err := os.MkdirAll(filepath.Join(fresh.dir, "refs", "pullet"), 0o755); err != nil {
		return err
	}
	if err := r.fetchInto(ctx, fresh, o, extra, depth); err != nil {
		return errors.Join(err, os.RemoveAll(fresh.dir))
	}
	if err := linkPacks(r.store.dir, fresh.dir); err != nil {
		return err
	}
	if _, err := fresh.tree(ctx, o.hash()); errors.Is(err, plumbing.ErrObjectNotFound) && depth > 0 {
		return r.build(ctx, o, extra, 0) // the branch moved on since it was listed
	} else if atFault(err) {
		return err
	} else if err != nil {
		return fmt.Errorf("what was fetched is not complete: %w", err)
	}
	if err := r.store.change(func() error { return swap(r.store.dir) }); err != nil {
		return fmt.Errorf("cannot replace the store: %w", err)
	}
	return nil
}

// linkPacks links the packs of an old store that are whole into a new one. They are durable there when it returns.
func linkPacks(old, fresh string) error {
	files, err := packs(old)
	if err != nil {
		return err
	}
	for _, pack := range files {
		index := indexOf(pack)
		if checkPack(pack, true) != nil || checkIndex(index, pack) != nil {
			continue
		}
		for _, file := range []string{index, pack} {
			to := filepath.Join(fresh, "objects", "pack", filepath.Base(file))
			if err := os.Link(file, to); err != nil && !errors.Is(err, os.ErrExist) {
				return err
			}
		}
	}
	return syncPath(filepath.Join(fresh, "objects", "pack"))
}

// swap puts DIR.new in the place of DIR.
func swap(dir string) error {
	old := dir + ".old"
	if err := os.RemoveAll(old); err != nil {
		return err
	}
	if err := os.Rename(dir, old); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := os.Rename(dir+".new", dir); err != nil {
		return err
	}
	if err := syncPath(filepath.Dir(dir)); err != nil {
		return err
	}
	return os.RemoveAll(old)
}

// recoverSwap finishes or undoes a swap that a crash interrupted. Without DIR,
// DIR.old says that DIR.new was complete: it is only moved away for that.
func recoverSwap(dir string) error {
	fresh, old := dir+".new", dir+".old"
	if exists(dir) {
		return errors.Join(os.RemoveAll(fresh), os.RemoveAll(old))
	}
	switch {
	case exists(old) && exists(fresh):
		return errors.Join(os.Rename(fresh, dir), os.RemoveAll(old))
	case exists(old):
		return os.Rename(old, dir)
	}
	return os.RemoveAll(fresh)
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
