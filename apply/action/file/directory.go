package file

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/apply/action/place"
	"github.com/pullet/pullet/apply/hostfile"
)

// Directory is a directory with this owner and mode. Missing parents are made with mode 0755. A link to a directory is
// followed, beneath the root; links in it never are.
//
// With recurse, owner, group, fileMode and dirMode hold for all that is below it. With clean, what is below it and no
// step of this host manages is removed. Both leave alone what another step names, with all that is below that: a
// file.directory step in a cleaned directory cleans for itself, or not at all. A mount point in it is never cleaned.
//
// Example:
//
//	steps:
//	  - name: spool
//	    action: file.directory
//	    parameters: {name: /var/spool/app, mode: 0750, owner: app, group: app}
//	  - name: only our sites
//	    action: file.directory
//	    parameters:
//	      name: /etc/nginx/sites-enabled
//	      clean: true
//	      exclude: ['*.local']
type Directory struct {
	Name              string `yaml:"name,required"` // absolute path
	place.Permissions `yaml:",inline"`
	Recurse           bool `yaml:"recurse"` // owner, group, fileMode and dirMode of all that is below it, too
	place.TreeModes   `yaml:",inline"`
	Cleaning          `yaml:",inline"`
}

// Bind checks the parameters, and learns what other steps manage.
func (a *Directory) Bind(b apply.Binding) error {
	if err := apply.AbsPath("name", a.Name); err != nil {
		return err
	}
	if err := a.Permissions.CheckMode(); err != nil {
		return err
	}
	if err := a.TreeModes.CheckModes(); err != nil {
		return err
	}
	switch {
	case a.FileMode != "" && !a.Recurse:
		return apply.BadParam("fileMode", "is for what is below the directory: add recurse: true")
	case a.DirMode != "" && !a.Recurse:
		return apply.BadParam("dirMode", "is for what is below the directory: add recurse: true")
	case len(a.Exclude) > 0 && !a.Recurse && !a.Clean:
		return apply.BadParam("exclude", "is for clean and recurse")
	}
	if a.Recurse && !a.Clean { // it has to know of other steps, too
		if err := a.learn(b, filepath.Clean(a.Name)); err != nil {
			return err
		}
	}
	return a.Cleaning.bind(b, a.Name)
}

// Manages is the directory.
func (a *Directory) Manages() []apply.Resource {
	return []apply.Resource{place.Resource(a.Name)}
}

// Check compares type, owner and mode, and with recurse and clean what is below.
func (a *Directory) Check(ctx context.Context, h *apply.Host) (apply.Change, error) {
	w, err := a.Wanted(h)
	if err != nil {
		return apply.Change{}, err
	}
	at, err := h.Follow(a.Name)
	if err != nil {
		return apply.Change{}, err
	}
	defer at.Close()
	info, err := at.Lstat()
	switch {
	case hostfile.NotThere(err):
		return apply.Change{Summary: w.Created(place.NewDirMode)}, nil
	case err != nil:
		return apply.Change{}, err
	case !info.IsDir():
		return apply.Change{}, fmt.Errorf("%s is not a directory: remove it with file.absent first", a.Name)
	}
	own := w.Differs(info)
	below, err := a.below(ctx, h, at)
	if err != nil {
		return apply.Change{}, err
	}
	if below.Summary != "" {
		own = append(own, "below it: "+below.Summary)
	}
	return apply.Change{Summary: strings.Join(own, ", "), Diff: below.Diff, Lost: below.Lost}, nil
}

// Prepares is the path of a directory alone: so that one which is right stands between files that become durable
// together.
func (a *Directory) Prepares() string {
	if a.Recurse || a.Clean {
		return ""
	}
	return a.Name
}

// CheckAt finds out whether the directory is right. It prepares nothing: what comes behind a new directory may be in
// it.
func (a *Directory) CheckAt(h *apply.Host, at *hostfile.Entry) (apply.Change, apply.Prepare, error) {
	w, err := a.Wanted(h)
	if err != nil {
		return apply.Change{}, nil, err
	}
	info, err := at.Lstat()
	if err != nil || !info.IsDir() || len(w.Differs(info)) > 0 {
		return apply.Change{Summary: "change"}, nil, nil // what it is, or what is wrong, Check says
	}
	return apply.Change{}, nil, nil
}

// below is what is to be done below the directory.
func (a *Directory) below(ctx context.Context, h *apply.Host, at *hostfile.Entry) (apply.Change, error) {
	if !a.Clean && !a.Recurse {
		return apply.Change{}, nil
	}
	dir, err := at.Dir()
	if err != nil {
		return apply.Change{}, err
	}
	defer dir.Close()
	var c place.Tally
	extra, err := a.extra(h, dir, a.Name, func(string) bool { return false })
	if err != nil {
		return apply.Change{}, err
	}
	err = a.walk(ctx, h, dir, extra, func(rel string, _ *hostfile.Entry, info hostfile.Info, w place.Wanted) error {
		c.Count(strings.Join(w.Differs(info), ", "), filepath.Join(a.Name, rel), "")
		return nil
	})
	c.Remove(a.Name, extra)
	return c.Change(), err
}

// Apply makes the directory, sets owners and modes, and removes what is too much.
func (a *Directory) Apply(ctx context.Context, h *apply.Host, _ apply.Change) (apply.Output, error) {
	w, err := a.Wanted(h)
	if err := errors.Join(err, w.Known()); err != nil {
		return apply.Output{}, err
	}
	at, err := h.Follow(a.Name)
	if err != nil {
		return apply.Output{}, err
	}
	defer at.Close()
	if err := at.MakeParents(0o755); err != nil {
		return apply.Output{}, err
	}
	dir, err := openOrMake(at)
	if err != nil {
		return apply.Output{}, err
	}
	defer dir.Close()
	if err := modeOf(w).Set(dir); err != nil {
		return apply.Output{}, err
	}
	extra, err := a.extra(h, dir, a.Name, func(string) bool { return false })
	if err != nil {
		return apply.Output{}, err
	}
	if err := removeAll(ctx, h, dir, a.Name, extra, false); err != nil {
		return apply.Output{}, err
	}
	if err := a.setBelow(ctx, h, dir); err != nil {
		return apply.Output{}, err
	}
	if err := w.Set(dir); err != nil {
		return apply.Output{}, err
	}
	return apply.Output{}, at.SyncDir()
}

// setBelow gives what is below the directory its owners and modes. A directory gets its owner after what is in it: a
// file with several names is not given away in a directory of a user, who could have put a name there.
func (a *Directory) setBelow(ctx context.Context, h *apply.Host, dir *hostfile.Dir) error {
	type later struct {
		rel string
		w   place.Wanted
	}
	var dirs []later
	err := a.walk(ctx, h, dir, nil, func(rel string, e *hostfile.Entry, info hostfile.Info, w place.Wanted) error {
		if len(w.Differs(info)) == 0 {
			return nil
		}
		if info.IsDir() {
			dirs = append(dirs, later{rel, w})
			w = modeOf(w)
		}
		return w.Set(e)
	})
	if err != nil {
		return err
	}
	for _, d := range slices.Backward(dirs) {
		e, err := dir.Entry(d.rel)
		if err != nil {
			return err
		}
		err = d.w.Set(e)
		e.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

// modeOf is what is wanted without the owner and the group.
func modeOf(w place.Wanted) place.Wanted {
	w.UID, w.GID = -1, -1
	return w
}

// walk visits what recurse holds for, with what it shall have. Links have owners of their own and no mode.
func (a *Directory) walk(ctx context.Context, h *apply.Host, dir *hostfile.Dir, gone []string,
	visit func(rel string, e *hostfile.Entry, info hostfile.Info, w place.Wanted) error) error {
	if !a.Recurse {
		return nil
	}
	w, err := place.Permissions{Owner: a.Owner, Group: a.Group}.Tree(h, a.TreeModes)
	if err != nil {
		return err
	}
	s, err := a.sweep(h, dir, a.Name, nil)
	if err != nil {
		return err
	}
	return dir.Walk(ctx, func(rel string, e *hostfile.Entry, info hostfile.Info) error {
		if s.passes(rel, e.Path()) || slices.Contains(gone, rel) {
			return fs.SkipDir
		}
		want := w.File
		switch {
		case info.IsDir():
			want = w.Dir
		case !info.Mode().IsRegular():
			want.SetMode = false
		}
		return visit(rel, e, info, want)
	})
}
