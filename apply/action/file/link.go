package file

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/apply/action/place"
	"github.com/pullet/pullet/apply/hostfile"
)

// Symlink is a symbolic link to this target. The target need not exist.
//
// Example:
//
//	steps:
//	  - name: time zone
//	    action: file.symlink
//	    parameters:
//	      name: /etc/localtime
//	      target: ../usr/share/zoneinfo/Europe/Berlin
type Symlink struct {
	Name     string `yaml:"name,required"`   // absolute path of the link
	Target   string `yaml:"target,required"` // what it says, absolute or relative
	Force    bool   `yaml:"force"`           // replace a regular file that stands there
	Owner    string `yaml:"owner"`           // of the link itself: name or number
	Group    string `yaml:"group"`           // of the link itself: name or number
	MakeDirs bool   `yaml:"makeDirs"`        // make missing parents, mode 0755
}

// Bind checks the parameters.
func (a *Symlink) Bind(apply.Binding) error {
	if a.Target == "" {
		return apply.BadParam("target", "is empty")
	}
	return apply.AbsPath("name", a.Name)
}

// Manages is the link.
func (a *Symlink) Manages() []apply.Resource { return []apply.Resource{place.Resource(a.Name)} }

// Check compares what the link says, and its owner.
func (a *Symlink) Check(_ context.Context, h *apply.Host) (apply.Change, error) {
	w, err := a.owners().Wanted(h)
	if err != nil {
		return apply.Change{}, err
	}
	at, err := h.Entry(a.Name)
	if err != nil {
		return apply.Change{}, err
	}
	defer at.Close()
	info, err := at.Lstat()
	switch {
	case hostfile.NotThere(err):
		return apply.Change{Summary: "create, to " + a.Target, Lacks: place.Lacks(a.Name, at, a.MakeDirs)}, nil
	case err != nil:
		return apply.Change{}, err
	case info.Mode()&fs.ModeSymlink == 0 && (!a.Force || info.IsDir()):
		return apply.Change{}, fmt.Errorf(
			"%s is there and is no symbolic link: use force: true for a file, file.absent for a directory",
			a.Name,
		)
	case info.Mode()&fs.ModeSymlink == 0:
		return apply.Change{Summary: "replace a file by a link to " + a.Target}, nil
	}
	have, err := at.Readlink()
	if err != nil {
		return apply.Change{}, err
	}
	differs := w.Differs(info)
	if have != a.Target {
		differs = append([]string{"target " + have + " -> " + a.Target}, differs...)
	}
	return apply.Change{Summary: strings.Join(differs, ", ")}, nil
}

func (a *Symlink) owners() place.Permissions {
	return place.Permissions{Owner: a.Owner, Group: a.Group}
}

// Apply makes the link under another name and renames it into place. What is not said of its owner stays as it was.
func (a *Symlink) Apply(_ context.Context, h *apply.Host, _ apply.Change) (apply.Output, error) {
	w, err := a.owners().Wanted(h)
	if err := errors.Join(err, w.Known()); err != nil {
		return apply.Output{}, err
	}
	at, err := h.Entry(a.Name)
	if err != nil {
		return apply.Output{}, err
	}
	defer at.Close()
	if err := place.MakeParents(a.Name, at, a.MakeDirs); err != nil {
		return apply.Output{}, err
	}
	return apply.Output{}, w.Link(at, a.Target)
}

// Absent removes a file, a link, or a directory with everything in it. A link is removed, never what it names. A
// directory in which something is mounted is not: what is mounted may be anything.
//
// Example:
//
//	steps:
//	  - name: no old configuration
//	    action: file.absent
//	    parameters: {name: /etc/app/old.conf}
type Absent struct {
	Name      string `yaml:"name,required"` // absolute path, at least two levels deep
	OnlyEmpty bool   `yaml:"onlyEmpty"`     // leave a directory that is not empty
	Backup    bool   `yaml:"backup"`        // keep a file that is removed, in the state directory
}

// Bind refuses to remove a top-level directory.
func (a *Absent) Bind(apply.Binding) error {
	if err := apply.AbsPath("name", a.Name); err != nil {
		return err
	}
	if strings.Count(filepath.Clean(a.Name), "/") < 2 {
		return apply.BadParam("name", "%s is too near the root to be removed", a.Name)
	}
	return nil
}

func (a *Absent) removal() place.Removal {
	return place.Removal{Name: a.Name, OnlyEmpty: a.OnlyEmpty, Backup: a.Backup}
}

// Check looks whether something is there.
func (a *Absent) Check(ctx context.Context, h *apply.Host) (apply.Change, error) {
	return a.removal().Check(ctx, h)
}

// Apply removes what is there.
func (a *Absent) Apply(ctx context.Context, h *apply.Host, _ apply.Change) (apply.Output, error) {
	return apply.Output{}, a.removal().Apply(ctx, h)
}
