// Package unixsocket listens and dials at Unix sockets whose paths are longer than the 108 bytes of an address. The
// path is then one through /proc/self/fd, to the directory of the socket.
package unixsocket

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// longestDir is how long the path of a directory may be for the sockets in it, in bytes: their names have up to 17.
const longestDir = 90

// Dir returns a path of a directory that is short enough for sockets in it. It is good in this process, until release.
func Dir(dir string) (short string, release func() error, err error) {
	if len(dir) <= longestDir {
		return dir, func() error { return nil }, nil
	}
	fd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", nil, &fs.PathError{Op: "open", Path: dir, Err: err}
	}
	return fmt.Sprintf("/proc/self/fd/%d", fd), func() error { return unix.Close(fd) }, nil
}

// Listen listens at a path. Closing the listener removes the socket.
func Listen(path string) (net.Listener, error) {
	dir, release, err := Dir(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("unix", filepath.Join(dir, filepath.Base(path)))
	if err != nil {
		return nil, errors.Join(err, release())
	}
	return &listener{l, release}, nil
}

// listener is one whose directory is open until it is closed.
type listener struct {
	net.Listener
	release func() error
}

func (l *listener) Close() error {
	err := l.Listener.Close()
	if errors.Is(err, net.ErrClosed) { // the directory is closed, too, and its number may be that of another file
		return err
	}
	return errors.Join(err, l.release())
}

// Dial connects to the socket at a path.
func Dial(ctx context.Context, path string) (net.Conn, error) {
	dir, release, err := Dir(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", filepath.Join(dir, filepath.Base(path)))
	return conn, errors.Join(err, release())
}
