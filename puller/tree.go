package puller

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"

	"github.com/pullet/pullet/internal/gitremote"
)

const (
	maxPaths = 1_000_000 // a commit of a few kilobytes can name far more
	maxDepth = 100
)

// tree is the content of one commit as a file system: names and hashes are in
// memory, contents are read when they are asked for.
type tree struct {
	store *store
	when  time.Time // of the commit; every file has it
	nodes map[string]*node
}

// node is a file, directory or symbolic link.
type node struct {
	name     string // the last element of its path
	mode     fs.FileMode
	hash     plumbing.Hash
	size     int64
	children []*node // sorted by name
}

// tree reads the directories of a commit and makes sure that its files exist.
func (s *store) tree(ctx context.Context, commit plumbing.Hash) (*tree, error) {
	c, err := s.commit(commit)
	if err != nil {
		return nil, fmt.Errorf("commit %s: %w", short(commit.String()), err)
	}
	root := &node{name: ".", mode: fs.ModeDir | 0o755, hash: c.TreeHash}
	t := &tree{store: s, when: c.Committer.When, nodes: map[string]*node{".": root}}
	if err := t.fill(ctx, root, "", 0); err != nil {
		return nil, err
	}
	if err := t.measure(); err != nil {
		return nil, err
	}
	return t, t.refuseElsewhere()
}

// measure sets the sizes of all files; a missing one is an error.
func (t *tree) measure() error {
	var files []*node
	var ids []plumbing.Hash
	for _, n := range t.nodes {
		if !n.mode.IsDir() {
			files, ids = append(files, n), append(ids, n.hash)
		}
	}
	sizes, err := t.store.sizes(ids)
	for i, n := range files {
		n.size = sizes[i]
	}
	return err
}

// fill adds the entries of a directory, and of those below it.
func (t *tree) fill(ctx context.Context, dir *node, prefix string, depth int) error {
	if depth > maxDepth {
		return contentError{fmt.Sprintf("directory %q: deeper than the limit of %d", prefix, maxDepth)}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	entries, err := t.store.entries(dir.hash)
	if err != nil {
		return fmt.Errorf("directory %q: %w", "/"+prefix, err)
	}
	for _, e := range entries {
		n, err := t.add(prefix, e)
		if err != nil {
			return err
		}
		dir.children = append(dir.children, n)
		if !n.mode.IsDir() {
			continue
		}
		if err := t.fill(ctx, n, prefix+e.Name+"/", depth+1); err != nil {
			return err
		}
	}
	// Git sorts directories as if their names ended in a slash.
	slices.SortFunc(dir.children, func(a, b *node) int { return strings.Compare(a.name, b.name) })
	return nil
}

// add makes the node of an entry.
func (t *tree) add(prefix string, e object.TreeEntry) (*node, error) {
	name := prefix + e.Name
	if e.Mode == filemode.Submodule {
		return nil, contentError{
			fmt.Sprintf("path %q: a submodule, which pullet does not fetch: put its files into the repository", name),
		}
	}
	if !utf8.ValidString(e.Name) {
		return nil, contentError{fmt.Sprintf("path %q: the name is not valid UTF-8", name)}
	}
	if len(t.nodes) > maxPaths {
		return nil, contentError{fmt.Sprintf("more paths than the limit of %d", maxPaths)}
	}
	n := &node{name: e.Name, mode: modeOf(e.Mode), hash: e.Hash}
	t.nodes[name] = n
	return n, nil
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

// find returns the node of a path that can be opened.
func (t *tree) find(op, name string) (*node, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: op, Path: name, Err: fs.ErrInvalid}
	}
	n := t.nodes[name]
	for p := name; p != "."; p = path.Dir(p) {
		if n := t.nodes[p]; n != nil && n.mode&fs.ModeSymlink != 0 {
			return nil, fmt.Errorf(
				"%s %s: %s is a symbolic link in the repository: pullet reads regular files only",
				op,
				name,
				p,
			)
		}
	}
	if n == nil {
		return nil, &fs.PathError{Op: op, Path: name, Err: fs.ErrNotExist}
	}
	return n, nil
}

// Open opens a file or directory; a file's content is read at the first Read.
func (t *tree) Open(name string) (fs.File, error) {
	n, err := t.find("open", name)
	if err != nil {
		return nil, err
	}
	info := info{node: n, when: t.when}
	if n.mode.IsDir() {
		return &openDir{info: info, path: name, left: t.list(n)}, nil
	}
	return &openFile{info: info, load: func() ([]byte, error) { return t.read(name, n) }}, nil
}

// Stat describes a path.
func (t *tree) Stat(name string) (fs.FileInfo, error) {
	n, err := t.find("stat", name)
	if err != nil {
		return nil, err
	}
	return info{node: n, when: t.when}, nil
}

// ReadFile returns a file's content, which the caller may change.
func (t *tree) ReadFile(name string) ([]byte, error) {
	n, err := t.find("read", name)
	if err != nil {
		return nil, err
	}
	if n.mode.IsDir() {
		return nil, &fs.PathError{Op: "read", Path: name, Err: errors.New("is a directory")}
	}
	return t.read(name, n)
}

// ReadDir lists a directory, sorted by name.
func (t *tree) ReadDir(name string) ([]fs.DirEntry, error) {
	n, err := t.find("readdir", name)
	if err != nil {
		return nil, err
	}
	if !n.mode.IsDir() {
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: errors.New("not a directory")}
	}
	return t.list(n), nil
}

func (t *tree) list(n *node) []fs.DirEntry {
	list := make([]fs.DirEntry, len(n.children))
	for i, child := range n.children {
		list[i] = fs.FileInfoToDirEntry(info{node: child, when: t.when})
	}
	return list
}

// read tells what is wrong with a file from what is wrong with the store.
func (t *tree) read(name string, n *node) ([]byte, error) {
	data, err := t.store.blob(n.hash)
	switch {
	case err == nil && gitremote.IsPointer(data):
		return nil, &fs.PathError{Op: "read", Path: name, Err: keptInLFS(name)}
	case err == nil:
		return data, nil
	case atFault(err) || errors.Is(err, fs.ErrClosed):
		return nil, &fs.PathError{Op: "read", Path: name, Err: err}
	}
	return nil, t.store.damaged(name, err)
}
