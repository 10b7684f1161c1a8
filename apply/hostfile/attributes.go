package hostfile

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// accessList is the attribute that holds a file's POSIX access list.
const accessList = "system.posix_acl_access"

// CopyAttributes gives a new file the extended attributes of the one that it replaces: access list, labels, and the
// users' own. An access list that the new file has only because its directory says so is removed. Signatures and
// digests of the content are not copied: they would be wrong.
func CopyAttributes(from, to *os.File) error {
	names, err := attributes(from)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := copyAttribute(from, to, name); err != nil {
			return fmt.Errorf("extended attribute %s: %w", name, err)
		}
	}
	if slices.Contains(names, accessList) {
		return nil
	}
	err = unix.Fremovexattr(int(to.Fd()), accessList)
	if err == nil || errors.Is(err, unix.ENODATA) || errors.Is(err, unix.EOPNOTSUPP) {
		return nil
	}
	return fmt.Errorf("extended attribute %s: %w", accessList, err)
}

// attributes are the names of those extended attributes of a file that outlive its content.
func attributes(f *os.File) ([]string, error) {
	size, err := unix.Flistxattr(int(f.Fd()), nil)
	if errors.Is(err, unix.EOPNOTSUPP) || err == nil && size == 0 {
		return nil, nil
	}
	buf := make([]byte, max(size, 0))
	if err == nil {
		size, err = unix.Flistxattr(int(f.Fd()), buf)
	}
	if err != nil {
		return nil, fmt.Errorf("extended attributes: %w", err)
	}
	var out []string
	for name := range strings.SplitSeq(string(buf[:size]), "\x00") {
		switch {
		case name == "security.ima" || name == "security.evm":
		case strings.HasPrefix(name, "user."), strings.HasPrefix(name, "security."), name == accessList:
			out = append(out, name)
		}
	}
	return out, nil
}

func copyAttribute(from, to *os.File, name string) error {
	value, err := attribute(from, name)
	if err != nil {
		return err
	}
	if have, err := attribute(to, name); err == nil && bytes.Equal(have, value) {
		return nil
	}
	err = unix.Fsetxattr(int(to.Fd()), name, value, 0)
	if errors.Is(
		err,
		unix.EOPNOTSUPP,
	) { // the old file is a mount of another file system: it is written in place and keeps them
		return nil
	}
	return err
}

func attribute(f *os.File, name string) ([]byte, error) {
	size, err := unix.Fgetxattr(int(f.Fd()), name, nil)
	if err != nil {
		return nil, err
	}
	buf := make([]byte, size)
	if size > 0 {
		size, err = unix.Fgetxattr(int(f.Fd()), name, buf)
	}
	if err != nil {
		return nil, err
	}
	return buf[:size], nil
}
