package action

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/state"
)

// makeHome makes the missing home of a user, as useradd does: with the files of /etc/skel. It gets its name when it is complete.
func makeHome(h *apply.Host, name string) error {
	all, err := readAccounts(h, "passwd")
	if err != nil {
		return err
	}
	user := all.named(name)
	uid, ok := user.number(idField)
	gid, ok2 := user.number(gidField)
	if !ok || !ok2 {
		return fmt.Errorf("user %s has no numbers in /etc/passwd", name)
	}
	home, err := h.Resolve(user.field(homeField))
	if err != nil {
		return err
	}
	if exists(home) {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(home), 0o755); err != nil {
		return err
	}
	if !onlyOwn(h.Root, filepath.Dir(home)) { // they could put a link in the place of what is given to the user
		return fmt.Errorf("home of %s: others than root can write to %s or above it: make %s with file.directory", name, filepath.Dir(user.field(homeField)), user.field(homeField))
	}
	part, err := os.MkdirTemp(filepath.Dir(home), ".pullet-home-")
	if err != nil {
		return err
	}
	err = errors.Join(copySkel(h, part), ownTree(part, uid, gid), os.Chmod(part, homeMode(h)))
	if err == nil {
		err = os.Rename(part, home)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("home of %s: %w", name, err), os.RemoveAll(part))
	}
	return state.SyncDir(filepath.Dir(home))
}

// copySkel copies /etc/skel into a directory that only root can enter yet.
func copySkel(h *apply.Host, to string) error {
	from, err := h.Resolve("/etc/skel")
	if err != nil {
		return err
	}
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if missing(err) {
			return nil
		}
		if err != nil || path == from {
			return err
		}
		at := filepath.Join(to, strings.TrimPrefix(path, from))
		info, err := d.Info()
		if err != nil {
			return err
		}
		return copyEntry(path, at, info)
	})
}

func copyEntry(from, to string, info fs.FileInfo) error {
	switch info.Mode().Type() {
	case fs.ModeDir:
		return errors.Join(os.Mkdir(to, 0o700), os.Chmod(to, info.Mode().Perm()))
	case fs.ModeSymlink:
		target, err := os.Readlink(from)
		if err != nil {
			return err
		}
		return os.Symlink(target, to)
	case 0:
		data, err := os.ReadFile(from)
		if err != nil {
			return err
		}
		return errors.Join(os.WriteFile(to, data, 0o600), os.Chmod(to, info.Mode().Perm()))
	}
	return nil // a device or a socket is nothing for a home
}

// ownTree gives a directory and what is in it to a user, the directory itself last.
func ownTree(dir string, uid, gid int) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		if e.IsDir() {
			err = ownTree(path, uid, gid)
		} else {
			err = os.Lchown(path, uid, gid)
		}
		if err != nil {
			return err
		}
	}
	return os.Lchown(dir, uid, gid)
}

// homeMode is the mode of a new home by the host's login.defs.
func homeMode(h *apply.Host) fs.FileMode {
	mode := fs.FileMode(0o700)
	path, err := h.Resolve("/etc/login.defs")
	if err != nil {
		return mode
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return mode // none is needed
	}
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		if len(f) < 2 {
			continue
		}
		bits, err := strconv.ParseUint(f[1], 8, 9)
		switch {
		case err != nil:
		case f[0] == "HOME_MODE":
			return fs.FileMode(bits)
		case f[0] == "UMASK":
			mode = 0o777 &^ fs.FileMode(bits)
		}
	}
	return mode
}
