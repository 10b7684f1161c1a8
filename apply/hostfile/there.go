package hostfile

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// NotThere reports an error that says that nothing stands at a path.
func NotThere(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

// Exists reports that something stands at a path of this machine. It is for paths that only root can change.
func Exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// EntryHere is an entry below the directory; nil without an error where a link is on the way to it, because what lies
// behind the link is somewhere else.
func (d *Dir) EntryHere(name string) (*Entry, error) {
	at, err := d.Entry(name)
	if _, away := errors.AsType[*LinkRefused](err); away {
		return nil, nil
	}
	return at, err
}

// Stat is what the kernel says of a file beyond what fs.FileInfo has; false for no information.
func Stat(info fs.FileInfo) (*syscall.Stat_t, bool) {
	if info == nil {
		return nil, false
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	return st, ok
}

// Owner is the number of the user who owns a file, or -1.
func Owner(info fs.FileInfo) int {
	if st, ok := Stat(info); ok {
		return int(st.Uid)
	}
	return -1
}
