package puller

import (
	"context"
	"fmt"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"
)

// leaf is a file, link or submodule at a path. The zero value is the absence of one: a directory has none.
type leaf struct {
	mode filemode.FileMode
	hash plumbing.Hash
}

func leafOf(e object.TreeEntry) leaf {
	if e.Mode == filemode.Dir {
		return leaf{}
	}
	return leaf{e.Mode, e.Hash}
}

// change is the content of a path on both sides of a comparison.
type change struct{ before, after leaf }

// maxCachedEntries bounds the directories that a trees keeps: some 20 MB.
const maxCachedEntries = 200_000

// trees reads directories, and keeps those that it read lately: neighbors in a history share most of them.
type trees struct {
	store  *store
	dirs   map[plumbing.Hash][]object.TreeEntry
	cached int // entries in dirs
}

func newTrees(s *store) *trees { return &trees{store: s, dirs: map[plumbing.Hash][]object.TreeEntry{}} }

// list returns the entries of a directory; the zero hash is an empty one.
func (t *trees) list(dir plumbing.Hash) ([]object.TreeEntry, error) {
	if dir.IsZero() {
		return nil, nil
	}
	if entries, ok := t.dirs[dir]; ok {
		return entries, nil
	}
	entries, err := t.store.entries(dir)
	if err != nil {
		return nil, err
	}
	if t.cached += 1 + len(entries); t.cached > maxCachedEntries {
		clear(t.dirs)
		t.cached = 1 + len(entries)
	}
	t.dirs[dir] = entries
	return entries, nil
}

// leaf returns the content at a path below a directory.
func (t *trees) leaf(dir plumbing.Hash, path string) (leaf, error) {
	for {
		name, rest, deeper := strings.Cut(path, "/")
		entries, err := t.list(dir)
		if err != nil {
			return leaf{}, err
		}
		dir = plumbing.ZeroHash
		for _, e := range entries {
			switch {
			case e.Name != name:
			case !deeper:
				return leafOf(e), nil
			case e.Mode == filemode.Dir:
				dir = e.Hash
			}
		}
		if !deeper || dir.IsZero() {
			return leaf{}, nil
		}
		path = rest
	}
}

// changed returns the paths whose content differs between two directories. The zero hash is an empty one.
func (t *trees) changed(ctx context.Context, from, to plumbing.Hash) (map[string]change, error) {
	d := difference{ctx: ctx, trees: t, paths: map[string]change{}}
	return d.paths, d.compare("", from, to, 0)
}

// difference collects the paths that differ.
type difference struct {
	ctx   context.Context
	trees *trees
	paths map[string]change
}

// compare compares two directories, and those below them.
func (d *difference) compare(prefix string, from, to plumbing.Hash, depth int) error {
	switch {
	case from == to:
		return nil
	case depth > maxDepth:
		return contentError{text: fmt.Sprintf("directory %q: deeper than the limit of %d", prefix, maxDepth)}
	case d.ctx.Err() != nil:
		return d.ctx.Err()
	}
	before, err := d.trees.list(from)
	if err != nil {
		return fmt.Errorf("directory %q: %w", "/"+prefix, err)
	}
	after, err := d.trees.list(to)
	if err != nil {
		return fmt.Errorf("directory %q: %w", "/"+prefix, err)
	}
	for len(before)+len(after) > 0 {
		var was, is object.TreeEntry
		order := 0
		switch {
		case len(after) == 0:
			order = -1
		case len(before) == 0:
			order = 1
		default:
			order = compareEntries(before[0], after[0])
		}
		if order <= 0 {
			was, before = before[0], before[1:]
		}
		if order >= 0 {
			is, after = after[0], after[1:]
		}
		if err := d.pair(prefix, was, is, depth); err != nil {
			return err
		}
	}
	return nil
}

// pair compares two entries of one name, both of them directories or neither. The zero value is none.
func (d *difference) pair(prefix string, was, is object.TreeEntry, depth int) error {
	if was == is {
		return nil
	}
	path := prefix + max(was.Name, is.Name)
	if was.Mode == filemode.Dir || is.Mode == filemode.Dir {
		return d.compare(path+"/", was.Hash, is.Hash, depth+1)
	}
	if d.paths[path] = (change{leafOf(was), leafOf(is)}); len(d.paths) > maxPaths {
		return contentError{text: fmt.Sprintf("more changed paths than the limit of %d", maxPaths)}
	}
	return nil
}
