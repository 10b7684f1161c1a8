package pkg

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/apply/action/place"
	"github.com/pullet/pullet/apply/hostfile"
)

// Apply writes the key, tries the repository with a candidate of its file, and puts that into place of the files that
// it replaces. When that fails, the key is as it was.
func (a *RepoManaged) Apply(ctx context.Context, h *apply.Host, _ apply.Change) (apply.Output, error) {
	form, err := a.form(h)
	if err != nil {
		return apply.Output{}, err
	}
	key, err := a.theKey(ctx, h, form)
	if err != nil {
		return apply.Output{}, err
	}
	files, err := a.files(h, form, key)
	if err != nil {
		return apply.Output{}, err
	}
	source := files[len(files)-1]
	undo, err := writeKeys(h, files[:len(files)-1])
	if err == nil {
		err = a.tryAndPlace(ctx, h, source)
	}
	if err != nil {
		return apply.Output{}, errors.Join(fmt.Errorf("%s: %w; the host is as it was", a.Name, err), undo())
	}
	return apply.Output{}, errors.Join(a.dropReplaced(ctx, h, source), a.dropOtherKeys(h, form, files))
}

// Manages is the repository.
func (a *RepoManaged) Manages() []apply.Resource {
	return []apply.Resource{
		{ID: "package repository " + a.Name, Absent: "pkgrepo.absent", Params: map[string]any{"name": a.Name}},
	}
}

// writeKeys writes the key, and returns what undoes it.
func writeKeys(h *apply.Host, keys []repoFile) (undo func() error, err error) {
	undo = func() error { return nil }
	for _, f := range keys {
		before, err := readIfThere(h, f.path)
		if err != nil {
			return undo, err
		}
		made, err := lacksDir(h, f.path)
		if err != nil {
			return undo, err
		}
		undo = func() error {
			if before != nil {
				return writeFile(h, f.path, before)
			}
			err := place.Remove(h, f.path)
			if made {
				err = errors.Join(err, place.Remove(h, filepath.Dir(f.path)))
			}
			return err
		}
		if err := writeFile(h, f.path, f.want); err != nil {
			return undo, err
		}
	}
	return undo, nil
}

// lacksDir reports that the directory of a path is not there.
func lacksDir(h *apply.Host, name string) (bool, error) {
	at, err := h.Entry(name)
	if err != nil {
		return false, err
	}
	defer at.Close()
	return !at.HasParent(), nil
}

// writeFile replaces a small file, and makes its directory.
func writeFile(h *apply.Host, name string, data []byte) error {
	at, err := h.Entry(name)
	if err != nil {
		return err
	}
	defer at.Close()
	if err := at.MakeParents(0o755); err != nil {
		return err
	}
	return place.Put(at, data, hostfile.Attributes{UID: -1, GID: -1, Mode: place.NewMode, SetMode: true})
}

// dropOtherKeys removes a key of the same repository in the form that it does not have any more.
func (a *RepoManaged) dropOtherKeys(h *apply.Host, form repoForm, files []repoFile) error {
	wanted := map[string]bool{}
	for _, f := range files {
		wanted[f.path] = true
	}
	for _, path := range form.leftovers(a.Name) {
		if !wanted[path] {
			if err := place.Remove(h, path); err != nil {
				return err
			}
		}
	}
	return nil
}

// RepoAbsent is a package repository that this host does not use: its files, as pkgrepo.managed makes them, and its key
// are not there. Installed packages stay.
//
// Example:
//
//	steps:
//	  - name: no test packages
//	    action: pkgrepo.absent
//	    parameters: {name: app-testing}
type RepoAbsent struct {
	Name    string `yaml:"name,required"` // as in pkgrepo.managed
	Locking `yaml:",inline"`
}

// Bind checks the name.
func (a *RepoAbsent) Bind(apply.Binding) error {
	if !repoName.MatchString(a.Name) {
		return apply.BadParam("name", "%q cannot be the name of a file: use letters, digits and _ . -", a.Name)
	}
	return nil
}

// there are the repository's files that exist.
func (a *RepoAbsent) there(h *apply.Host) ([]string, error) {
	form, err := a.form(h)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, name := range form.leftovers(a.Name) {
		there, err := place.Stands(h, name)
		if err != nil {
			return nil, err
		}
		if there {
			out = append(out, name)
		}
	}
	return out, nil
}

// Check looks for the files.
func (a *RepoAbsent) Check(_ context.Context, h *apply.Host) (apply.Change, error) {
	names, err := a.there(h)
	if err != nil || len(names) == 0 {
		return apply.Change{}, err
	}
	return apply.Change{Summary: "remove " + strings.Join(names, ", ")}, nil
}

// Apply removes them, the key last: what names it must not stay behind alone.
func (a *RepoAbsent) Apply(_ context.Context, h *apply.Host, _ apply.Change) (apply.Output, error) {
	names, err := a.there(h)
	for _, name := range names {
		err = errors.Join(err, place.Remove(h, name))
	}
	return apply.Output{}, err
}
