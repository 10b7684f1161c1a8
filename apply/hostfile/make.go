package hostfile

import (
	"errors"
	"io"
	"io/fs"

	"golang.org/x/sys/unix"
)

// MakeParents makes the directories that are missing on the way to the entry.
func (e *Entry) MakeParents(mode fs.FileMode) error {
	for len(e.missing) > 0 {
		at := nextTo(e, e.missing[0])
		dir, err := at.Mkdir(mode)
		if errors.Is(err, fs.ErrExist) { // another step made it
			dir, err = at.Dir()
		}
		if err != nil {
			return err
		}
		e.dir.Close()
		e.dir, e.missing = dir, e.missing[1:]
		e.gone = nil
	}
	if e.gone != nil {
		return failed("mkdir", e.path, e.gone)
	}
	return nil
}

// Mkdir makes a directory and opens it. It has the mode when it is there: what was put in its place meanwhile is
// refused.
func (e *Entry) Mkdir(mode fs.FileMode) (*Dir, error) {
	if e.gone != nil {
		return nil, failed("mkdir", e.path, e.gone)
	}
	if err := again(func() error { return unix.Mkdirat(e.dir.fd, e.base, 0o700) }); err != nil {
		return nil, failed("mkdir", e.path, err)
	}
	fd, err := openOne(e.dir.fd, e.base)
	if err != nil {
		return nil, failed("open", e.path, err)
	}
	d := e.dir.root.newDir(fd, e.path)
	if err := fresh(e, d, mode); err != nil {
		d.Close()
		return nil, err
	}
	return d, nil
}

// fresh holds a directory that was just made against that, and gives it its mode.
func fresh(e *Entry, d *Dir, mode fs.FileMode) error {
	info, err := statFD(d.fd, e.base)
	if err != nil {
		return failed("stat", e.path, err)
	}
	f, err := d.reopen()
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.Readdirnames(1); !own(info.UID()) || info.st.Mode&0o077 != 0 || !errors.Is(err, io.EOF) {
		return replaced(e.path)
	}
	if err := disown(e, int(f.Fd())); err != nil {
		return err
	}
	return failed("chmod", e.path, chmodFD(d.fd, bits(mode)))
}

// Symlink makes a link in place of what is there, which must not be a directory. It appears with its owner: -1 is the
// agent's own.
func (e *Entry) Symlink(target string, uid, gid int) error {
	name := besides(e.base)
	if e.gone != nil {
		return failed("symlink", e.path, e.gone)
	}
	at := nextTo(e, name)
	if err := at.Remove(); err != nil && !errors.Is(err, unix.ENOENT) {
		return err
	}
	if err := again(func() error { return unix.Symlinkat(target, e.dir.fd, name) }); err != nil {
		return failed("symlink", e.path, err)
	}
	fd, info, err := pin(at)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if have, err := readLink(fd, ""); err != nil || have != target || !own(info.UID()) || info.st.Nlink > 1 {
		return replaced(e.path)
	}
	err = setFD(fd, info, Attributes{UID: uid, GID: gid})
	if err == nil {
		err = renamed(at, e, info)
	}
	if err != nil {
		return errors.Join(failed("symlink", e.path, err), at.Remove())
	}
	return nil
}

// Rename gives what is at the entry another name, in place of what is there.
func (e *Entry) Rename(to *Entry) error {
	fd, info, err := pin(e)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if to.gone != nil {
		return failed("rename", to.path, to.gone)
	}
	return renamed(e, to, info)
}

// LinkOver gives the regular file another name, in place of what is there.
func (e *Entry) LinkOver(to *Entry) error {
	fd, info, err := pin(e)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	switch {
	case to.gone != nil:
		return failed("link", to.path, to.gone)
	case !info.Mode().IsRegular():
		return replaced(e.path)
	}
	if now, err := to.Lstat(); err == nil && now.same(info) { // renaming one name of a file over another does nothing
		return nil
	}
	at := nextTo(to, besides(to.base))
	if err := at.Remove(); err != nil && !errors.Is(err, unix.ENOENT) {
		return err
	}
	if err := again(func() error { return unix.Linkat(e.dir.fd, e.base, at.dir.fd, at.base, 0) }); err != nil {
		return failed("link", to.path, err)
	}
	if err := renamed(at, to, info); err != nil {
		return errors.Join(err, at.Remove())
	}
	return nil
}
