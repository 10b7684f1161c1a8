package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// buildInfo is what this binary is.
type buildInfo struct {
	Version string `json:"version"`
	Commit  string `json:"commit,omitempty"`
	Go      string `json:"go"`
	Etcd    string `json:"etcd"` // of the client and the embedded server
}

// build reads it from the binary: go install and go build put it there.
func build() buildInfo {
	b := buildInfo{Version: "devel", Go: runtime.Version()}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		b.Version = v
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			b.Commit = s.Value
		}
	}
	for _, d := range info.Deps {
		if d.Path == "go.etcd.io/etcd/server/v3" {
			b.Etcd = d.Version
		}
	}
	return b
}

// String is the line that people read.
func (b buildInfo) String() string {
	return fmt.Sprintf("pullet %s (%s, etcd %s)", b.Version, b.Go, b.Etcd)
}

func versionCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "version", Args: noArgs, Short: "Show the version of pullet",
		RunE: func(*cobra.Command, []string) error {
			b := build()
			if done, err := a.structured(b); done || err != nil {
				return err
			}
			_, err := fmt.Fprintln(a.out, b)
			return err
		},
	}
}
