package git

import (
	"errors"
	"io"
	"os"
	"path"
	"strings"

	"github.com/go-git/go-billy/v5"
	"github.com/go-git/go-git/v5/plumbing"
)

// pulletRefs are the references that pullet keeps for itself. What they name was brought by pullet.
const pulletRefs = "refs/pullet/"

// broughtTo is where pullet left a branch.
func broughtTo(branch plumbing.ReferenceName) plumbing.ReferenceName {
	return plumbing.ReferenceName(pulletRefs + "branch/" + branch.Short())
}

// excludes reports two names of which a repository has one at most, such as those of branches a and a/b.
func excludes(a, b plumbing.ReferenceName) bool {
	return strings.HasPrefix(a.String(), b.String()+"/") || strings.HasPrefix(b.String(), a.String()+"/")
}

// setRefs sets references, which may be all of a remote. Those that their names exclude give way.
func (g *gitTree) setRefs(commits map[plumbing.ReferenceName]plumbing.Hash) error {
	above := map[string]bool{} // the names that have one of those to be set below them
	for name := range commits {
		for up := path.Dir(name.String()); up != "."; up = path.Dir(up) {
			above[up] = true
		}
	}
	refs, err := g.References()
	if err != nil {
		return err
	}
	err = refs.ForEach(func(ref *plumbing.Reference) error {
		gives := above[ref.Name().String()]
		for up := path.Dir(ref.Name().String()); up != "." && !gives; up = path.Dir(up) {
			_, gives = commits[plumbing.ReferenceName(up)]
		}
		if !gives {
			return nil
		}
		return g.storage.RemoveReference(ref.Name())
	})
	if err != nil {
		return err
	}
	for name, commit := range commits {
		err := removeEmpty(g.storage.Filesystem(), name.String())
		if err == nil {
			err = g.storage.SetReference(plumbing.NewHashReference(name, commit))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// removeEmpty removes a directory in which there are only directories. It leaves everything else as it is.
func removeEmpty(disk billy.Filesystem, name string) error {
	info, err := disk.Lstat(name)
	if errors.Is(err, os.ErrNotExist) || err == nil && !info.IsDir() {
		return nil
	}
	if err != nil {
		return err
	}
	inner, err := disk.ReadDir(name)
	if err != nil {
		return err
	}
	for _, one := range inner {
		if err := removeEmpty(disk, path.Join(name, one.Name())); err != nil {
			return err
		}
	}
	return disk.Remove(name)
}

// wholeRefs is the directory of a repository in which a reference is replaced as a whole. go-git truncates its file and
// writes it anew: a kill in between would leave an empty one, which is no reference and makes the repository
// unreadable.
type wholeRefs struct{ billy.Filesystem }

// newRef is where a reference is written: one at a time.
const newRef = "pullet-ref"

// OpenFile opens a reference that is to be written under another name, outside of refs, where nobody takes it for one.
func (fs wholeRefs) OpenFile(name string, flag int, perm os.FileMode) (billy.File, error) {
	if flag&(os.O_WRONLY|os.O_RDWR) == 0 || !isRefFile(name) {
		return fs.Filesystem.OpenFile(name, flag, perm)
	}
	file, err := fs.Filesystem.OpenFile(newRef, os.O_RDWR|os.O_CREATE|os.O_TRUNC, perm)
	if err != nil {
		return nil, err
	}
	out := &wholeFile{File: file, fs: fs.Filesystem, name: name}
	if flag&os.O_TRUNC != 0 {
		return out, nil
	}
	return out, out.begin()
}

// isRefFile reports a file that holds one reference.
func isRefFile(name string) bool {
	name = path.Clean(strings.TrimPrefix(name, "/"))
	return name == "HEAD" || strings.HasPrefix(name, "refs/")
}

// wholeFile takes the place of a file when it is closed, if all writes to it succeeded.
type wholeFile struct {
	billy.File
	fs     billy.Filesystem
	name   string
	failed bool
}

// begin fills in what the file holds so far: the writer looks at it before it writes.
func (f *wholeFile) begin() error {
	old, err := f.fs.Open(f.name)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err == nil {
		_, err = io.Copy(f.File, old)
		err = errors.Join(err, old.Close())
	}
	if err == nil {
		_, err = f.File.Seek(0, io.SeekStart)
	}
	if err != nil {
		return errors.Join(err, f.drop())
	}
	return nil
}

func (f *wholeFile) Write(p []byte) (int, error) {
	n, err := f.File.Write(p)
	f.failed = f.failed || err != nil
	return n, err
}

// Close puts the file into place.
func (f *wholeFile) Close() error {
	if f.failed {
		return f.drop()
	}
	if err := f.File.Close(); err != nil {
		return err
	}
	return f.fs.Rename(newRef, f.name)
}

func (f *wholeFile) drop() error { return errors.Join(f.File.Close(), f.fs.Remove(newRef)) }
