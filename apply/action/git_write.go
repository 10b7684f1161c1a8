package action

import (
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/go-git/go-git/v5/config"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/format/index"

	"github.com/pullet/pullet/state"
)

// checkout makes the work tree that of the target. Files that the repository does not know are left alone, unless they are in the way.
func (g *gitTree) checkout(t gitTarget) error {
	root, err := os.OpenRoot(g.dir) // no link leads out of it
	if err != nil {
		return err
	}
	defer root.Close()
	before, err := g.before(root)
	if err != nil {
		return err
	}
	files, err := g.files(t.commit)
	if err != nil {
		return err
	}
	if err := g.refuse(files); err != nil {
		return err
	}
	if err := g.mark(root, t.commit); err != nil {
		return err
	}
	for name := range before {
		if _, stays := files[name]; !stays {
			if err := removeTracked(root, name); err != nil {
				return err
			}
		}
	}
	idx := &index.Index{Version: 2}
	for name, f := range files {
		entry, err := g.place(root, name, f)
		if err != nil {
			return err
		}
		idx.Entries = append(idx.Entries, entry)
	}
	if err := g.point(t); err != nil {
		return err
	}
	return g.storage.SetIndex(idx)
}

// mark notes that from now on the work tree may hold a part of a commit, beside parts of those that are noted already.
func (g *gitTree) mark(root *os.Root, commit plumbing.Hash) error {
	f, err := root.OpenFile(path.Join(".git", gitHalfway), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(commit.String() + "\n")
	return errors.Join(err, f.Sync(), f.Close())
}

// before are the files that may be in the work tree: those that the index knows, if it is a whole one, those of the commit that was
// checked out last, and those of checkouts that were cut off, whose files that had no place yet are removed.
func (g *gitTree) before(root *os.Root) (gitFiles, error) {
	known, _, err := g.indexed()
	if err != nil {
		known = gitFiles{}
	}
	if done, err := g.Reference(gitDone, true); err == nil {
		if _, err := g.addFiles(known, done.Hash()); err != nil {
			return nil, err
		}
	}
	marked, err := root.ReadFile(path.Join(".git", gitHalfway))
	if err != nil && !missing(err) {
		return nil, err
	}
	for line := range strings.Lines(string(marked)) {
		files, err := g.addFiles(known, plumbing.NewHash(strings.TrimSpace(line)))
		if err != nil {
			return nil, err
		}
		for name, f := range files {
			if err := root.Remove(besideFile(name, f)); err != nil && !missing(err) {
				return nil, err
			}
		}
	}
	return known, nil
}

// addFiles adds the files of a commit, if it is here, and returns them.
func (g *gitTree) addFiles(to gitFiles, commit plumbing.Hash) (gitFiles, error) {
	if !g.has(commit) {
		return nil, nil
	}
	files, err := g.files(commit)
	maps.Copy(to, files)
	return files, err
}

// besideFile is the name that a file has before it is renamed into place.
func besideFile(name string, f gitFile) string {
	return path.Join(path.Dir(name), ".pullet-"+f.hash.String())
}

// removeTracked removes a file and the directories that are empty then. What became a directory is not what the repository knew.
func removeTracked(root *os.Root, name string) error {
	info, err := root.Lstat(name)
	switch {
	case missing(err) || err == nil && info.IsDir():
		return nil
	case err != nil:
		return err
	}
	if parent, ok := linkAmong(root, name); ok && parent != name { // it lies behind a link: somewhere else
		return nil
	}
	if err := root.Remove(name); err != nil {
		return err
	}
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		if root.Remove(dir) != nil { // it is not empty
			break
		}
	}
	return nil
}

// linkAmong is the first of a name and its parents, from the top, that is there and is no directory.
func linkAmong(root *os.Root, name string) (string, bool) {
	parts := strings.Split(name, "/")
	for i := range parts {
		at := path.Join(parts[:i+1]...)
		if info, err := root.Lstat(at); err == nil && !info.IsDir() {
			return at, true
		}
	}
	return "", false
}

// place makes a file what the repository says, and returns what the index is to know of it.
func (g *gitTree) place(root *os.Root, name string, f gitFile) (*index.Entry, error) {
	if parent, ok := linkAmong(root, name); ok && parent != name {
		if err := root.Remove(parent); err != nil {
			return nil, err
		}
	}
	holds, err := g.holds(name, f, nil, nil)
	if err == nil && (!holds || f.mode == filemode.Submodule) {
		err = g.write(root, name, f)
	}
	if err != nil {
		return nil, err
	}
	e := &index.Entry{Name: name, Mode: f.mode, Hash: f.hash}
	info, err := root.Lstat(name)
	if err != nil || f.mode == filemode.Submodule {
		return e, err
	}
	e.ModifiedAt, e.Size = info.ModTime(), uint32(info.Size())
	if st, ok := statOf(info); ok {
		e.Dev, e.Inode, e.UID, e.GID = uint32(st.Dev), uint32(st.Ino), st.Uid, st.Gid
	}
	return e, nil
}

// write makes a file under another name and renames it into place.
func (g *gitTree) write(root *os.Root, name string, f gitFile) error {
	if err := root.MkdirAll(path.Dir(name), 0o755); err != nil {
		return err
	}
	if f.mode == filemode.Submodule { // its place; what belongs there is not fetched
		if err := root.Mkdir(name, 0o755); !errors.Is(err, fs.ErrExist) {
			return err
		}
		return nil
	}
	if info, err := root.Lstat(name); err == nil && info.IsDir() {
		if err := root.RemoveAll(name); err != nil {
			return err
		}
	}
	from := besideFile(name, f)
	if err := g.writeCandidate(root, from, f); err != nil {
		return errors.Join(err, root.Remove(from))
	}
	return root.Rename(from, name)
}

func (g *gitTree) writeCandidate(root *os.Root, name string, f gitFile) (err error) {
	blob, err := g.BlobObject(f.hash)
	if err != nil {
		return err
	}
	content, err := blob.Reader()
	if err != nil {
		return err
	}
	defer content.Close()
	if f.mode == filemode.Symlink {
		link, err := io.ReadAll(content)
		if err != nil {
			return err
		}
		return root.Symlink(string(link), name)
	}
	mode := fs.FileMode(0o644)
	if f.mode == filemode.Executable {
		mode = 0o755
	}
	to, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(to, content)
	return errors.Join(err, to.Close())
}

// point makes HEAD the target: a branch of the remote is one here too, everything else is a commit alone.
func (g *gitTree) point(t gitTarget) error {
	if !t.ref.IsBranch() {
		return g.storage.SetReference(plumbing.NewHashReference(plumbing.HEAD, t.commit))
	}
	if err := g.storage.SetReference(plumbing.NewHashReference(t.ref, t.commit)); err != nil {
		return err
	}
	if err := g.storage.SetReference(plumbing.NewSymbolicReference(plumbing.HEAD, t.ref)); err != nil {
		return err
	}
	c, err := g.Config()
	if err != nil || c.Branches[t.ref.Short()] != nil {
		return err
	}
	c.Branches[t.ref.Short()] = &config.Branch{Name: t.ref.Short(), Remote: "origin", Merge: t.ref}
	return g.SetConfig(c)
}

// finish gives the files to their owner and records that the checkout is whole. All of it is on disk before the mark is gone.
func (g *gitTree) finish(commit plumbing.Hash, w wanted) error {
	if err := g.storage.SetReference(plumbing.NewHashReference(gitDone, commit)); err != nil {
		return err
	}
	if _, err := differentOwners(g.dir, w, true); err != nil {
		return err
	}
	if err := syncAll(g.dir); err != nil {
		return err
	}
	own := filepath.Join(g.dir, ".git")
	if err := os.Remove(filepath.Join(own, gitHalfway)); err != nil {
		return err
	}
	return state.SyncDir(own)
}

// tidyPacks removes what a fetch that was cut off leaves: half of a pack, and an index whose pack never came, which the library would not
// write again.
func (g *gitTree) tidyPacks() error {
	dir := filepath.Join(g.dir, ".git", "objects", "pack")
	entries, err := os.ReadDir(dir)
	if err != nil && !missing(err) {
		return err
	}
	for _, e := range entries {
		base, isIndex := strings.CutSuffix(e.Name(), ".idx")
		if strings.HasPrefix(e.Name(), "tmp_") || isIndex && !exists(filepath.Join(dir, base+".pack")) {
			if err := os.Remove(filepath.Join(dir, e.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}
