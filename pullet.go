// Package pullet is a pull agent for fleets of Linux hosts. Every node pulls the state repositories with git, takes the
// commit as the fleet's current_version, renders the repository's files with Go templates, and applies the result when
// its turn has come.
//
// The program is cmd/pullet; the packages beside it are its stages. This one only carries the example repository, which
// is what the demo runs, and the sources whose comments are the reference.
package pullet

import "embed"

// Example is the state repository below example-repo.
//
//go:embed all:example-repo
var Example embed.FS

// Source is the Go files that declare what can be written in a state repository and in a host's configuration: package
// reference reads their comments.
//
//go:embed internal/agent/config.go internal/agent/listening.go internal/agent/traces.go apply/action/*.go apply/action/*/*.go internal/datastore/backupconfig.go internal/datastore/config.go internal/event/webhook/hook.go internal/gitremote/remote.go puller/source.go puller/policy.go render/*.go state/store.go
var Source embed.FS
