package pkg

import (
	"path"

	"github.com/pullet/pullet/apply"
)

// Paths returns the files of the repository and of those that it replaces.
func (a *RepoManaged) Paths(h *apply.Host) []string {
	out := a.repoPaths(h, a.Name)
	if len(out) > 0 {
		for _, name := range a.Replaces {
			out = append(out, path.Join(path.Dir(out[0]), name))
		}
	}
	return out
}

// Paths returns the files of the repository.
func (a *RepoAbsent) Paths(h *apply.Host) []string { return a.repoPaths(h, a.Name) }

// repoPaths returns the files of a repository, that with its address first.
func (l Locking) repoPaths(h *apply.Host, name string) []string {
	form, err := l.form(h)
	if err != nil {
		return nil // the step itself fails for it
	}
	return form.leftovers(name)
}
