package hostfile

import (
	"errors"
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

// Follow is Entry for what is used rather than replaced: where the last element is a link, the entry is what it leads to.
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
	top, err := r.open()
	if err != nil {
		return nil, err
	}
	defer top.Close()
	dir, base := path.Split(clean)
	if base == "" {
		return &Entry{dir: top.keep(), base: ".", path: "/"}, nil
	}
	fd, err := openDirect(top.fd, strings.Trim(dir, "/"))
	if err != nil {
		return (&walk{root: top, follow: follow}).run(clean)
	}
	e := &Entry{dir: r.newDir(fd, path.Clean(dir)), base: base, path: clean}
	if !follow {
		return e, nil
	}
	info, err := statAt(fd, base)
	if err != nil || info.Mode()&fs.ModeSymlink == 0 {
		return e, nil
	}
	e.Close()
	return (&walk{root: top, follow: follow}).run(clean)
}

// Shared reports a directory on the way to a path in which others than root and the agent's user can make and remove names: what is wrong at the
// path may be their doing. Links are followed, since it matters where they lie.
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

// openDirect opens a directory below another in one call. It fails where a link is in the way, and on kernels that cannot do it.
func openDirect(dir int, rel string) (fd int, err error) {
	if rel == "" || rel == "." {
		return openOne(dir, ".")
	}
	how := &unix.OpenHow{Flags: dirFlags, Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS}
	err = again(func() (err error) {
		fd, err = unix.Openat2(dir, rel, how)
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

// absent reports that there is nothing: no such name, or no directory on the way to it.
func absent(err error) bool { return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) }
