package git

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/go-git/go-billy/v5"
	"github.com/go-git/go-billy/v5/helper/chroot"

	"github.com/pullet/pullet/apply/hostfile"
)

// gitDisk is a repository's directory for the library. It may be a user's: what is opened there is a regular file, and
// no link is followed.
type gitDisk struct{ dir *hostfile.Dir }

// gitDiskFile is a file of a repository.
type gitDiskFile struct {
	*os.File
	name string
}

// Name is the path in the repository.
func (f gitDiskFile) Name() string { return f.name }

// Lock does nothing: git does not take such locks, a user could hold one for ever, and a run has the run lock.
func (gitDiskFile) Lock() error { return nil }

// Unlock is the other half of Lock.
func (gitDiskFile) Unlock() error { return nil }

func (d gitDisk) entry(name string) (*hostfile.Entry, error) {
	return d.dir.Entry(strings.TrimPrefix(path.Clean("/"+name), "/"))
}

// Create makes or empties a file.
func (d gitDisk) Create(name string) (billy.File, error) {
	return d.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o666)
}

// Open opens a file for reading.
func (d gitDisk) Open(name string) (billy.File, error) { return d.OpenFile(name, os.O_RDONLY, 0) }

// OpenFile opens a file. One that is made gets its directories.
func (d gitDisk) OpenFile(name string, flag int, perm fs.FileMode) (billy.File, error) {
	if flag&os.O_CREATE != 0 {
		if err := d.MkdirAll(path.Dir(name), 0o755); err != nil {
			return nil, err
		}
	}
	at, err := d.entry(name)
	if err != nil {
		return nil, err
	}
	defer at.Close()
	f, err := at.OpenFile(flag, perm&^0o022)
	if err != nil {
		return nil, err
	}
	if err := checkGitFile(name, f, flag); err != nil {
		return nil, errors.Join(fmt.Errorf("%s %w", at.Path(), err), f.Close())
	}
	return gitDiskFile{f, name}, nil
}

// What the library reads into memory as a whole, or believes: an index of a pack says how many objects there are.
const (
	maxGitText  = 256 << 20
	packHeader  = 8 + 256*4 // of an index: what it is, and how many objects come before each first byte
	perObject   = 20 + 4 + 4
	packTrailer = 2 * 20
)

// checkGitFile refuses a file that is read and is larger than what git writes, or an index that promises more than it
// holds.
func checkGitFile(name string, f *os.File, flag int) error {
	info, err := f.Stat()
	if err != nil || flag&(os.O_WRONLY|os.O_RDWR) != 0 || path.Ext(name) == ".pack" {
		return err
	}
	if info.Size() > maxGitText {
		return fmt.Errorf("has %d bytes, more than the %d that are read", info.Size(), maxGitText)
	}
	if path.Ext(name) != ".idx" {
		return nil
	}
	head := make([]byte, packHeader)
	if _, err := f.ReadAt(head, 0); err != nil {
		return errors.New("is no index of a pack: remove it")
	}
	var count uint32
	for at := 8; at < packHeader; at += 4 {
		next := binary.BigEndian.Uint32(head[at:])
		if next < count {
			return errors.New("is no index of a pack: remove it")
		}
		count = next
	}
	if int64(count)*perObject+packHeader+packTrailer > info.Size() {
		return fmt.Errorf("promises %d objects in %d bytes: remove it", count, info.Size())
	}
	return nil
}

// Stat is Lstat: there is no link in a repository.
func (d gitDisk) Stat(name string) (os.FileInfo, error) { return d.Lstat(name) }

// Lstat says what is there.
func (d gitDisk) Lstat(name string) (os.FileInfo, error) {
	at, err := d.entry(name)
	if err != nil {
		return nil, err
	}
	defer at.Close()
	info, err := at.Lstat()
	if err != nil {
		return nil, err
	}
	return info, nil
}

// Rename gives a file another name, and makes the directories of that.
func (d gitDisk) Rename(from, to string) error {
	if err := d.MkdirAll(path.Dir(to), 0o755); err != nil {
		return err
	}
	old, err := d.entry(from)
	if err != nil {
		return err
	}
	defer old.Close()
	at, err := d.entry(to)
	if err != nil {
		return err
	}
	defer at.Close()
	return old.Rename(at)
}

// Remove removes a file or an empty directory.
func (d gitDisk) Remove(name string) error {
	at, err := d.entry(name)
	if err != nil {
		return err
	}
	defer at.Close()
	return at.Remove()
}

// Join makes a path of its elements.
func (d gitDisk) Join(elem ...string) string { return path.Join(elem...) }

// TempFile makes a file with a name of its own.
func (d gitDisk) TempFile(dir, prefix string) (billy.File, error) {
	return d.OpenFile(path.Join(dir, prefix+rand.Text()), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
}

// ReadDir lists a directory.
func (d gitDisk) ReadDir(name string) ([]os.FileInfo, error) {
	at, err := d.entry(name)
	if err != nil {
		return nil, err
	}
	defer at.Close()
	dir, err := at.Dir()
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	names, err := dir.Names()
	slices.Sort(names)
	var out []os.FileInfo
	for _, name := range names {
		in, bad := dir.Entry(name)
		if bad != nil {
			return nil, bad
		}
		info, bad := in.Lstat()
		in.Close()
		if bad == nil { // it was removed meanwhile
			out = append(out, info)
		}
	}
	return out, err
}

// MkdirAll makes a directory.
func (d gitDisk) MkdirAll(name string, _ fs.FileMode) error {
	return d.dir.MkdirAll(path.Clean("/"+name), 0o755)
}

// Symlink fails: git makes none in a repository.
func (d gitDisk) Symlink(string, string) error { return billy.ErrNotSupported }

// Readlink is what a link says.
func (d gitDisk) Readlink(name string) (string, error) {
	at, err := d.entry(name)
	if err != nil {
		return "", err
	}
	defer at.Close()
	return at.Readlink()
}

// Chroot is a directory of it.
func (d gitDisk) Chroot(name string) (billy.Filesystem, error) { return chroot.New(d, name), nil }

// Root is where it begins: the library tells by it that .git lies in the work tree.
func (d gitDisk) Root() string { return d.dir.Path() }

var _ io.Closer = gitDiskFile{}
