package puller

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pullet/pullet/internal/gitrules"
)

// WorkTree is a state repository as it stands in a directory, committed or not. It is read as a commit is, with the
// same limits: regular files, and links that stay in the repository. What git would not commit is not there: files that
// git ignores, unless they are tracked, and what is neither a file nor a link. Refused says what is wrong with a tree
// that no host would take.
func WorkTree(ctx context.Context, dir string) (fs.FS, error) {
	root, err := os.OpenRoot(dir + "/.") // the garbage collector closes it
	if err != nil {
		return nil, err
	}
	git, err := gitrules.FindDir(ctx, dir)
	if err != nil {
		return nil, err
	}
	w := &workTree{ctx: ctx, root: root, git: git, tree: newTree(time.Time{})}
	w.tree.unseen = map[string]string{}
	w.tree.content = w.content
	w.tree.damaged = func(name string, cause error) error { return &fs.PathError{Op: "read", Path: name, Err: cause} }
	if err := w.fill(w.tree.nodes["."], "", git.Ignore, 0, false); err != nil {
		return nil, err
	}
	if err := w.refuseSubmodules(); err != nil {
		return nil, err
	}
	return w.tree, w.tree.complete(ctx)
}

// workTree reads a work tree.
type workTree struct {
	ctx  context.Context
	root *os.Root
	git  *gitrules.Dir
	tree *tree
}

// fill adds the entries of a directory, and of those below it. Of an ignored directory it adds what is tracked.
func (w *workTree) fill(dir *node, prefix string, rules gitrules.Ignore, depth int, ignored bool) error {
	if err := checkDepth(prefix, depth); err != nil {
		return err
	}
	infos, err := w.list(prefix)
	if err != nil {
		return err
	}
	if _, nested := infos[".git"]; nested && prefix != "" {
		return refuseSubmodule(strings.TrimSuffix(prefix, "/"))
	}
	if info := infos[".gitignore"]; info != nil && info.Mode().IsRegular() {
		if rules, err = w.rules(prefix, rules); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(infos)) {
		if err := w.ctx.Err(); err != nil {
			return err
		}
		if strings.EqualFold(name, ".git") {
			if name != ".git" {
				return contentError{prefix + name, "the name is reserved for git"}
			}
			continue
		}
		if err := w.add(dir, prefix, infos[name], rules, depth, ignored); err != nil {
			return err
		}
	}
	dir.sort()
	return nil
}

// add adds an entry of a directory, if git has it or would take it.
func (w *workTree) add(
	dir *node, prefix string, info fs.FileInfo, rules gitrules.Ignore, depth int, ignored bool,
) error {
	name := prefix + info.Name()
	unseen := func(why string) error {
		w.tree.unseen[name] = why
		return w.tree.count()
	}
	if !ignored {
		var err error
		if ignored, err = rules.Ignores(w.ctx, w.git.Below+name, info.IsDir()); err != nil {
			return err
		}
	}
	if ignored {
		tracked, err := w.git.Tracks(name)
		if err != nil {
			return err
		}
		if !tracked {
			return unseen("is ignored by git")
		}
	}
	n := &node{name: info.Name(), mode: info.Mode().Type(), size: info.Size()}
	switch {
	case info.IsDir():
		n.mode |= 0o755
	case n.mode == fs.ModeSymlink:
		n.mode |= 0o777
	case n.mode != 0:
		return unseen("is not a regular file")
	case info.Mode()&0o100 != 0:
		n.mode = 0o755
	default:
		n.mode = 0o644
	}
	if !info.IsDir() {
		return w.tree.add(dir, prefix, n)
	}
	if err := checkName(prefix + n.name); err != nil {
		return err
	}
	if err := w.fill(n, name+"/", rules, depth+1, ignored); err != nil || len(n.children) == 0 {
		return err // git has no empty directories
	}
	return w.tree.add(dir, prefix, n)
}

// list describes the entries of a directory by their names. A directory is as limited as one of a commit.
func (w *workTree) list(prefix string) (map[string]fs.FileInfo, error) {
	f, err := w.root.OpenFile(path.Clean(prefix), os.O_RDONLY|unix.O_DIRECTORY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	out, size := map[string]fs.FileInfo{}, int64(0)
	for {
		entries, err := f.ReadDir(1000)
		for _, e := range entries {
			if size += int64(len("100644 ") + len(e.Name()) + 1 + 20); size > maxTree {
				return nil, contentError{strings.TrimSuffix(prefix, "/"), tooLarge(size, maxTree, nil).Error()}
			}
			info, err := e.Info()
			if errors.Is(err, fs.ErrNotExist) { // removed since
				continue
			}
			if err != nil {
				return nil, err
			}
			out[e.Name()] = info
		}
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err = errors.Join(err, w.ctx.Err()); err != nil {
			return nil, err
		}
	}
}

// rules returns the rules with those of a directory's .gitignore.
func (w *workTree) rules(prefix string, rules gitrules.Ignore) (gitrules.Ignore, error) {
	name := prefix + ".gitignore"
	text, err := w.regular(name)
	if err != nil {
		return rules, err
	}
	rules, err = rules.Add(w.git.Below+prefix, text)
	if err != nil {
		return rules, contentError{name, err.Error()}
	}
	return rules, nil
}

// content returns the content of a file or the target of a link.
func (w *workTree) content(name string, n *node) ([]byte, error) {
	if n.mode&fs.ModeSymlink != 0 {
		target, err := w.root.Readlink(name)
		return []byte(target), err
	}
	return w.regular(name)
}

// regular reads a regular file that is as limited as one of a commit.
func (w *workTree) regular(name string) ([]byte, error) {
	text, err := gitrules.ReadRegular(w.root, name, maxObject)
	if unfit, is := errors.AsType[*gitrules.UnfitFileError](err); is {
		return nil, contentError{text: unfit.Error()}
	}
	return text, err
}

// refuseSubmodules refuses submodules that were not checked out; others show by their .git.
func (w *workTree) refuseSubmodules() error {
	if w.tree.nodes[".gitmodules"] == nil {
		return nil
	}
	found, err := w.git.Submodules()
	if err != nil || len(found) == 0 {
		return err
	}
	return refuseSubmodule(found[0])
}
