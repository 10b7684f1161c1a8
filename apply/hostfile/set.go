package hostfile

import (
	"errors"
	"fmt"
	"io/fs"
	"strconv"

	"golang.org/x/sys/unix"
)

// Attributes are owner and mode.
type Attributes struct {
	UID, GID int // -1 leaves it
	Mode     fs.FileMode
	SetMode  bool // false leaves the mode
}

// errForeign is a content that another user can still write, which is not to run with the rights of somebody else.
var errForeign = errors.New("the content is another user's")

// Set gives what is there owner and mode: a file, a directory, a link, a device.
func (e *Entry) Set(a Attributes) error {
	fd, info, err := pin(e)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := oneName(e, info); err != nil {
		return err
	}
	err = setFD(fd, info, a)
	if errors.Is(err, errForeign) {
		return &FileRefused{
			e.path,
			fmt.Sprintf("belongs to uid %d, and would run with the rights of another user", info.UID()),
			"give its content in the same step, with the mode, so that it is written anew",
		}
	}
	return failed("chown", e.path, err)
}

// pin opens whatever is there, without reading from it.
func pin(e *Entry) (int, Info, error) {
	if e.gone != nil {
		return -1, Info{}, failed("open", e.path, e.gone)
	}
	var fd int
	err := again(func() (err error) {
		fd, err = unix.Openat(e.dir.fd, e.base, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		return err
	})
	if err != nil {
		return -1, Info{}, failed("open", e.path, err)
	}
	info, err := statFD(fd, e.base)
	if err != nil {
		_ = unix.Close(fd) // nothing was written
		return -1, info, failed("stat", e.path, err)
	}
	return fd, info, nil
}

// setFD sets owner and mode of what is open. The owner comes first: changing it clears setuid.
func setFD(fd int, have Info, a Attributes) error {
	uid, gid := have.UID(), int(have.st.Gid)
	if a.UID >= 0 {
		uid = a.UID
	}
	if a.GID >= 0 {
		gid = a.GID
	}
	special := a.SetMode && a.Mode&(fs.ModeSetuid|fs.ModeSetgid) != 0 && have.Mode().IsRegular()
	if special && uid != have.UID() && !own(have.UID()) {
		return errForeign
	}
	if uid != have.UID() || gid != int(have.st.Gid) {
		err := again(
			func() error { return unix.Fchownat(fd, "", uid, gid, unix.AT_EMPTY_PATH|unix.AT_SYMLINK_NOFOLLOW) },
		)
		if err != nil {
			return err
		}
	}
	if !a.SetMode {
		return nil
	}
	return chmodFD(fd, bits(a.Mode))
}

// chmodFD sets the mode of what is open, if only as a place. Kernels before 6.6 do that by the name that /proc has for
// it, which nobody else can change.
func chmodFD(fd int, mode uint32) error {
	err := unix.Fchmodat(fd, "", mode, unix.AT_EMPTY_PATH)
	if err == nil {
		return nil
	}
	return again(func() error { return unix.Chmod("/proc/self/fd/"+strconv.Itoa(fd), mode) })
}
