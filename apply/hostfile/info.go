package hostfile

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Info is what the kernel says of a file: an fs.FileInfo whose Sys is a *syscall.Stat_t.
type Info struct {
	name string
	st   syscall.Stat_t
}

// Name is the base name.
func (i Info) Name() string { return i.name }

// Size is in bytes.
func (i Info) Size() int64 { return i.st.Size }

// ModTime is when the content changed last.
func (i Info) ModTime() time.Time { return time.Unix(i.st.Mtim.Unix()) }

// IsDir reports a directory.
func (i Info) IsDir() bool { return i.Mode().IsDir() }

// Sys is a *syscall.Stat_t.
func (i Info) Sys() any { return &i.st }

// UID is the owner's number.
func (i Info) UID() int { return int(i.st.Uid) }

// Mode is type and permissions.
func (i Info) Mode() fs.FileMode {
	mode := fs.FileMode(i.st.Mode & 0o777)
	switch i.st.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		mode |= fs.ModeDir
	case unix.S_IFLNK:
		mode |= fs.ModeSymlink
	case unix.S_IFIFO:
		mode |= fs.ModeNamedPipe
	case unix.S_IFSOCK:
		mode |= fs.ModeSocket
	case unix.S_IFBLK:
		mode |= fs.ModeDevice
	case unix.S_IFCHR:
		mode |= fs.ModeDevice | fs.ModeCharDevice
	}
	for _, f := range modeFlags() {
		if i.st.Mode&f.bit != 0 {
			mode |= f.flag
		}
	}
	return mode
}

// modeFlag is a bit that Go keeps elsewhere than the kernel.
type modeFlag struct {
	bit  uint32
	flag fs.FileMode
}

// modeFlags are asked for with each look at a file: an array needs no memory of its own.
func modeFlags() [3]modeFlag {
	return [3]modeFlag{{unix.S_ISUID, fs.ModeSetuid}, {unix.S_ISGID, fs.ModeSetgid}, {unix.S_ISVTX, fs.ModeSticky}}
}

// bits is a mode as the kernel takes it.
func bits(m fs.FileMode) uint32 {
	out := uint32(m.Perm())
	for _, f := range modeFlags() {
		if m&f.flag != 0 {
			out |= f.bit
		}
	}
	return out
}

// same reports two looks at one file.
func (i Info) same(j Info) bool { return i.st.Dev == j.st.Dev && i.st.Ino == j.st.Ino }

// kind is what a file is, in words.
func (i Info) kind() string {
	switch m := i.Mode(); {
	case m.IsRegular():
		return "a file"
	case m.IsDir():
		return "a directory"
	case m&fs.ModeSymlink != 0:
		return "a symbolic link"
	case m&fs.ModeNamedPipe != 0:
		return "a named pipe"
	case m&fs.ModeSocket != 0:
		return "a socket"
	}
	return "a device"
}

// own reports a user whom the agent trusts: root, and the one it runs as.
func own(uid int) bool { return uid == 0 || uid == os.Geteuid() }

// private reports a directory in which only trusted users can make and remove names.
func (i Info) private() bool {
	return own(i.UID()) && i.st.Mode&0o002 == 0 && (i.st.Mode&0o020 == 0 || i.st.Gid == 0)
}

func statAt(dir int, name string) (Info, error) {
	i := Info{name: name}
	err := again(func() error { return syscallStat(dir, name, &i.st) })
	return i, err
}

func statFD(fd int, name string) (Info, error) {
	i := Info{name: name}
	err := again(func() error { return syscall.Fstat(fd, &i.st) })
	return i, err
}

// again repeats a call that a signal interrupted.
func again(call func() error) error {
	for {
		if err := call(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

func failed(op, path string, err error) error {
	if err == nil {
		return nil
	}
	return &fs.PathError{Op: op, Path: path, Err: err}
}
