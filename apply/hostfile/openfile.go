package hostfile

import (
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// OpenFile opens a regular file for a program that works with flags, such as a library: os.O_CREATE, os.O_EXCL,
// os.O_TRUNC and os.O_APPEND. What is there is opened as Open and OpenWrite do it; what is made belongs to the agent's
// user.
func (e *Entry) OpenFile(flag int, perm fs.FileMode) (*os.File, error) {
	if e.gone != nil {
		return nil, failed("open", e.path, e.gone)
	}
	how := flag & (os.O_RDONLY | os.O_WRONLY | os.O_RDWR | os.O_APPEND)
	if flag&os.O_CREATE != 0 {
		f, err := create(e, how, perm)
		if err == nil || flag&os.O_EXCL != 0 || !errors.Is(err, fs.ErrExist) {
			return f, err
		}
	}
	f, err := openAs(e, how)
	if err != nil || flag&os.O_TRUNC == 0 {
		return f, err
	}
	if err := f.Truncate(0); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func create(e *Entry, how int, perm fs.FileMode) (*os.File, error) {
	var fd int
	err := again(func() (err error) {
		fd, err = unix.Openat(e.dir.fd, e.base, how|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, bits(perm))
		return err
	})
	if err != nil {
		return nil, failed("open", e.path, err)
	}
	f := os.NewFile(uintptr(fd), e.path)
	if err := disown(e, fd); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Beside is another name in the entry's directory, to be closed for itself. The directory must be there.
func (e *Entry) Beside(name string) (*Entry, error) {
	if e.gone != nil {
		return nil, failed("open", e.path, e.gone)
	}
	e.dir.keep()
	return nextTo(e, name), nil
}

// MkdirAll makes a directory below this one, with those that lead to it.
func (d *Dir) MkdirAll(rel string, mode fs.FileMode) error {
	at := ""
	for _, part := range parts(rel) {
		at += part
		e, err := d.Entry(at)
		if err != nil {
			return err
		}
		in, err := e.Mkdir(mode)
		if errors.Is(err, fs.ErrExist) {
			in, err = e.Dir()
		}
		in.Close()
		e.Close()
		if err != nil {
			return err
		}
		at += "/"
	}
	return nil
}
