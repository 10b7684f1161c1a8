package hostfile

import (
	"io/fs"
	"path"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Root is the directory below which a host's files are: "/", or one that stands for it. Absolute links begin there.
type Root string

// Entry opens the directory that holds a path. Its last element is not followed: an entry may be a link.
func (r Root) Entry(name string) (*Entry, error) { return r.find(name, false) }

// Follow is Entry for what is used rather than replaced: where the last element is a link, the entry is what it leads
// to.
func (r Root) Follow(name string) (*Entry, error) { return r.find(name, true) }

// Dir opens a directory.
func (r Root) Dir(name string) (*Dir, error) {
	e, err := r.Follow(name)
	if err != nil {
		return nil, err
	}
	defer e.Close()
	return e.Dir()
}

func (r Root) find(name string, follow bool) (*Entry, error) {
	clean := path.Clean("/" + name)
	dir, base := path.Split(clean)
	e := r.direct(dir, base)
	if e != nil && !(follow && isLink(e)) {
		return e, nil
	}
	e.Close()
	top, err := r.open()
	if err != nil {
		return nil, err
	}
	defer top.Close()
	if base == "" {
		return &Entry{dir: top.keep(), base: ".", path: "/"}, nil
	}
	return (&walk{root: top, follow: follow}).run(clean)
}

// direct is the entry of a path that no link is on, opened in one call; nil where there may be one, and on kernels that
// cannot do it.
func (r Root) direct(dir, base string) *Entry {
	if base == "" || r == "" { // no root is a mistake, and not "/"
		return nil
	}
	fd, err := openDirect(unix.AT_FDCWD, path.Join(string(r), dir), unix.RESOLVE_NO_SYMLINKS)
	if err != nil {
		return nil
	}
	return &Entry{dir: r.newDir(fd, path.Clean(dir)), base: base, path: path.Join(dir, base)}
}

func isLink(e *Entry) bool {
	info, err := e.Lstat()
	return err == nil && info.Mode()&fs.ModeSymlink != 0
}

// Shared reports a directory on the way to a path in which others than root and the agent's user can make and remove
// names: what is wrong at the path may be their doing. Links are followed, since it matters where they lie.
func (r Root) Shared(name string) bool {
	at := string(r)
	for part := range strings.SplitSeq(strings.Trim(path.Dir(path.Clean(name)), "/"), "/") {
		at = path.Join(at, part)
		var i Info
		if again(func() error { return syscall.Stat(at, &i.st) }) != nil {
			return false
		}
		if !i.private() {
			return true
		}
	}
	return false
}

func (r Root) open() (*Dir, error) {
	var fd int
	err := again(func() (err error) {
		fd, err = unix.Open(string(r), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		return err
	})
	if err != nil {
		return nil, failed("open", string(r), err)
	}
	return r.newDir(fd, "/"), nil
}

const dirFlags = unix.O_PATH | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC

// openDirect opens a directory in one call. It fails where what resolve forbids is in the way, and on kernels that
// cannot do it.
func openDirect(dir int, name string, resolve uint64) (fd int, err error) {
	how := &unix.OpenHow{Flags: dirFlags, Resolve: resolve}
	err = again(func() (err error) {
		fd, err = unix.Openat2(dir, name, how)
		return err
	})
	return fd, err
}

// openOne opens a directory in another.
func openOne(dir int, name string) (fd int, err error) {
	err = again(func() (err error) {
		fd, err = unix.Openat(dir, name, dirFlags, 0)
		return err
	})
	return fd, err
}
