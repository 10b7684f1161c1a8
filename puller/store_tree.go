package puller

import (
	"context"
	"fmt"
	"io/fs"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
)

// tree reads the directories of a commit and makes sure that its files exist.
func (s *store) tree(ctx context.Context, commit plumbing.Hash) (*tree, error) {
	c, err := s.commit(commit)
	if err != nil {
		return nil, fmt.Errorf("commit %s: %w", short(commit.String()), err)
	}
	t := newTree(c.Committer.When)
	t.content = func(_ string, n *node) ([]byte, error) { return s.blob(n.hash) }
	t.damaged = s.damaged
	t.nodes["."].hash = c.TreeHash
	if err := s.fill(ctx, t, t.nodes["."], "", 0); err != nil {
		return nil, err
	}
	if err := s.measure(t); err != nil {
		return nil, err
	}
	return t, t.complete(ctx)
}

// measure sets the sizes of all files; a missing one is an error.
func (s *store) measure(t *tree) error {
	var files []*node
	var ids []plumbing.Hash
	for _, n := range t.nodes {
		if !n.mode.IsDir() {
			files, ids = append(files, n), append(ids, n.hash)
		}
	}
	sizes, err := s.sizes(ids)
	for i, n := range files {
		n.size = sizes[i]
	}
	return err
}

// fill adds the entries of a directory, and of those below it.
func (s *store) fill(ctx context.Context, t *tree, dir *node, prefix string, depth int) error {
	if err := checkDepth(prefix, depth); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	entries, err := s.entries(dir.hash)
	if err != nil {
		return fmt.Errorf("directory %q: %w", "/"+prefix, err)
	}
	for _, e := range entries {
		if e.Mode == filemode.Submodule {
			return refuseSubmodule(prefix + e.Name)
		}
		n := &node{name: e.Name, mode: modeOf(e.Mode), hash: e.Hash}
		if err := t.add(dir, prefix, n); err != nil {
			return err
		}
		if !n.mode.IsDir() {
			continue
		}
		if err := s.fill(ctx, t, n, prefix+e.Name+"/", depth+1); err != nil {
			return err
		}
	}
	dir.sort() // git sorts directories as if their names ended in a slash
	return nil
}

func modeOf(m filemode.FileMode) fs.FileMode {
	switch m {
	case filemode.Dir:
		return fs.ModeDir | 0o755
	case filemode.Symlink:
		return fs.ModeSymlink | 0o777
	case filemode.Executable:
		return 0o755
	}
	return 0o644
}
