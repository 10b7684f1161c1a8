package main

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pullet/pullet/render"
	"github.com/pullet/pullet/render/facts"
)

// TestSeeds: the examples of the documents that the language comes from are valid, and mean for each host what is
// written in NAME.txt.
func TestSeeds(t *testing.T) {
	for _, c := range []struct{ name, hostVars string }{{"kubeadm", "kubeadm.vars.d"}, {"cloud", ""}} {
		t.Run(c.name, func(t *testing.T) {
			seeds := func(name string) string { return filepath.Join("testdata", "seeds", name) }
			var own map[string]any
			if c.hostVars != "" {
				var err error
				if own, err = ownVars(seeds(c.hostVars)); err != nil {
					t.Fatal(err)
				}
			}
			files := os.DirFS(seeds(c.name))
			for _, e := range check(t, files, own) {
				if e.Severity == render.Mistake { // the documents change hosts before a barrier: that is theirs to do
					t.Error(e)
				}
			}
			golden(t, seeds(c.name+".txt"), meaning(t, files, own))
		})
	}
}

// check is what validate says of a repository.
func check(t *testing.T, files fs.FS, own map[string]any) render.ErrorList {
	t.Helper()
	_, found, err := validate(t.Context(), render.Open(render.Layer{Name: "main", FS: files}), "", nil, own, nil)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// meaning is what a repository means for each of its hosts: a line for each step. Every host offers what its role has.
func meaning(t *testing.T, files fs.FS, own map[string]any) string {
	t.Helper()
	repo := render.Open(render.Layer{Name: "main", FS: files})
	nodes, err := repo.Nodes()
	if err != nil {
		t.Fatal(err)
	}
	view := sampleView(nodes)
	view.Services = map[string][]render.Service{}
	for i, n := range nodes {
		for _, service := range map[string][]string{"db": {"mysql"}, "controller": {"keystone", "glance"}, "controller_load_balancer": {"controller-load-balancer"}}[n.Role()] {
			at := fmt.Sprintf("192.0.2.%d", i+1)
			one := render.Service{Name: service, Node: n.Name, Address: at, Addresses: map[string]any{"eth0": []any{at}}, Port: 80}
			view.Services[service] = append(view.Services[service], one)
		}
	}
	var b strings.Builder
	for _, n := range nodes {
		cat, err := repo.Compile(render.Input{Node: n, Facts: facts.Sample(n.Name), View: view, HostVars: own})
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "%s\n", n.Name)
		for _, j := range cat.Jobs {
			for _, s := range j.Steps {
				params, err := json.Marshal(cat.DisplayParams(s).Value())
				if err != nil {
					t.Fatal(err)
				}
				plain := strings.NewReplacer(`\u003c`, "<", `\u003e`, ">").Replace(string(params))
				fmt.Fprintf(&b, "  %s: %s %s\n", s.ID(), s.Action, plain)
			}
		}
	}
	return b.String()
}

// golden holds a text against a file, or writes it with -update.
func golden(t *testing.T, path, text string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil || string(want) != text {
		t.Errorf("%s is not what the repository means (%v): go test ./cmd/pullet -run TestSeeds -update\n%s", path, err, text)
	}
}
