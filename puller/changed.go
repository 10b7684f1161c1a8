package puller

import (
	"context"
	"fmt"
	"maps"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"
)

// changed are the paths that differ between the files of two commits; the zero hash is a commit without files.
func (s *store) changed(ctx context.Context, from, to plumbing.Hash) (paths map[string]bool, err error) {
	var dirs [2]plumbing.Hash
	for i, id := range []plumbing.Hash{from, to} {
		if id.IsZero() {
			continue
		}
		c, err := s.commit(id)
		if err != nil {
			return nil, err
		}
		dirs[i] = c.TreeHash
	}
	d := difference{ctx: ctx, store: s, paths: map[string]bool{}}
	return d.paths, d.compare("", dirs[0], dirs[1], 0)
}

// difference collects the paths that differ.
type difference struct {
	ctx   context.Context
	store *store
	paths map[string]bool
}

// compare looks at two directories; the zero hash is none.
func (d *difference) compare(prefix string, from, to plumbing.Hash, depth int) error {
	switch {
	case from == to:
		return nil
	case depth > maxDepth:
		return contentError{fmt.Sprintf("directory %q: deeper than the limit of %d", prefix, maxDepth)}
	case d.ctx.Err() != nil:
		return d.ctx.Err()
	}
	before, err := d.list(from)
	if err != nil {
		return err
	}
	after, err := d.list(to)
	if err != nil {
		return err
	}
	all := maps.Clone(before)
	maps.Copy(all, after)
	for name := range all {
		if err := d.pair(prefix+name, before[name], after[name], depth); err != nil {
			return err
		}
	}
	return nil
}

// pair looks at what one path has before and after. A file may take the place of a directory.
func (d *difference) pair(path string, before, after object.TreeEntry, depth int) error {
	if before.Hash == after.Hash && before.Mode == after.Mode {
		return nil
	}
	var dirs [2]plumbing.Hash
	for i, e := range []object.TreeEntry{before, after} {
		if e.Mode == filemode.Dir {
			dirs[i] = e.Hash
		} else if !e.Hash.IsZero() {
			d.paths[path] = true
		}
	}
	if len(d.paths) > maxPaths {
		return contentError{fmt.Sprintf("more changed paths than the limit of %d", maxPaths)}
	}
	return d.compare(path+"/", dirs[0], dirs[1], depth+1)
}

// list are the entries of a directory by name.
func (d *difference) list(dir plumbing.Hash) (map[string]object.TreeEntry, error) {
	list := map[string]object.TreeEntry{}
	if dir.IsZero() {
		return list, nil
	}
	entries, err := d.store.entries(dir)
	for _, e := range entries {
		list[e.Name] = e
	}
	return list, err
}
