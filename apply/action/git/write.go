package git

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"strings"

	"github.com/go-git/go-git/v5/config"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/format/index"
	"golang.org/x/sys/unix"

	"github.com/pullet/pullet/apply/action/place"
	"github.com/pullet/pullet/apply/hostfile"
)

// checkout makes the work tree that of the target. Files that the repository does not know are left alone, unless they
// are in the way.
func (g *gitTree) checkout(ctx context.Context, t gitTarget) error {
	before, err := g.before()
	if err != nil {
		return err
	}
	files, err := g.files(t.commit)
	if err != nil {
		return err
	}
	if err := g.refuse(ctx, files); err != nil {
		return err
	}
	if err := g.mark(t.commit); err != nil {
		return err
	}
	for name := range before {
		if _, stays := files[name]; !stays {
			if err := g.dir.removeTracked(name); err != nil {
				return err
			}
		}
	}
	idx := &index.Index{Version: 2}
	for name, f := range files {
		entry, err := g.place(name, f)
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
func (g *gitTree) mark(commit plumbing.Hash) error {
	at, err := g.own.Entry(gitHalfway)
	if err != nil {
		return err
	}
	defer at.Close()
	f, err := at.OpenFile(os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(commit.String() + "\n")
	return errors.Join(err, f.Sync(), f.Close())
}

// maxMarked bounds the notes of checkouts that were cut off.
const maxMarked = 1 << 20

func (g *gitTree) marked() (string, error) {
	at, err := g.own.Entry(gitHalfway)
	if err != nil {
		return "", err
	}
	defer at.Close()
	data, err := at.ReadFile(maxMarked)
	if hostfile.NotThere(err) {
		return "", nil
	}
	return string(data), err
}

// before are the files that may be in the work tree: those that the index knows, if it is a whole one, those of the
// commit that was checked out last, and those of checkouts that were cut off, whose files that had no place yet are
// removed.
func (g *gitTree) before() (gitFiles, error) {
	known, _, err := g.indexed()
	if err != nil {
		known = gitFiles{}
	}
	if done, err := g.Reference(gitDone, true); err == nil {
		if _, err := g.addFiles(known, done.Hash()); err != nil {
			return nil, err
		}
	}
	marked, err := g.marked()
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(marked) {
		files, err := g.addFiles(known, plumbing.NewHash(strings.TrimSpace(line)))
		if err != nil {
			return nil, err
		}
		for name, f := range files {
			if err := g.dir.removeLeft(path.Join(path.Dir(name), besideFile(f))); err != nil {
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
func besideFile(f gitFile) string { return ".pullet-" + f.hash.String() }

// place makes a file what the repository says, and returns what the index is to know of it.
func (g *gitTree) place(name string, f gitFile) (*index.Entry, error) {
	if parent, ok := g.dir.inTheWayOf(name); ok {
		if err := g.dir.removeLeft(parent); err != nil {
			return nil, err
		}
	}
	if err := g.dir.MkdirAll(path.Dir(name), 0o755); err != nil {
		return nil, err
	}
	at, err := g.dir.Entry(name)
	if err != nil {
		return nil, err
	}
	defer at.Close()
	holds, err := g.holdsAt(at, f, nil, nil)
	if err == nil && (!holds || f.mode == filemode.Submodule) {
		err = g.write(at, f)
	}
	if err != nil {
		return nil, err
	}
	e := &index.Entry{Name: name, Mode: f.mode, Hash: f.hash}
	info, err := at.Lstat()
	if err != nil || f.mode == filemode.Submodule {
		return e, err
	}
	e.ModifiedAt, e.Size = info.ModTime(), uint32(info.Size())
	if st, ok := hostfile.Stat(info); ok {
		e.Dev, e.Inode, e.UID, e.GID = uint32(st.Dev), uint32(st.Ino), st.Uid, st.Gid
	}
	return e, nil
}

// write makes a file under another name and renames it into place.
func (g *gitTree) write(at *hostfile.Entry, f gitFile) error {
	if f.mode == filemode.Submodule { // its place; what belongs there is not fetched
		dir, err := at.Mkdir(0o755)
		dir.Close()
		if errors.Is(err, fs.ErrExist) {
			return nil
		}
		return err
	}
	if at.IsDir() {
		if err := at.RemoveAll(context.Background()); err != nil {
			return err
		}
	}
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
		link, err := io.ReadAll(io.LimitReader(content, unix.PathMax))
		if err != nil {
			return err
		}
		return at.Symlink(string(link), -1, -1)
	}
	return writeBlob(at, f, content)
}

func writeBlob(at *hostfile.Entry, f gitFile, content io.Reader) error {
	mode := fs.FileMode(0o644)
	if f.mode == filemode.Executable {
		mode = 0o755
	}
	c, err := at.CandidateNamed(besideFile(f))
	if err != nil {
		return err
	}
	defer c.Drop()
	if _, err := io.Copy(c, content); err != nil {
		return err
	}
	if err := c.Set(hostfile.Attributes{UID: -1, GID: -1, Mode: mode, SetMode: true}); err != nil {
		return err
	}
	return c.PlaceUnsynced()
}

// point makes HEAD the target: a branch of the remote is one here too, everything else is a commit alone.
func (g *gitTree) point(t gitTarget) error {
	if !t.ref.IsBranch() {
		return g.storage.SetReference(plumbing.NewHashReference(plumbing.HEAD, t.commit))
	}
	// A kill in between changes nothing: the checkout is marked as one that was cut off.
	moved := map[plumbing.ReferenceName]plumbing.Hash{broughtTo(t.ref): t.commit, t.ref: t.commit}
	if err := g.setRefs(moved); err != nil {
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

// finish gives the files to their owner and records that the checkout is whole. All of it is on disk before the mark is
// gone.
func (g *gitTree) finish(ctx context.Context, commit plumbing.Hash, w place.Wanted) error {
	if err := g.storage.SetReference(plumbing.NewHashReference(gitDone, commit)); err != nil {
		return err
	}
	if _, err := differentOwners(ctx, g.dir.Dir, w, true); err != nil {
		return err
	}
	if err := g.dir.SyncFS(); err != nil {
		return err
	}
	if err := (gitDisk{g.own}).Remove(gitHalfway); err != nil {
		return err
	}
	return g.own.Sync()
}

// tidyPacks removes what a fetch that was cut off leaves: half of a pack, and an index whose pack never came, which the
// library would not write again.
func (g *gitTree) tidyPacks() error {
	disk, dir := gitDisk{g.own}, "objects/pack"
	found, err := disk.ReadDir(dir)
	if err != nil && !hostfile.NotThere(err) {
		return err
	}
	packs := map[string]bool{}
	for _, info := range found {
		packs[info.Name()] = true
	}
	for name := range packs {
		base, isIndex := strings.CutSuffix(name, ".idx")
		if strings.HasPrefix(name, "tmp_") || isIndex && !packs[base+".pack"] {
			if err := disk.Remove(path.Join(dir, name)); err != nil {
				return err
			}
		}
	}
	return nil
}
