package command

import "github.com/pullet/pullet/apply"

// Paths returns those that decide whether it is done.
func (g Guards) Paths(*apply.Host) []string { return []string{g.Creates, g.Removes} }

// Paths returns those of the guards, and the directory in which the command runs.
func (o Options) Paths(h *apply.Host) []string { return append(o.Guards.Paths(h), o.Cwd) }

// Paths returns those of the guards, and the files with credentials.
func (a *Request) Paths(h *apply.Host) []string {
	return append(a.Guards.Paths(h), a.HeadersFile, a.CA, a.Cert, a.Key)
}
