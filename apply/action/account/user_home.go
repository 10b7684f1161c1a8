package account

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/apply/action/passwd"
	"github.com/pullet/pullet/apply/action/place"
	"github.com/pullet/pullet/apply/hostfile"
)

// makeHome makes the missing home of a user, as useradd does: with the files of /etc/skel. It gets its name when it is
// complete.
func makeHome(ctx context.Context, h *apply.Host, name string) error {
	all, err := passwd.Read(h, "passwd")
	if err != nil {
		return err
	}
	user := all.Named(name)
	uid, ok := user.Number(passwd.ID)
	gid, ok2 := user.Number(passwd.GID)
	if !ok || !ok2 {
		return fmt.Errorf("user %s has no numbers in /etc/passwd", name)
	}
	home, err := h.Follow(user.Field(passwd.Home))
	if err != nil {
		return err
	}
	defer home.Close()
	if home.Exists() {
		return nil
	}
	if err := home.MakeParents(0o755); err != nil {
		return err
	}
	if private, err := home.Private(); err != nil || !private {
		return errors.Join(
			err,
			fmt.Errorf("home of %s: others than root can write to %s or above it: make %s with file.directory",
				name, path.Dir(home.Path()), user.Field(passwd.Home)),
		)
	}
	part, err := h.Entry(path.Join(path.Dir(home.Path()), ".pullet-home-"+name))
	if err != nil {
		return err
	}
	defer part.Close()
	if err := part.RemoveAll(ctx); err != nil { // of a run that was cut off
		return err
	}
	if err := fillHome(ctx, h, part, uid, gid); err != nil {
		return errors.Join(fmt.Errorf("home of %s: %w", name, err), part.RemoveAll(ctx))
	}
	if err := part.Rename(home); err != nil {
		return errors.Join(fmt.Errorf("home of %s: %w", name, err), part.RemoveAll(ctx))
	}
	return home.SyncDir()
}

// fillHome makes a home under another name, which only root can enter until it is complete.
func fillHome(ctx context.Context, h *apply.Host, part *hostfile.Entry, uid, gid int) error {
	dir, err := part.Mkdir(0o700)
	if err != nil {
		return err
	}
	defer dir.Close()
	owner := hostfile.Attributes{UID: uid, GID: gid}
	if err := copySkel(ctx, h, dir, owner); err != nil {
		return err
	}
	owner.Mode, owner.SetMode = homeMode(h), true
	return dir.Set(owner)
}

// maxSkel bounds a file of /etc/skel.
const maxSkel = 64 << 20

// copySkel copies /etc/skel into a directory. What is made belongs to the owner at the end, a directory after what is
// in it.
func copySkel(ctx context.Context, h *apply.Host, to *hostfile.Dir, owner hostfile.Attributes) error {
	from, err := h.Follow("/etc/skel")
	if err != nil {
		return err
	}
	defer from.Close()
	skel, err := from.Dir()
	if hostfile.NotThere(err) {
		return nil
	}
	if err != nil {
		return err
	}
	defer skel.Close()
	var made []string
	err = skel.Walk(ctx, func(rel string, e *hostfile.Entry, info hostfile.Info) error {
		at, err := to.Entry(rel)
		if err != nil {
			return err
		}
		defer at.Close()
		made = append(made, rel)
		return copyEntry(e, at, info)
	})
	for _, rel := range slices.Backward(made) {
		if err == nil {
			err = giveTo(to, rel, owner)
		}
	}
	return err
}

func giveTo(dir *hostfile.Dir, rel string, owner hostfile.Attributes) error {
	at, err := dir.Entry(rel)
	if err != nil {
		return err
	}
	defer at.Close()
	if err := at.Set(owner); !hostfile.NotThere(err) { // a device or a socket was not copied
		return err
	}
	return nil
}

func copyEntry(from, to *hostfile.Entry, info hostfile.Info) error {
	mode := info.Mode().Perm()
	switch info.Mode().Type() {
	case fs.ModeDir:
		dir, err := to.Mkdir(mode)
		dir.Close()
		return err
	case fs.ModeSymlink:
		target, err := from.Readlink()
		if err != nil {
			return err
		}
		return to.Symlink(target, -1, -1)
	case 0:
		data, err := from.ReadFile(maxSkel)
		if err != nil {
			return err
		}
		return place.Put(to, data, hostfile.Attributes{UID: -1, GID: -1, Mode: mode, SetMode: true})
	}
	return nil // a device or a socket is nothing for a home
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
