package hostfile

import (
	"errors"
	"io"
	"os"
	"path"
	"strings"

	"golang.org/x/sys/unix"
)

// maxNames bounds how many names of one directory are read.
const maxNames = 1_000_000

// Dir is an open directory.
type Dir struct {
	fd   int
	root Root
	path string // beneath the root
	refs int
	info *Info // when it was looked at first
	last *Dir  // a directory below it, in which something was looked for last
	rel  string
}

func (r Root) newDir(fd int, path string) *Dir { return &Dir{fd: fd, root: r, path: path, refs: 1} }

func (d *Dir) keep() *Dir {
	d.refs++
	return d
}

// Close lets go of the directory. Entries in it stay open until they are closed.
func (d *Dir) Close() {
	if d == nil {
		return
	}
	if d.refs--; d.refs > 0 {
		return
	}
	d.last.Close()
	_ = unix.Close(d.fd) // nothing was written through it
	d.fd, d.last = -1, nil
}

// Path is where the directory was found, beneath the root.
func (d *Dir) Path() string { return d.path }

// Stat is the directory's own information, as it was when it was asked first.
func (d *Dir) Stat() (Info, error) {
	if d.info == nil {
		info, err := statFD(d.fd, path.Base(d.path))
		if err != nil {
			return info, failed("stat", d.path, err)
		}
		d.info = &info
	}
	return *d.info, nil
}

// Entry is a path below the directory, with slashes. No link on the way to it is followed: that is a *LinkRefused. "."
// is the directory. Below a nil Dir nothing is there.
func (d *Dir) Entry(rel string) (*Entry, error) {
	if d == nil {
		return &Entry{base: path.Base(rel), path: path.Clean("/" + rel), gone: unix.ENOENT}, nil
	}
	at := path.Join(d.path, rel)
	if rel = path.Clean(rel); rel == ".." || strings.HasPrefix(rel, "../") || strings.HasPrefix(rel, "/") {
		return nil, &FileRefused{at, "is not below " + d.path, "use a relative path"}
	}
	in, base := path.Split(rel)
	if in = strings.TrimSuffix(in, "/"); in == "" {
		return &Entry{dir: d.keep(), base: base, path: at}, nil
	}
	if d.last != nil && d.rel == in {
		return &Entry{dir: d.last.keep(), base: base, path: at}, nil
	}
	fd, err := openDirect(d.fd, in, unix.RESOLVE_BENEATH|unix.RESOLVE_NO_SYMLINKS)
	if err != nil {
		fd, err = d.descend(in)
	}
	switch {
	case NotThere(err):
		return &Entry{base: base, path: at, gone: err}, nil
	case err != nil:
		return nil, err
	}
	d.last.Close()
	d.last, d.rel = d.root.newDir(fd, path.Join(d.path, in)), in
	return &Entry{dir: d.last.keep(), base: base, path: at}, nil
}

// descend opens a directory below by its components, and names the link that is in the way.
func (d *Dir) descend(rel string) (int, error) {
	at, fd := d.path, d.fd
	for _, part := range parts(rel) {
		at = path.Join(at, part)
		next, err := openOne(fd, part)
		if err != nil {
			if target, bad := readLink(fd, part); bad == nil {
				err = &LinkRefused{
					Path:   at,
					Target: target,
					UID:    owner(fd, part),
					Why:    "a directory is expected there",
					Cure:   "remove the link",
				}
			} else if !NotThere(err) {
				err = failed("open", at, err)
			}
		}
		if fd != d.fd {
			_ = unix.Close(fd)
		}
		if err != nil {
			return -1, err
		}
		fd = next
	}
	return fd, nil
}

func owner(dir int, name string) int {
	info, err := statAt(dir, name)
	if err != nil {
		return -1
	}
	return info.UID()
}

// reopen gives the directory as a file that can be read and synced.
func (d *Dir) reopen() (*os.File, error) {
	var fd int
	err := again(func() (err error) {
		fd, err = unix.Openat(d.fd, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		return err
	})
	if err != nil {
		return nil, failed("open", d.path, err)
	}
	return os.NewFile(uintptr(fd), d.path), nil
}

// Names are the names in the directory, in no order.
func (d *Dir) Names() ([]string, error) {
	f, err := d.reopen()
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var out []string
	for {
		some, err := f.Readdirnames(4096)
		out = append(out, some...)
		switch {
		case errors.Is(err, io.EOF):
			return out, nil
		case err != nil:
			return nil, err
		case len(out) > maxNames:
			return nil, &FileRefused{
				d.path,
				"holds more than a million files",
				"manage the directories below it one by one",
			}
		}
	}
}

// Sync makes the names in the directory durable.
func (d *Dir) Sync() error {
	f, err := d.reopen()
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// SyncFS makes all of the file system durable that the directory is on.
func (d *Dir) SyncFS() error {
	f, err := d.reopen()
	if err != nil {
		return err
	}
	return errors.Join(failed("syncfs", d.path, unix.Syncfs(int(f.Fd()))), f.Close())
}

// Set gives the directory owner and mode.
func (d *Dir) Set(a Attributes) error {
	info, err := statFD(d.fd, path.Base(d.path))
	if err == nil {
		err = setFD(d.fd, info, a)
	}
	d.info = nil
	return failed("chown", d.path, err)
}
