package file

import "github.com/pullet/pullet/apply"

// Paths returns the file or directory that is read, with everything in it.
func (a *Content) Paths(*apply.Host) []string { return []string{a.Name, a.Name + "/"} }

// Paths returns the directory, and what is in it where the step changes that.
func (a *Directory) Paths(*apply.Host) []string {
	if a.Recurse || a.Clean {
		return []string{a.Name, a.Name + "/"}
	}
	return []string{a.Name}
}

// Paths returns the file that is edited.
func (a *Editing) Paths(*apply.Host) []string { return []string{a.Name} }

// Paths returns the link.
func (a *Symlink) Paths(*apply.Host) []string { return []string{a.Name} }

// Paths returns what is removed, with everything in it.
func (a *Absent) Paths(*apply.Host) []string { return []string{a.Name, a.Name + "/"} }

// Paths returns the file, or the directory with everything in it.
func (a *Managed) Paths(*apply.Host) []string {
	if a.Recurse || a.tree != nil {
		return []string{a.Name, a.Name + "/"}
	}
	return []string{a.Name}
}
