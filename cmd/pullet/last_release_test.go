package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/pullet/pullet/internal/tier"
)

// besideLast are the scripts of whole rollouts, with gates, failures and operators, that fleets of two releases of
// pullet run as well.
func besideLast() []string {
	return []string{
		"gate_canary", "gate_halt", "gate_killed", "gate_roles", "gate_serialize", "gate_slot", "gate_sync", "gate_target",
		"gate_target_several", "gate_total", "reaction_gates", "gate_abandoned", "rollout_start",
		"switches_midrun", "target_role",
	}
}

// TestLastRelease: the last release and this one work on one record. Scripts of rollouts say the same when some nodes
// run the one and some the other, whichever of them proposes, holds a slot, opens a barrier or is asked by an operator.
// What only this one reads it writes when an operator says that no node runs the last one any more.
func TestLastRelease(t *testing.T) {
	tier.Soak(t, "builds the last release, and runs fleets of two releases")
	// Not parallel: it takes the processors, and the time of members of a datastore counts in other tests.
	bin := lastRelease(t)
	for _, old := range []string{"first", "second"} {
		t.Run("the "+old+" node of each runs it", func(t *testing.T) {
			t.Parallel()
			params := scripts()
			params.Dir = ""
			params.Files = []string{"testdata/last/minimum.txtar"}
			params.Cmds["new"] = runNew
			for _, name := range besideLast() {
				params.Files = append(params.Files, filepath.Join("testdata/script", name+".txtar"))
			}
			setup := params.Setup
			params.Setup = func(env *testscript.Env) error {
				env.Values[lastOf{}] = &last{path: env.Getenv("PATH"), bin: bin, first: old == "first"}
				ran := filepath.Join(env.WorkDir, "last-ran")
				env.Setenv("LAST_RAN", ran)
				env.Defer(func() {
					if _, err := os.Stat(ran); err != nil {
						t.Errorf("%s: the last release took no part: %v", env.WorkDir, err)
					}
				})
				return setup(env)
			}
			testscript.Run(t, params)
		})
	}
}

// lastRelease builds the last release, and returns the directory with its pullet.
func lastRelease(t *testing.T) string {
	t.Helper()
	rev, err := exec.Command("../../scripts/last-release").Output()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	build := fmt.Sprintf("set -e; git archive %s | tar -x -C %s; cd %[2]s; CGO_ENABLED=0 go build -buildvcs=false -o last ./cmd/pullet",
		strings.TrimSpace(string(rev)), dir)
	cmd := exec.Command("bash", "-c", build)
	cmd.Dir = "../.."
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("the last release cannot be built: %v\n%s(with a shallow clone: git fetch --unshallow)", err, out)
	}
	bin := filepath.Join(dir, "bin")
	notes := fmt.Sprintf("#!/bin/sh\n: >>\"$LAST_RAN\"\nexec %s/last \"$@\"\n", dir)
	if err := errors.Join(os.Mkdir(bin, 0o755), os.WriteFile(filepath.Join(bin, "pullet"), []byte(notes), 0o755)); err != nil {
		t.Fatal(err)
	}
	return bin
}

// lastOf is the key of a script's *last.
type lastOf struct{}

// last is which nodes of a script run the last release: the first one that is named, or all others.
type last struct {
	path, bin string
	first     bool
	named     string // the node that was named first
}

// new has the commands that follow run this release, until the next as.
func runNew(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 0 {
		ts.Fatalf("usage: new")
	}
	ts.Setenv("PATH", ts.Value(lastOf{}).(*last).path)
}

// as makes pullet the program of a node.
func (l *last) as(ts *testscript.TestScript, node string) {
	if l.named == "" {
		l.named = node
	}
	if (node == l.named) == l.first {
		ts.Setenv("PATH", l.bin+string(os.PathListSeparator)+l.path)
	} else {
		ts.Setenv("PATH", l.path)
	}
}
