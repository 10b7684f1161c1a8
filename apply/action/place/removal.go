package place

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/apply/hostfile"
)

// Removal removes a file, a link, or a directory with everything in it. A directory in which something is mounted is
// refused.
type Removal struct {
	Name      string // an absolute path
	OnlyEmpty bool   // leave a directory that is not empty
	Backup    bool   // keep a file that is removed, in the state directory
}

// Check looks whether something is there.
func (r Removal) Check(ctx context.Context, h *apply.Host) (apply.Change, error) {
	at, err := h.Entry(r.Name)
	if err != nil {
		return apply.Change{}, err
	}
	defer at.Close()
	info, err := at.Lstat()
	switch {
	case hostfile.NotThere(err) || h.Goes(r.Name):
		return apply.Change{}, nil
	case err != nil:
		return apply.Change{}, err
	case !info.IsDir():
		return apply.Change{Summary: "remove", Removes: []string{r.Name}}, nil
	}
	dir, err := at.Dir()
	if err != nil {
		return apply.Change{}, err
	}
	defer dir.Close()
	if r.OnlyEmpty {
		inside, err := dir.Names()
		inside = slices.DeleteFunc(inside, func(name string) bool { return h.Goes(filepath.Join(r.Name, name)) })
		if err != nil || len(inside) > 0 {
			return apply.Change{}, err
		}
		return apply.Change{Summary: "remove the empty directory", Removes: []string{r.Name}}, nil
	}
	change := apply.Change{Summary: "remove the directory and what is in it", Removes: []string{r.Name}}
	return change, r.noMounts(ctx, at, dir)
}

// noMounts reports a mount point at a directory or below it.
func (r Removal) noMounts(ctx context.Context, at *hostfile.Entry, dir *hostfile.Dir) error {
	one := func(rel string, e *hostfile.Entry) error {
		if mounted, err := e.IsMount(); err != nil || !mounted {
			return err
		}
		return fmt.Errorf("%s is a mount point: unmount it first", filepath.Join(r.Name, rel))
	}
	if err := one(".", at); err != nil {
		return err
	}
	return dir.Walk(ctx, func(rel string, e *hostfile.Entry, info hostfile.Info) error {
		if !info.IsDir() {
			return nil
		}
		return one(rel, e)
	})
}

// Apply removes what is there.
func (r Removal) Apply(ctx context.Context, h *apply.Host) error {
	change, err := r.Check(ctx, h)
	if err != nil || change.Empty() {
		return err
	}
	at, err := h.Entry(r.Name)
	if err != nil {
		return err
	}
	defer at.Close()
	if info, err := at.Lstat(); err == nil && info.Mode().IsRegular() && r.Backup {
		if _, err := Backup(h, r.Name, at); err != nil {
			return err
		}
	}
	if r.OnlyEmpty { // something may be in it by now
		err = at.Remove()
	} else {
		err = at.RemoveAll(ctx)
	}
	if err != nil {
		return err
	}
	return at.SyncDir()
}
