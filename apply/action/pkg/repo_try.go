package pkg

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/apply/action/place"
	"github.com/pullet/pullet/apply/hostfile"
)

// repoTrial is a candidate of a repository's file that a package manager shall read.
type repoTrial struct {
	name     string
	file     string // the candidate
	together string // a directory with the candidate and the files of all other repositories
	fetch    bool   // read what the repository says, too
}

// conflictError is what a package manager says of repositories that do not go together.
type conflictError struct{ said string }

func (e *conflictError) Error() string { return e.said }

// tryAndPlace lets the package manager read the file, and then puts it into place.
func (a *RepoManaged) tryAndPlace(ctx context.Context, h *apply.Host, source repoFile) error {
	p, err := a.packager(h)
	if err == nil {
		if err := a.try(ctx, h, p, source); err != nil {
			return a.explain(h, source, err)
		}
	}
	return writeFile(h, source.path, source.want) // without a package manager yet there is nothing to try it with
}

// try lets the package manager read a candidate, in a hidden directory beside the file, which it does not read
// otherwise. Links in it lead to the files of the other repositories.
func (a *RepoManaged) try(ctx context.Context, h *apply.Host, p packager, source repoFile) (err error) {
	at, err := h.Entry(path.Join(path.Dir(source.path), ".pullet-"+a.Name))
	if err != nil {
		return err
	}
	defer at.Close()
	if err := errors.Join(at.MakeParents(0o755), at.RemoveAll(ctx)); err != nil { // of a run that was killed
		return err
	}
	defer func() { err = errors.Join(err, at.RemoveAll(context.WithoutCancel(ctx))) }()
	dir, err := at.Mkdir(0o755)
	if err != nil {
		return err
	}
	defer dir.Close()
	others, err := a.others(h, source)
	if err != nil {
		return err
	}
	for _, name := range others {
		if err := linkIn(dir, name, "../"+name); err != nil {
			return err
		}
	}
	t := repoTrial{
		name: a.Name, file: path.Join(at.Path(), path.Base(source.path)), together: at.Path(),
		fetch: a.Refresh && a.Enabled,
	}
	if err := writeFile(h, t.file, source.want); err != nil {
		return err
	}
	return p.try(ctx, t)
}

func linkIn(dir *hostfile.Dir, name, target string) error {
	at, err := dir.Entry(name)
	if err != nil {
		return err
	}
	defer at.Close()
	return at.Symlink(target, -1, -1)
}

// others are the files of other repositories beside a repository's file, without those that it replaces.
func (a *RepoManaged) others(h *apply.Host, source repoFile) ([]string, error) {
	at, err := h.Follow(path.Dir(source.path))
	if err != nil {
		return nil, err
	}
	defer at.Close()
	dir, err := at.Dir()
	if hostfile.NotThere(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	names, err := dir.Names()
	slices.Sort(names)
	return slices.DeleteFunc(names, func(name string) bool {
		return strings.HasPrefix(name, ".") || name == path.Base(source.path) || slices.Contains(a.Replaces, name)
	}), err
}

// explain adds to a conflict where the repository stands already.
func (a *RepoManaged) explain(h *apply.Host, source repoFile, err error) error {
	if _, conflict := errors.AsType[*conflictError](err); !conflict {
		return err
	}
	others, bad := a.others(h, source)
	if bad != nil {
		return errors.Join(err, bad)
	}
	others = slices.DeleteFunc(others, func(name string) bool {
		return !a.standsIn(h, path.Join(path.Dir(source.path), name))
	})
	switch main := "/etc/apt/sources.list"; {
	case len(others) > 0:
		return fmt.Errorf("the repository is in %s already: %w; hint: write replaces: [%s] in the step",
			strings.Join(others, " and "), err, strings.Join(append(slices.Clone(a.Replaces), others...), ", "))
	case a.standsIn(h, main):
		return fmt.Errorf("the repository is in %s already: %w; hint: remove its line with file.line", main, err)
	}
	return err
}

// standsIn reports whether a file names one of the step's addresses.
func (a *RepoManaged) standsIn(h *apply.Host, name string) bool {
	file, err := place.ReadText(h, name)
	if err != nil {
		return false // it is only for a hint
	}
	return slices.ContainsFunc(strings.Fields(file.Text), func(word string) bool {
		return slices.ContainsFunc(a.URL, func(u string) bool {
			return strings.TrimRight(word, "/") == strings.TrimRight(u, "/")
		})
	})
}

// checkReplaces finds what is no file of repositories, or the step's own.
func (a *RepoManaged) checkReplaces() error {
	for _, name := range a.Replaces {
		base, suffix := strings.TrimSuffix(name, path.Ext(name)), path.Ext(name)
		switch {
		case !repoName.MatchString(name) || !slices.Contains([]string{".list", ".sources", ".repo"}, suffix):
			return apply.BadParam("replaces", "%q is not a file of repositories; write NAME.list, NAME.sources or NAME.repo",
				name)
		case base == a.Name && suffix != ".list":
			return apply.BadParam("replaces", "%q is the file that the step makes", name)
		}
	}
	return nil
}

// replaced are the files that are still there and that the repository replaces.
func (a *RepoManaged) replaced(h *apply.Host, source repoFile) ([]string, error) {
	var out []string
	for _, name := range a.Replaces {
		at := path.Join(path.Dir(source.path), name)
		there, err := place.Stands(h, at)
		if err != nil {
			return nil, err
		}
		if there {
			out = append(out, at)
		}
	}
	return out, nil
}

// dropReplaced removes the files that the repository replaces. A copy of each stays in the state directory.
func (a *RepoManaged) dropReplaced(ctx context.Context, h *apply.Host, source repoFile) error {
	names, err := a.replaced(h, source)
	for _, name := range names {
		err = errors.Join(err, place.Removal{Name: name, Backup: true}.Apply(ctx, h))
	}
	return err
}
