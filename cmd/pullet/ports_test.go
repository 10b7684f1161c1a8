package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/pullet/pullet/render"
)

// TestPorts holds the language against formulas and roles that people use elsewhere, written for pullet:
// testdata/ports/README.md. -update writes the catalogs into the scripts.
func TestPorts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Condition:     condition,
		Dir:           "testdata/ports",
		Setup:         setupPort,
		UpdateScripts: *update,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"as": asNode, "commit": commitAll, "exits": exits, "host": portHost, "outline": outline, "subst": substFiles,
		},
	})
}

// setupPort gives a script its port as repo, and the facts of three systems.
func setupPort(env *testscript.Env) error {
	if err := setupScript(env); err != nil {
		return err
	}
	name := strings.TrimPrefix(filepath.Base(env.WorkDir), "script-")
	for from, to := range map[string]string{name: "repo", "facts": "facts"} {
		if err := os.CopyFS(filepath.Join(env.WorkDir, to), os.DirFS(filepath.Join("testdata/ports", from))); err != nil {
			return err
		}
	}
	return nil
}

// portUnits are the services that some system has.
var portUnits = []string{"chronyd", "cron", "crond", "nginx", "ntpd", "ntpsec", "ssh", "sshd", "systemd-timesyncd"}

// host SYSTEM ROLE makes a node with the root of a small system, as facts/SYSTEM.json describes it, and makes what
// follows run there.
func portHost(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: host SYSTEM ROLE")
	}
	var facts struct {
		OS, OSVersion string
		OSLike        []string
	}
	ts.Check(json.Unmarshal([]byte(ts.ReadFile("facts/"+args[0]+".json")), &facts))
	files := map[string]string{
		"etc/os-release": fmt.Sprintf("ID=%s\nVERSION_ID=%s\nID_LIKE=%q\n", facts.OS, facts.OSVersion, strings.Join(facts.OSLike, " ")),
		"etc/hostname":   args[0] + "\n",
		"etc/passwd":     "root:x:0:0:root:/root:/bin/sh\n",
		"etc/shadow":     "root:*:19000:0:99999:7:::\n",
		"etc/group":      "root:x:0:\n", "etc/gshadow": "root:*::\n",
		"etc/skel/.profile":                        "umask 022\n",
		"etc/sudoers":                              "root ALL=(ALL:ALL) ALL\n",
		"root/.placeholder":                        "",
		"usr/share/zoneinfo/Europe/Berlin":         "TZif2",
		"usr/lib/systemd/system/multi-user.target": "[Unit]\n",
	}
	for _, unit := range portUnits {
		files["usr/lib/systemd/system/"+unit+".service"] = "[Service]\nExecStart=/bin/true\n[Install]\nWantedBy=multi-user.target\n"
	}
	writeNode(ts, false, args)
	for name, text := range files {
		path := filepath.Join(ts.MkAbs(args[0]+"/root"), name)
		ts.Check(os.MkdirAll(filepath.Dir(path), 0o755))
		ts.Check(os.WriteFile(path, []byte(text), 0o644))
	}
	asNode(ts, false, args[:1])
}

// outline NODE prints the catalog of a node of the repository on each of the systems: a line for each step.
func outline(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: outline NODE")
	}
	var out strings.Builder
	for _, system := range []string{"debian", "rocky", "opensuse"} {
		fmt.Fprintf(&out, "%s on %s\n", args[0], system)
		repo, _, err := openDir(context.Background(), []string{ts.MkAbs("repo")})
		ts.Check(err)
		in, err := (&nodeFlags{node: args[0], facts: ts.MkAbs("facts/" + system + ".json")}).input(repo)
		ts.Check(err)
		catalog, err := repo.Compile(in)
		ts.Check(err)
		for _, job := range catalog.Jobs {
			for _, step := range job.Steps {
				fmt.Fprintf(&out, "  %s: %s %s\n", step.ID(), step.Action, what(catalog.DisplayParams(step)))
			}
		}
	}
	ts.Check(os.WriteFile(ts.MkAbs("outline"), []byte(out.String()), 0o644))
	ts.Check(ts.Exec("cat", "outline"))
}

// what is the thing that a step is about.
func what(parameters render.Params) string {
	for _, name := range []string{"name", "user", "host", "cmd", "pkgs"} {
		if value := parameters.Texts(name); len(value) > 0 {
			return strings.Join(value, " ")
		}
	}
	return ""
}
