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

	"github.com/pullet/pullet/internal/gitremote"
)

const (
	maxPaths = 1_000_000 // a commit of a few kilobytes can name far more
	maxDepth = 100
)

// tree is the content of one commit, or of a work tree, as a file system: names are in memory, contents are read when
// they are asked for.
type tree struct {
	when  time.Time        // of every file
	nodes map[string]*node // by path without links
	// content returns the content of a file or the target of a link.
	content func(path string, n *node) ([]byte, error)
	// damaged records that content failed for another reason than a contentError.
	damaged func(path string, cause error) error
	unseen  map[string]string // paths of a work tree that no commit has, with the reason
}

// node is a file, directory or symbolic link.
type node struct {
	name     string // the last element of its path
	mode     fs.FileMode
	hash     plumbing.Hash // of a commit's
	size     int64
	children []*node // sorted by name
	link     *treeLink
}

func newTree(when time.Time) *tree {
	root := &node{name: ".", mode: fs.ModeDir | 0o755}
	return &tree{when: when, nodes: map[string]*node{".": root}}
}

// complete follows the links of a tree whose nodes are known, and refuses files that it does not hold.
func (t *tree) complete(ctx context.Context) error {
	if err := t.follow(ctx); err != nil {
		return err
	}
	return t.refuseElsewhere(ctx)
}

func checkDepth(prefix string, depth int) error {
	if depth > maxDepth {
		return contentError{strings.TrimSuffix(prefix, "/"), fmt.Sprintf("deeper than the limit of %d", maxDepth)}
	}
	return nil
}

func refuseSubmodule(name string) error {
	return contentError{name, "a submodule, which pullet does not fetch: put its files into the repository"}
}

// add adds a node to a directory.
func (t *tree) add(dir *node, prefix string, n *node) error {
	if err := checkName(prefix + n.name); err != nil {
		return err
	}
	if err := t.count(); err != nil {
		return err
	}
	t.nodes[prefix+n.name] = n
	dir.children = append(dir.children, n)
	return nil
}

func checkName(name string) error {
	if !utf8.ValidString(name) {
		return contentError{name, "the name is not valid UTF-8"}
	}
	return nil
}

// count refuses more paths than a tree may have.
func (t *tree) count() error {
	if len(t.nodes)+len(t.unseen) > maxPaths {
		return contentError{text: fmt.Sprintf("more paths than the limit of %d", maxPaths)}
	}
	return nil
}

func (n *node) sort() {
	slices.SortFunc(n.children, func(a, b *node) int { return strings.Compare(a.name, b.name) })
}

// find returns the node of a path that can be opened, links followed.
func (t *tree) find(op, name string) (at string, n *node, err error) {
	if !fs.ValidPath(name) {
		return "", nil, &fs.PathError{Op: op, Path: name, Err: fs.ErrInvalid}
	}
	if n := t.nodes[name]; n != nil && n.link == nil {
		return name, n, nil
	}
	if at, err = t.resolve(".", name); err != nil {
		if e, ok := errors.AsType[*refusedLinkError](err); ok && e.path == name {
			e.path = ""
		}
		return "", nil, &fs.PathError{Op: op, Path: name, Err: err}
	}
	return at, t.nodes[at], nil
}

// Open opens a file or directory; a file's content is read at the first Read.
func (t *tree) Open(name string) (fs.File, error) {
	at, n, err := t.find("open", name)
	if err != nil {
		return nil, err
	}
	info := t.info(path.Base(name), at, n)
	if n.mode.IsDir() {
		return &openDir{info: info, path: name, left: t.list(at, n)}, nil
	}
	return &openFile{info: info, load: func() ([]byte, error) { return t.read(name, at, n) }}, nil
}

// Stat describes a path.
func (t *tree) Stat(name string) (fs.FileInfo, error) {
	at, n, err := t.find("stat", name)
	if err != nil {
		return nil, err
	}
	return t.info(path.Base(name), at, n), nil
}

// ReadFile returns a file's content, which the caller may change.
func (t *tree) ReadFile(name string) ([]byte, error) {
	at, n, err := t.find("read", name)
	if err != nil {
		return nil, err
	}
	if n.mode.IsDir() {
		return nil, &fs.PathError{Op: "read", Path: name, Err: errors.New("is a directory")}
	}
	return t.read(name, at, n)
}

// ReadDir lists a directory, sorted by name. A link is listed as the file or directory that it leads to, or as a link
// if it cannot be followed.
func (t *tree) ReadDir(name string) ([]fs.DirEntry, error) {
	at, n, err := t.find("readdir", name)
	if err != nil {
		return nil, err
	}
	if !n.mode.IsDir() {
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: errors.New("not a directory")}
	}
	return t.list(at, n), nil
}

func (t *tree) list(dir string, n *node) []fs.DirEntry {
	list := make([]fs.DirEntry, len(n.children))
	for i, child := range n.children {
		at, shown := path.Join(dir, child.name), child
		if child.link != nil && child.link.refused == "" {
			at, shown = child.link.to, t.nodes[child.link.to]
		}
		list[i] = fs.FileInfoToDirEntry(t.info(child.name, at, shown))
	}
	return list
}

func (t *tree) info(name, at string, n *node) info {
	return info{node: n, name: name, at: at, when: t.when}
}

// read returns the content of the file at a path without links. It tells a fault of the file from one of the store.
func (t *tree) read(name, at string, n *node) ([]byte, error) {
	data, err := t.content(at, n)
	switch {
	case err == nil && gitremote.IsPointer(data):
		return nil, &fs.PathError{Op: "read", Path: name, Err: keptInLFS(name)}
	case err == nil:
		return data, nil
	case atFault(err) || errors.Is(err, fs.ErrClosed):
		return nil, &fs.PathError{Op: "read", Path: name, Err: err}
	}
	return nil, t.damaged(name, err)
}
