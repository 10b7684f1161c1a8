package git

import (
	"errors"
	"io"
	"os"
	"path"
	"strings"

	"github.com/go-git/go-billy/v5"
)

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
