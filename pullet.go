// Package pullet is a pull agent for fleets of Linux hosts. Every node pulls the state repositories with git, takes the commit as the
// fleet's current_version, renders the repository's files with Go templates, and applies the result when its turn has come.
//
// The program is cmd/pullet; the packages beside it are its stages. This one only carries the example repository, which is what the
// demo runs.
package pullet

import "embed"

// Example is the state repository below example-repo.
//
//go:embed all:example-repo
var Example embed.FS
