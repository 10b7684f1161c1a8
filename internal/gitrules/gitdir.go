package gitrules

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/format/index"
)

// Dir is what git knows of a work tree. Nothing in it is run, and without git it is empty.
type Dir struct {
	Below  string    // the work tree's path in that of git, with a slash at the end; "" is all of it
	Ignore Ignore    // rules from above the work tree
	path   string    // of the directory .git; "" is none
	read   *gitIndex // nil: not yet
}

// gitIndex is the paths of a work tree that git tracks.
type gitIndex struct {
	paths      map[string]bool // and the directories above them
	submodules []string        // sorted
}

// FindDir finds the git directory of a work tree in a directory, or of the one around it.
func FindDir(ctx context.Context, dir string) (*Dir, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return nil, err
	}
	for top := dir; ; top = filepath.Dir(top) {
		_, err := os.Lstat(filepath.Join(top, ".git"))
		switch {
		case err == nil:
			return readGit(ctx, top, dir)
		case !errors.Is(err, fs.ErrNotExist):
			return nil, err
		case top == filepath.Dir(top):
			return &Dir{}, nil
		}
	}
}

// readGit reads the rules that hold in a directory of a work tree. Where git ignores the directory itself, it has none.
func readGit(ctx context.Context, top, dir string) (*Dir, error) {
	root, err := os.OpenRoot(top + "/.")
	if err != nil {
		return nil, err
	}
	defer root.Close()
	g := &Dir{path: filepath.Join(top, ".git")}
	common, err := g.locate(top)
	if err != nil {
		return nil, err
	}
	text, err := readFileIn(common, "info/exclude")
	if err != nil {
		return nil, err
	}
	if g.Ignore, err = g.Ignore.Add(".", text); err != nil {
		return nil, fmt.Errorf("%s/info/exclude: %w", common, err)
	}
	rel, err := filepath.Rel(top, dir)
	if err != nil || rel == "." {
		return g, err
	}
	for elem := range strings.SplitSeq(rel, "/") {
		text, err := ReadRegular(root, g.Below+".gitignore", maxFile)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		if g.Ignore, err = g.Ignore.Add("./"+g.Below, text); err != nil {
			return nil, fmt.Errorf("%s.gitignore: %w", g.Below, err)
		}
		ignored, err := g.Ignore.Ignores(ctx, g.Below+elem, true)
		if err != nil {
			return nil, err
		}
		if ignored {
			return &Dir{}, nil
		}
		g.Below += elem + "/"
	}
	return g, nil
}

// locate follows a .git that is a file, as in a linked work tree, and returns the directory that linked ones share.
func (g *Dir) locate(top string) (common string, err error) {
	info, err := os.Lstat(g.path)
	if err != nil {
		return "", err
	}
	if info.Mode().IsRegular() {
		text, err := readFileIn(top, ".git")
		if err != nil {
			return "", err
		}
		at, ok := bytes.CutPrefix(text, []byte("gitdir:"))
		if !ok {
			return "", fmt.Errorf("%s does not name a git directory", g.path)
		}
		g.path = from(top, string(at))
	}
	text, err := readFileIn(g.path, "commondir")
	if err != nil || text == nil {
		return g.path, err
	}
	return from(g.path, string(text)), nil
}

// from returns a path as one that stands in a directory means it.
func from(dir, name string) string {
	if name = strings.TrimSpace(name); filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(dir, name)
}

// readFileIn reads a file of a directory; one that does not exist is empty.
func readFileIn(dir, name string) ([]byte, error) {
	root, err := os.OpenRoot(dir + "/.")
	if err != nil {
		return nil, err
	}
	defer root.Close()
	text, err := ReadRegular(root, name, maxFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return text, err
}

// index reads the index, once.
func (g *Dir) index() (*gitIndex, error) {
	if g.read != nil {
		return g.read, nil
	}
	g.read = &gitIndex{paths: map[string]bool{}}
	if g.path == "" {
		return g.read, nil
	}
	text, err := readFileIn(g.path, "index")
	if err != nil || text == nil {
		return g.read, err
	}
	idx := &index.Index{}
	if err := index.NewDecoder(bytes.NewReader(text)).Decode(idx); err != nil {
		return nil, fmt.Errorf("read %s/index: %w", g.path, err)
	}
	for _, e := range idx.Entries {
		name, within := strings.CutPrefix(e.Name, g.Below)
		if !within {
			continue
		}
		if e.Mode == filemode.Submodule {
			g.read.submodules = append(g.read.submodules, name)
		}
		for p := name; p != "." && !g.read.paths[p]; p = filepath.Dir(p) {
			g.read.paths[p] = true
		}
	}
	slices.Sort(g.read.submodules)
	return g.read, nil
}

// Tracks reports whether git tracks a path, or one below it.
func (g *Dir) Tracks(name string) (bool, error) {
	idx, err := g.index()
	return err == nil && idx.paths[name], err
}

// Submodules returns the paths of the submodules that git tracks, sorted.
func (g *Dir) Submodules() ([]string, error) {
	idx, err := g.index()
	if err != nil {
		return nil, err
	}
	return idx.submodules, nil
}
