package git

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/format/index"
	"github.com/go-git/go-git/v5/plumbing/object"

	"github.com/pullet/pullet/apply/hostfile"
)

// The library's own work tree is not used: its reset removes files that the repository does not know, and follows links
// that it removes.

// gitFiles are the files of a commit or of an index by their names.
type gitFiles map[string]gitFile

type gitFile struct {
	mode filemode.FileMode
	hash plumbing.Hash
}

// files are those of a commit. A name that would lead elsewhere, or into the repository itself, is refused.
func (g *gitTree) files(commit plumbing.Hash) (gitFiles, error) {
	c, err := g.CommitObject(commit)
	if err != nil {
		return nil, err
	}
	root, err := c.Tree()
	if err != nil {
		return nil, err
	}
	out := gitFiles{}
	walker := object.NewTreeWalker(root, true, nil)
	defer walker.Close()
	for {
		name, entry, err := walker.Next()
		switch {
		case errors.Is(err, io.EOF):
			return out, nil
		case err != nil:
			return nil, err
		case !filepath.IsLocal(name) ||
			slices.ContainsFunc(strings.Split(name, "/"), func(part string) bool { return strings.EqualFold(part, ".git") }):
			return nil, fmt.Errorf(
				"commit %s has a file with the name %q, which is not safe",
				shortCommit(commit),
				name,
			)
		case entry.Mode != filemode.Dir:
			out[name] = gitFile{entry.Mode, entry.Hash}
		}
	}
}

// indexed are the files that the checkout knows, and what was known of them on disk.
func (g *gitTree) indexed() (gitFiles, *index.Index, error) {
	idx, err := g.storage.Index()
	if err != nil {
		return nil, nil, fmt.Errorf("its index cannot be read: %w", err)
	}
	out := gitFiles{}
	for _, e := range idx.Entries {
		out[e.Name] = gitFile{e.Mode, e.Hash}
	}
	return out, idx, nil
}

// changed names the files that are not as the commit that is checked out has them: on disk, or staged. What the
// repository does not know is no change.
func (g *gitTree) changed() ([]string, error) {
	known, idx, err := g.indexed()
	if err != nil {
		return nil, err
	}
	files := gitFiles{}
	if head, err := g.head(); err != nil {
		return nil, err
	} else if !head.IsZero() {
		if files, err = g.files(head); err != nil {
			return nil, err
		}
	}
	var out []string
	for name, f := range files {
		if known[name] != f {
			out = append(out, name)
		}
	}
	for _, e := range idx.Entries {
		if f, ok := files[e.Name]; ok && f == known[e.Name] {
			ok, err = g.holds(e.Name, f, e, idx)
			if ok || err != nil {
				continue
			}
		} else if ok {
			continue // named above
		}
		out = append(out, e.Name)
	}
	return out, err
}

// holds reports that a file is on disk as the repository has it. What the index knows of it saves reading it, where it
// was not written at about the time of the index itself.
func (g *gitTree) holds(name string, f gitFile, e *index.Entry, idx *index.Index) (bool, error) {
	at, err := g.dir.EntryHere(name)
	if at == nil {
		return err == nil && f.mode == filemode.Submodule, err
	}
	defer at.Close()
	return g.holdsAt(at, f, e, idx)
}

func (g *gitTree) holdsAt(at *hostfile.Entry, f gitFile, e *index.Entry, idx *index.Index) (bool, error) {
	info, err := at.Lstat()
	if hostfile.NotThere(err) || err == nil && !sameKind(f.mode, info.Mode()) {
		return f.mode == filemode.Submodule && err != nil, nil
	}
	if err != nil || f.mode == filemode.Submodule {
		return err == nil, err
	}
	if e != nil && e.ModifiedAt.Equal(info.ModTime()) && int64(e.Size) == info.Size() &&
		info.ModTime().Before(idx.ModTime) {
		return true, nil
	}
	if f.mode == filemode.Symlink {
		link, err := at.Readlink()
		return plumbing.ComputeHash(plumbing.BlobObject, []byte(link)) == f.hash, err
	}
	if size, err := g.storage.EncodedObjectSize(f.hash); err == nil &&
		size != info.Size() { // a user can make a file of any size
		return false, nil
	}
	hash := plumbing.NewHasher(plumbing.BlobObject, info.Size())
	err = at.CopyTo(hash, info.Size())
	return hash.Sum() == f.hash, err
}

// sameKind reports that a file on disk is of the kind that the repository says.
func sameKind(want filemode.FileMode, have fs.FileMode) bool {
	switch want {
	case filemode.Symlink:
		return have&fs.ModeSymlink != 0
	case filemode.Submodule:
		return have.IsDir()
	case filemode.Executable:
		return have.IsRegular() && have&0o100 != 0
	}
	return have.IsRegular() && have&0o100 == 0
}

// inTheWay names what a checkout of the target would destroy: what is local, and files that the target has and nobody
// knew before.
func (g *gitTree) inTheWay(t gitTarget) (string, error) {
	local, err := g.local(t)
	if err != nil || local != "" {
		return local, err
	}
	known, _, err := g.indexed()
	if err != nil {
		return "", err
	}
	files, err := g.files(t.commit)
	if err != nil {
		return "", err
	}
	var unknown []string
	for name, f := range files {
		if _, before := known[name]; before {
			continue
		}
		free, err := g.free(name, f, known)
		if err != nil {
			return "", err
		}
		if !free {
			unknown = append(unknown, name)
		}
	}
	if len(unknown) > 0 {
		return "files that are now in the repository too, " + someNames(unknown), nil
	}
	return "", nil
}

// free reports that a new file of the repository replaces nothing but what the repository knew.
func (g *gitTree) free(name string, f gitFile, known gitFiles) (bool, error) {
	if parent, ok := g.dir.inTheWayOf(name); ok {
		_, ours := known[parent]
		return ours, nil
	}
	at, err := g.dir.Entry(name)
	if err != nil {
		return false, err
	}
	defer at.Close()
	info, err := at.Lstat()
	switch {
	case hostfile.NotThere(err):
		return true, nil
	case err != nil:
		return false, err
	case !info.IsDir() || f.mode == filemode.Submodule:
		return g.holdsAt(at, f, nil, nil)
	}
	dir, err := at.Dir() // of files that the repository knew or of others
	if err != nil {
		return false, err
	}
	defer dir.Close()
	free := true
	err = dir.Walk(context.Background(), func(rel string, _ *hostfile.Entry, info hostfile.Info) error {
		if !info.IsDir() {
			_, ours := known[path.Join(name, rel)]
			free = free && ours
		}
		return nil
	})
	return free, err
}
