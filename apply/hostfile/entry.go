package hostfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"

	"golang.org/x/sys/unix"
)

// Entry is a name in an open directory, which need not be there. What is done with it follows no link.
type Entry struct {
	dir     *Dir // nil: it is not there
	base    string
	path    string   // beneath the root, for messages and for comparing: no link leads to it
	missing []string // directories below dir that are not there
	gone    error    // why there is nothing; nil where dir holds the entry
}

// Close lets go of the directory.
func (e *Entry) Close() {
	if e != nil {
		e.dir.Close()
	}
}

// Again is the entry once more, to be closed for itself.
func (e *Entry) Again() *Entry {
	again := *e
	if again.dir != nil {
		again.dir.keep()
	}
	return &again
}

// Place tells entries apart, whatever path led to them.
type Place struct {
	dev, dir uint64
	base     string
}

// Place is that of the entry. Where its directory is not there, it is that of its path.
func (e *Entry) Place() Place {
	if e.gone != nil {
		return Place{base: e.path}
	}
	info, err := e.dir.Stat()
	if err != nil {
		return Place{base: e.path}
	}
	return Place{info.st.Dev, info.st.Ino, e.base}
}

// Path is where the entry is, beneath the root.
func (e *Entry) Path() string { return e.path }

// Lstat says what is there. It is fs.ErrNotExist or ENOTDIR where nothing is.
func (e *Entry) Lstat() (Info, error) {
	if e.gone != nil {
		return Info{}, failed("lstat", e.path, e.gone)
	}
	info, err := statAt(e.dir.fd, e.base)
	return info, failed("lstat", e.path, err)
}

// Exists reports that something is there, a dangling link included.
func (e *Entry) Exists() bool {
	_, err := e.Lstat()
	return err == nil
}

// HasParent reports that the directory is there in which the entry is, or would be.
func (e *Entry) HasParent() bool { return e.gone == nil }

// Readlink is what a symbolic link says.
func (e *Entry) Readlink() (string, error) {
	if e.gone != nil {
		return "", failed("readlink", e.path, e.gone)
	}
	target, err := readLink(e.dir.fd, e.base)
	return target, failed("readlink", e.path, err)
}

// Dir opens the directory that the entry is.
func (e *Entry) Dir() (*Dir, error) {
	if e.gone != nil {
		return nil, failed("open", e.path, e.gone)
	}
	fd, err := openOne(e.dir.fd, e.base)
	if errors.Is(err, unix.ELOOP) || errors.Is(err, unix.ENOTDIR) {
		if target, bad := readLink(e.dir.fd, e.base); bad == nil {
			return nil, &LinkRefused{
				e.path,
				target,
				owner(e.dir.fd, e.base),
				"a directory is expected there",
				"remove the link",
			}
		}
	}
	if err != nil {
		return nil, failed("open", e.path, err)
	}
	return e.dir.root.newDir(fd, e.path), nil
}

// Open opens a regular file for reading. What is not one, and a file that is another user's under a second name, is
// refused.
func (e *Entry) Open() (*os.File, error) { return openAs(e, unix.O_RDONLY) }

// OpenWrite opens a regular file to write into it where it stands.
func (e *Entry) OpenWrite() (*os.File, error) { return openAs(e, unix.O_WRONLY) }

func openAs(e *Entry, how int) (*os.File, error) {
	fd, _, err := openRegular(e, how)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), e.path), nil
}

// openRegular opens the regular file that the entry names.
func openRegular(e *Entry, how int) (fd int, info Info, err error) {
	err = WhileReplaced(func() (err error) {
		fd, info, err = openFound(e, how)
		return err
	})
	return fd, info, err
}

func openFound(e *Entry, how int) (int, Info, error) {
	found, err := e.Lstat()
	if err != nil {
		return -1, found, err
	}
	if !found.Mode().IsRegular() {
		return -1, found, &FileRefused{e.path, fmt.Sprintf("is %s, not a file", found.kind()), "remove it"}
	}
	var fd int
	err = again(func() (err error) { // it may be a pipe by now: opening one must not wait
		fd, err = unix.Openat(e.dir.fd, e.base, how|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
		return err
	})
	if err != nil {
		return -1, found, failed("open", e.path, err)
	}
	info, err := statFD(fd, e.base)
	switch {
	case err != nil:
		err = failed("stat", e.path, err)
	case !info.same(found):
		err = replaced(e.path)
	default:
		err = oneName(e, info)
	}
	if err != nil {
		_ = unix.Close(fd) // nothing was written
		return -1, found, err
	}
	return fd, info, nil
}

// ReadFile reads a regular file of at most so many bytes.
func (e *Entry) ReadFile(most int64) ([]byte, error) {
	fd, info, err := openRegular(e, unix.O_RDONLY)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), e.path)
	defer f.Close()
	if info.Size() > most {
		return nil, tooLarge(e, info.Size(), most)
	}
	data, err := readAll(f, info.Size(), most)
	if err == nil && int64(len(data)) > most {
		err = tooLarge(e, int64(len(data)), most)
	}
	return data, err
}

func tooLarge(e *Entry, have, most int64) error {
	return &FileRefused{e.path, fmt.Sprintf("has %d bytes, more than the %d that are read", have, most), "remove it"}
}

// readAll reads a file of about a size, and one byte more than most where there is more.
func readAll(f io.Reader, size, most int64) ([]byte, error) {
	data := make([]byte, 0, size+1)
	for {
		n, err := f.Read(data[len(data):cap(data)])
		data = data[:len(data)+n]
		switch {
		case errors.Is(err, io.EOF):
			return data, nil
		case err != nil || int64(len(data)) > most:
			return data, err
		}
		if len(data) == cap(data) {
			data = append(data, 0)[:len(data)]
		}
	}
}

// CopyTo writes the content of a regular file of at most so many bytes.
func (e *Entry) CopyTo(to io.Writer, most int64) error {
	fd, info, err := openRegular(e, unix.O_RDONLY)
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(fd), e.path)
	defer f.Close()
	if info.Size() > most {
		return tooLarge(e, info.Size(), most)
	}
	n, err := io.Copy(to, io.LimitReader(f, most+1))
	if err == nil && n > most {
		err = tooLarge(e, n, most)
	}
	return err
}

// IsMount reports that something is mounted there.
func (e *Entry) IsMount() (bool, error) {
	if e.gone != nil {
		return false, failed("statx", e.path, e.gone)
	}
	var st unix.Statx_t
	err := unix.Statx(e.dir.fd, e.base, unix.AT_SYMLINK_NOFOLLOW, unix.STATX_BASIC_STATS, &st)
	return st.Attributes&unix.STATX_ATTR_MOUNT_ROOT != 0, failed("statx", e.path, err)
}

// SyncDir makes the entry's name durable, or that it is gone.
func (e *Entry) SyncDir() error {
	if e.gone != nil {
		return failed("sync", e.path, e.gone)
	}
	return e.dir.Sync()
}

// nextTo is another name in the entry's directory.
func nextTo(e *Entry, base string) *Entry {
	return &Entry{dir: e.dir, base: base, path: path.Join(e.dir.path, base)}
}

// Private reports that only root can change what is in the entry's directory, or the agent's own user.
func (e *Entry) Private() (bool, error) {
	if e.gone != nil {
		return false, failed("stat", e.path, e.gone)
	}
	info, err := e.dir.Stat()
	return info.private(), err
}

// IsDir reports a directory.
func (e *Entry) IsDir() bool {
	info, err := e.Lstat()
	return err == nil && info.Mode()&fs.ModeDir != 0
}
