package archive

import "github.com/pullet/pullet/apply"

// Paths returns the directory with everything in it, the archive where it is a file of the host, and the path that
// decides whether it is extracted.
func (a *Extracted) Paths(*apply.Host) []string {
	return []string{a.Name, a.Name + "/", a.Source, a.Creates}
}
