package file

import (
	"context"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/apply/action/place"
	"github.com/pullet/pullet/apply/hostfile"
)

// fileTree is a directory as it shall be: files, and the directories that they need.
type fileTree struct {
	files  []treeFile
	dirs   []string        // parents before what is in them
	known  map[string]bool // the paths of both
	hidden bool            // it is not shown in a diff
}

// treeFile is a file of a tree; its path is relative, with slashes.
type treeFile struct {
	path string
	data []byte
	exec bool
	mode fs.FileMode // where it comes from; 0: unknown
}

// add puts a file into the tree, with its directories.
func (t *fileTree) add(f treeFile) {
	if t.known == nil {
		t.known = map[string]bool{}
	}
	var parents []string
	for dir := path.Dir(f.path); dir != "." && !t.known[dir]; dir = path.Dir(dir) {
		parents = append(parents, dir)
		t.known[dir] = true
	}
	slices.Reverse(parents)
	t.dirs = append(t.dirs, parents...)
	if f.data == nil {
		f.data = []byte{}
	}
	t.known[f.path] = true
	t.files = append(t.files, f)
}

// has reports whether a path is part of the tree.
func (t *fileTree) has(rel string) bool { return t.known[rel] }

// placedTree is a tree that is put below a directory of this host.
type placedTree struct {
	step *Managed
	h    *apply.Host
	root *hostfile.Entry
	dir  *hostfile.Dir // nil: it is not there
	w    place.Tree
}

// inPlace is the tree on this host. It is to be closed.
func (a *Managed) inPlace(h *apply.Host) (*placedTree, error) {
	w, err := a.Permissions.Tree(h, a.TreeModes)
	if err != nil {
		return nil, err
	}
	root, err := h.Follow(a.Name)
	if err != nil {
		return nil, err
	}
	t := &placedTree{step: a, h: h, root: root, w: w}
	if root.IsDir() {
		if t.dir, err = root.Dir(); err != nil {
			t.close()
		}
	}
	return t, err
}

func (t *placedTree) close() {
	t.dir.Close()
	t.root.Close()
}

// at is a path of the tree on this host.
func (t *placedTree) at(rel string) (*hostfile.Entry, error) {
	if rel == "." {
		return t.root.Again(), nil
	}
	return t.dir.Entry(rel)
}

// check compares the tree with what is below the directory.
func (t *placedTree) check() (apply.Change, error) {
	var c place.Tally
	for _, rel := range append([]string{"."}, t.step.tree.dirs...) {
		summary, err := t.checkDir(rel)
		if err != nil {
			return apply.Change{}, err
		}
		c.Count(summary, t.displayPath(rel), "")
	}
	for _, f := range t.step.tree.files {
		is, err := t.checkFile(f)
		if err != nil {
			return apply.Change{}, err
		}
		c.Count(is.Summary, t.displayPath(f.path), is.Diff)
	}
	extra, err := t.step.extra(t.h, t.dir, t.step.Name, t.step.tree.has)
	c.Remove(t.step.Name, extra)
	change := c.Change()
	if !change.Empty() {
		change.Lacks = place.Lacks(t.step.Name, t.root, t.step.MakeDirs)
	}
	return change, err
}

func (t *placedTree) checkFile(f treeFile) (place.Found, error) {
	one, err := t.one(f)
	if err != nil {
		return place.Found{}, err
	}
	defer one.At.Close()
	return one.Check()
}

func (t *placedTree) applyFile(ctx context.Context, f treeFile, p place.Placing) error {
	one, err := t.one(f)
	if err != nil {
		return err
	}
	defer one.At.Close()
	return one.Apply(ctx, t.h, p)
}

// checkDir compares a directory of the tree. A link is not followed: it may lead anywhere.
func (t *placedTree) checkDir(rel string) (string, error) {
	at, err := t.at(rel)
	if err != nil {
		return "", err
	}
	defer at.Close()
	info, err := at.Lstat()
	switch {
	case hostfile.NotThere(err):
		return t.w.Dir.Created(place.NewDirMode), nil
	case err != nil:
		return "", err
	case !info.IsDir():
		return "", fmt.Errorf(
			"%s is no directory (%s), and the tree has one there: remove it with file.absent first",
			t.displayPath(rel),
			place.Kind(info),
		)
	}
	return strings.Join(t.w.Dir.Differs(info), ", "), nil
}

// apply makes the directories, writes the files, and removes what is too much.
func (t *placedTree) apply(ctx context.Context) error {
	if err := t.w.Dir.Known(); err != nil {
		return err
	}
	if err := t.step.Parents(t.step.Name, t.root); err != nil {
		return err
	}
	for _, rel := range append([]string{"."}, t.step.tree.dirs...) {
		if err := t.makeDir(rel); err != nil {
			return err
		}
	}
	placing := t.step.Placing
	placing.MakeDirs = false
	for _, f := range t.step.tree.files {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := t.applyFile(ctx, f, placing); err != nil {
			return err
		}
	}
	extra, err := t.step.extra(t.h, t.dir, t.step.Name, t.step.tree.has)
	if err != nil {
		return err
	}
	return removeAll(ctx, t.h, t.dir, t.step.Name, extra, t.step.Backup)
}

func (t *placedTree) makeDir(rel string) error {
	summary, err := t.checkDir(rel)
	if err != nil || summary == "" {
		return err
	}
	at, err := t.at(rel)
	if err != nil {
		return err
	}
	defer at.Close()
	dir, err := openOrMake(at)
	if err != nil {
		return err
	}
	if rel == "." {
		t.dir.Close()
		t.dir = dir
	} else {
		defer dir.Close()
	}
	if err := t.w.Dir.Set(dir); err != nil {
		return err
	}
	return at.SyncDir()
}

// openOrMake opens a directory, which is made with mode 0755 where it is missing.
func openOrMake(at *hostfile.Entry) (*hostfile.Dir, error) {
	dir, err := at.Dir()
	if hostfile.NotThere(err) {
		return at.Mkdir(0o755)
	}
	return dir, err
}

// one is a file of the tree.
func (t *placedTree) one(f treeFile) (place.File, error) {
	at, err := t.at(f.path)
	return place.File{
		Name: t.displayPath(f.path), At: at,
		Want: place.Content{Data: f.data, Hidden: t.step.tree.hidden}, Wanted: t.w.Of(f.mode, f.exec), Keep: !t.step.Replace,
	}, err
}

func (t *placedTree) displayPath(rel string) string { return path.Join(t.step.Name, rel) }
