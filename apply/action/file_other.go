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

// FileDirectory is a directory with this owner and mode. Missing parents are made with mode 0755. A link to a directory is followed,
// beneath the root.
//
// Example:
//
//	steps:
//	  - name: spool
//	    action: file.directory
//	    parameters: {name: /var/spool/app, mode: 0750, owner: app, group: app}
type FileDirectory struct {
	Name        string `yaml:"name,required"` // absolute path
	Permissions `yaml:",inline"`
}

// Bind checks the parameters.
func (a *FileDirectory) Bind(apply.Binding) error {
	return errors.Join(apply.AbsPath("name", a.Name), a.check())
}

// Check compares type, owner and mode.
func (a *FileDirectory) Check(_ context.Context, h *apply.Host) (apply.Change, error) {
	path, err := h.Resolve(a.Name)
	if err != nil {
		return apply.Change{}, err
	}
	w, err := a.wanted(h)
	if err != nil {
		return apply.Change{}, err
	}
	info, err := os.Stat(path)
	switch {
	case missing(err):
		return apply.Change{Summary: "create", New: true}, nil
	case err != nil:
		return apply.Change{}, err
	case !info.IsDir():
		return apply.Change{}, fmt.Errorf("%s is not a directory: remove it with file.absent first", a.Name)
	}
	return apply.Change{Summary: strings.Join(w.differs(info), ", ")}, nil
}

// Apply makes the directory and sets its owner and mode.
func (a *FileDirectory) Apply(_ context.Context, h *apply.Host, _ apply.Change) (apply.Output, error) {
	path, err := h.Resolve(a.Name)
	if err != nil {
		return apply.Output{}, err
	}
	w, err := a.wanted(h)
	if err != nil {
		return apply.Output{}, err
	}
	if err := os.MkdirAll(path, 0o755); err != nil {
		return apply.Output{}, err
	}
	if err := w.set(path); err != nil {
		return apply.Output{}, err
	}
	return apply.Output{}, state.SyncDir(filepath.Dir(path))
}

// FileSymlink is a symbolic link to this target. The target need not exist.
//
// Example:
//
//	steps:
//	  - name: time zone
//	    action: file.symlink
//	    parameters: {name: /etc/localtime, target: ../usr/share/zoneinfo/Europe/Berlin}
type FileSymlink struct {
	Name   string `yaml:"name,required"`   // absolute path of the link
	Target string `yaml:"target,required"` // what it says, absolute or relative
	Force  bool   `yaml:"force"`           // replace a regular file that stands there
}

// Bind checks the parameters.
func (a *FileSymlink) Bind(apply.Binding) error {
	if a.Target == "" {
		return apply.BadParam("target", "is empty")
	}
	return apply.AbsPath("name", a.Name)
}

// Check compares what the link says.
func (a *FileSymlink) Check(_ context.Context, h *apply.Host) (apply.Change, error) {
	path, err := h.Path(a.Name)
	if err != nil {
		return apply.Change{}, err
	}
	info, err := os.Lstat(path)
	switch {
	case missing(err):
		return apply.Change{Summary: "create, to " + a.Target, New: true}, nil
	case err != nil:
		return apply.Change{}, err
	case info.Mode()&fs.ModeSymlink == 0 && (!a.Force || info.IsDir()):
		return apply.Change{}, fmt.Errorf("%s is there and is no symbolic link: use force: true for a file, file.absent for a directory", a.Name)
	case info.Mode()&fs.ModeSymlink == 0:
		return apply.Change{Summary: "replace a file by a link to " + a.Target}, nil
	}
	have, err := os.Readlink(path)
	if err != nil || have == a.Target {
		return apply.Change{}, err
	}
	return apply.Change{Summary: "target " + have + " -> " + a.Target}, nil
}

// Apply makes the link under another name and renames it into place.
func (a *FileSymlink) Apply(_ context.Context, h *apply.Host, _ apply.Change) (apply.Output, error) {
	path, err := h.Path(a.Name)
	if err != nil {
		return apply.Output{}, err
	}
	candidate := filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".pullet")
	if err := os.Remove(candidate); err != nil && !missing(err) {
		return apply.Output{}, err
	}
	if err := os.Symlink(a.Target, candidate); err != nil {
		return apply.Output{}, err
	}
	if err := os.Rename(candidate, path); err != nil {
		return apply.Output{}, errors.Join(err, os.Remove(candidate))
	}
	return apply.Output{}, state.SyncDir(filepath.Dir(path))
}

// FileAbsent removes a file, a link, or a directory with everything in it. A link is removed, never what it names.
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
		return apply.Change{Summary: "remove the directory and what is in it"}, nil
	}
	return apply.Change{Summary: "remove"}, nil
}

// Apply removes what is there.
func (a *FileAbsent) Apply(_ context.Context, h *apply.Host, _ apply.Change) (apply.Output, error) {
	path, err := h.Path(a.Name)
	if err != nil {
		return apply.Output{}, err
	}
	info, err := os.Lstat(path)
	if err == nil && a.Backup && info.Mode().IsRegular() {
		if err := backup(h, a.Name, path); err != nil {
			return apply.Output{}, fmt.Errorf("backup: %w", err)
		}
	}
	if err == nil && a.OnlyEmpty { // something may be in it by now
		err = os.Remove(path)
	} else {
		err = os.RemoveAll(path)
	}
	if missing(err) {
		err = nil
	}
	return apply.Output{}, err
}

func missing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

// resource is a path that a step manages.
func resource(path string) []apply.Resource {
	path = filepath.Clean(path)
	return []apply.Resource{{ID: "file " + path, Path: path, Absent: "file.absent", Params: map[string]any{"name": path, "onlyEmpty": true, "backup": true}}}
}

// Manages is the directory.
func (a *FileDirectory) Manages() []apply.Resource { return resource(a.Name) }

// Manages is the link.
func (a *FileSymlink) Manages() []apply.Resource { return resource(a.Name) }
