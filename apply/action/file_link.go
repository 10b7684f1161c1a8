package action

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/state"
)

// FileSymlink is a symbolic link to this target. The target need not exist.
//
// Example:
//
//	steps:
//	  - name: time zone
//	    action: file.symlink
//	    parameters: {name: /etc/localtime, target: ../usr/share/zoneinfo/Europe/Berlin}
type FileSymlink struct {
	Name     string `yaml:"name,required"`   // absolute path of the link
	Target   string `yaml:"target,required"` // what it says, absolute or relative
	Force    bool   `yaml:"force"`           // replace a regular file that stands there
	Owner    string `yaml:"owner"`           // of the link itself: name or number
	Group    string `yaml:"group"`           // of the link itself: name or number
	MakeDirs bool   `yaml:"makeDirs"`        // make missing parents, mode 0755
}

// Bind checks the parameters.
func (a *FileSymlink) Bind(apply.Binding) error {
	if a.Target == "" {
		return apply.BadParam("target", "is empty")
	}
	return apply.AbsPath("name", a.Name)
}

// Check compares what the link says, and its owner.
func (a *FileSymlink) Check(_ context.Context, h *apply.Host) (apply.Change, error) {
	path, err := h.Path(a.Name)
	if err != nil {
		return apply.Change{}, err
	}
	w, err := a.owners().wanted(h)
	if err != nil {
		return apply.Change{}, err
	}
	info, err := os.Lstat(path)
	switch {
	case missing(err):
		return apply.Change{Summary: "create, to " + a.Target, Lacks: lacksParent(a.Name, path, a.MakeDirs)}, nil
	case err != nil:
		return apply.Change{}, err
	case info.Mode()&fs.ModeSymlink == 0 && (!a.Force || info.IsDir()):
		return apply.Change{}, fmt.Errorf("%s is there and is no symbolic link: use force: true for a file, file.absent for a directory", a.Name)
	case info.Mode()&fs.ModeSymlink == 0:
		return apply.Change{Summary: "replace a file by a link to " + a.Target}, nil
	}
	have, err := os.Readlink(path)
	if err != nil {
		return apply.Change{}, err
	}
	differs := w.differs(info)
	if have != a.Target {
		differs = append([]string{"target " + have + " -> " + a.Target}, differs...)
	}
	return apply.Change{Summary: strings.Join(differs, ", ")}, nil
}

func (a *FileSymlink) owners() Permissions { return Permissions{Owner: a.Owner, Group: a.Group} }

// Apply makes the link under another name and renames it into place. What is not said of its owner stays as it was.
func (a *FileSymlink) Apply(_ context.Context, h *apply.Host, _ apply.Change) (apply.Output, error) {
	path, err := h.Path(a.Name)
	if err != nil {
		return apply.Output{}, err
	}
	w, err := a.owners().wanted(h)
	if err := errors.Join(err, w.known()); err != nil {
		return apply.Output{}, err
	}
	if err := makeParents(a.Name, path, a.MakeDirs); err != nil {
		return apply.Output{}, err
	}
	if old, err := os.Lstat(path); err == nil && old.Mode()&fs.ModeSymlink != 0 {
		st, _ := statOf(old)
		w.uid, w.gid = or(w.uid, int(st.Uid)), or(w.gid, int(st.Gid))
	}
	candidate := filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".pullet")
	if err := os.Remove(candidate); err != nil && !missing(err) {
		return apply.Output{}, err
	}
	if err := os.Symlink(a.Target, candidate); err != nil {
		return apply.Output{}, err
	}
	if err := errors.Join(w.set(candidate), os.Rename(candidate, path)); err != nil {
		return apply.Output{}, errors.Join(err, os.Remove(candidate))
	}
	return apply.Output{}, state.SyncDir(filepath.Dir(path))
}

// or is a number, or another where it says nothing.
func or(id, other int) int {
	if id < 0 {
		return other
	}
	return id
}

// FileAbsent removes a file, a link, or a directory with everything in it. A link is removed, never what it names. A directory in which
// something is mounted is not: what is mounted may be anything.
//
// Example:
//
//	steps:
//	  - name: no old configuration
//	    action: file.absent
//	    parameters: {name: /etc/app/old.conf}
type FileAbsent struct {
	Name      string `yaml:"name,required"` // absolute path, at least two levels deep
	OnlyEmpty bool   `yaml:"onlyEmpty"`     // leave a directory that is not empty
	Backup    bool   `yaml:"backup"`        // keep a file that is removed, in the state directory
}

// Bind refuses to remove a top-level directory.
func (a *FileAbsent) Bind(apply.Binding) error {
	if err := apply.AbsPath("name", a.Name); err != nil {
		return err
	}
	if strings.Count(filepath.Clean(a.Name), "/") < 2 {
		return apply.BadParam("name", "%s is too near the root to be removed", a.Name)
	}
	return nil
}

// Check looks whether something is there.
func (a *FileAbsent) Check(_ context.Context, h *apply.Host) (apply.Change, error) {
	path, err := h.Path(a.Name)
	if err != nil {
		return apply.Change{}, err
	}
	info, err := os.Lstat(path)
	switch {
	case missing(err):
		return apply.Change{}, nil
	case err != nil:
		return apply.Change{}, err
	case info.IsDir() && a.OnlyEmpty:
		inside, err := os.ReadDir(path)
		if err != nil || len(inside) > 0 {
			return apply.Change{}, err
		}
		return apply.Change{Summary: "remove the empty directory"}, nil
	case info.IsDir():
		return apply.Change{Summary: "remove the directory and what is in it"}, a.noMounts(path)
	}
	return apply.Change{Summary: "remove"}, nil
}

// noMounts reports a mount point at a path or below it.
func (a *FileAbsent) noMounts(path string) error {
	return filepath.WalkDir(path, func(at string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		if mounted, err := isMount(at); err != nil || !mounted {
			return err
		}
		return fmt.Errorf("%s is a mount point: unmount it first", filepath.Join(a.Name, strings.TrimPrefix(at, path)))
	})
}

// Apply removes what is there.
func (a *FileAbsent) Apply(_ context.Context, h *apply.Host, _ apply.Change) (apply.Output, error) {
	path, err := h.Path(a.Name)
	if err != nil {
		return apply.Output{}, err
	}
	info, err := os.Lstat(path)
	switch {
	case missing(err):
		return apply.Output{}, nil
	case err != nil:
		return apply.Output{}, err
	case info.IsDir() && !a.OnlyEmpty:
		err = a.noMounts(path)
	case info.Mode().IsRegular() && a.Backup:
		_, err = backup(h, a.Name, path)
	}
	if err != nil {
		return apply.Output{}, err
	}
	remove := os.RemoveAll
	if a.OnlyEmpty { // something may be in it by now
		remove = os.Remove
	}
	if err := remove(path); err != nil {
		return apply.Output{}, err
	}
	return apply.Output{}, state.SyncDir(filepath.Dir(path))
}

func missing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}
