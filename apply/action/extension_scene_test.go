package action_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/apply/action"
	"github.com/pullet/pullet/apply/action/extension"
	"github.com/pullet/pullet/render"
)

func digestOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// brings is a repository with one extension: its executable, and what its manifest says beside name, file and digest.
func brings(script, more string) fstest.MapFS {
	return fstest.MapFS{
		"extensions/it":      {Data: []byte(script)},
		"extensions/it.yaml": {Data: []byte("name: acme.it\nfile: it\ndigest: " + digestOf(script) + "\n" + more)},
	}
}

// job is the repository with a job of one step.
func job(files fs.FS, actionName, params string) fstest.MapFS {
	return jobs(files, fmt.Sprintf("steps:\n- name: it\n  action: %s\n  parameters: %s\n", actionName, params))
}

// jobs is the repository with this job instead of its own.
func jobs(files fs.FS, text string) fstest.MapFS {
	out := fstest.MapFS{
		"base/jobs.yaml": {Data: []byte("jobs:\n  '*': [{name: a}]\n")}, "jobs/a.yaml": {Data: []byte(text)},
	}
	names, err := fs.Glob(files, "extensions/*")
	for _, name := range names {
		data, bad := fs.ReadFile(files, name)
		out[name], err = &fstest.MapFile{Data: data, Mode: 0o644}, errors.Join(err, bad)
	}
	if err != nil {
		panic(err)
	}
	return out
}

// bindLayers makes the program of repositories with extensions, as the agent does.
func (s *scene) bindLayers(layers ...fs.FS) (*apply.Program, error) {
	s.t.Helper()
	var all []render.Layer
	for i, l := range layers {
		all = append(all, render.Layer{Name: fmt.Sprintf("repo%d", i+1), FS: l})
	}
	repo := render.Open(all...)
	extensions, mistakes := extension.Load(repo, action.All())
	if err := mistakes.Err(); err != nil {
		return nil, err
	}
	in := render.Input{Node: render.Node{Name: "n1", Labels: map[string]string{"role": "web"}}, Facts: render.Facts{"fqdn": "n1.example.org"}, Version: "v1"}
	program, cat, err := apply.Compile(repo, in, append(action.All(), extensions.Specs()...))
	if err != nil {
		return nil, err
	}
	return program, extensions.Fetch(context.Background(), s.cache(), cat)
}

// cache is where executables lie.
func (s *scene) cache() string { return filepath.Join(s.state, "extensions") }

func (s *scene) mustBindLayers(layers ...fs.FS) *apply.Program {
	s.t.Helper()
	p, err := s.bindLayers(layers...)
	if err != nil {
		s.t.Fatalf("bind: %v", err)
	}
	return p
}

// documented is the repository of docs/extensions.md.
func documented() fs.FS { return os.DirFS("../../docs/examples/extensions") }

// documentedCases are the examples of the contract for the documented extensions.
var documentedCases = map[string][]example{
	"motd.banner": {
		{name: "create", params: "{text: hello}", host: []string{"d etc 755"}, want: "create"},
		{name: "another file and frame", params: "{text: hello, name: /etc/issue, border: '#'}", host: []string{"d etc 755"}, want: "create"},
		{name: "content", params: "{text: hello}", host: []string{"f etc/motd 644 old"}, want: "content"},
		{name: "right already", params: "{text: hello}", host: []string{"f etc/motd 644 *********\n* hello *\n*********\n"}},
		{name: "a text with marks", params: "{text: '$(id) \"x\" `y` \\ & | é'}", host: []string{"d etc 755"}, want: "create"},
		{name: "no directory", params: "{text: hello}", want: "create", fails: "motd.banner apply: exit code 1: mktemp: failed to create file"},
	},
	"json.value": {
		{name: "create", params: "{name: /a.json, key: log.level, value: debug}", want: "set log.level"},
		{name: "add", params: "{name: /a.json, key: log.level, value: debug}", host: []string{`f a.json 600 {"b": [1, 1.50]}`}, want: "set log.level"},
		{name: "a map", params: "{name: /a.json, key: a, value: {b: [1, true, x]}}", want: "set a"},
		{name: "true is not 1", params: "{name: /a.json, key: a, value: true}", host: []string{`f a.json 600 {"a": 1}`}, want: "set a"},
		{name: "right already", params: "{name: /a.json, key: a.b, value: 1}", host: []string{`f a.json 600 {"a": {"b": 1}}`}},
		{name: "no map", params: "{name: /a.json, key: a.b, value: 1}", host: []string{`f a.json 600 {"a": 1}`}, fails: "json.value check: exit code 1: a in a.b is no map"},
		{name: "no JSON", params: "{name: /a.json, key: a, value: 1}", host: []string{`f a.json 600 {`}, fails: "JSONDecodeError"},
	},
}

// TestExtensionContract holds the documented extensions against what all actions promise.
func TestExtensionContract(t *testing.T) {
	for name, cases := range documentedCases {
		for _, c := range cases {
			t.Run(name+"/"+c.name, func(t *testing.T) {
				s := c.scene(t)
				p := s.mustBindLayers(job(documented(), name, c.params))
				planned := s.checkPlan(p, c, false)
				s.checkRun(p, c, planned)
				if c.fails == "" {
					s.checkStays(p, apply.Spec{Name: name})
				}
			})
		}
	}
}

// TestDocumentedResults: what the executables answer arrives.
func TestDocumentedResults(t *testing.T) {
	s := newScene(t, `f a.json 640 {"a": {"b": [1]}, "z": 0}`)
	r := s.run(s.mustBindLayers(job(documented(), "json.value", "{name: /a.json, key: a.b, value: 2}")))
	if want := "map[previous:[1]]"; r.Result.State != "set" || fmt.Sprint(r.Result.Data) != want || r.Result.StdOut != "" {
		t.Errorf("%+v, want %s", r.Result, want)
	}
	if got, want := s.read("a.json"), "{\n  \"a\": {\n    \"b\": 2\n  },\n  \"z\": 0\n}\n"; got != want {
		t.Errorf("%s", got)
	}
	if info, err := os.Stat(s.path("a.json")); err != nil || info.Mode() != 0o640 {
		t.Errorf("%v %v", info.Mode(), err)
	}
	want := "--- /a.json (current)\n+++ /a.json (desired)\n@@ -1 +1,6 @@\n-{\"a\": {\"b\": [1]}, \"z\": 0}\n+{\n+  \"a\": {\n+    \"b\": 2\n+  },\n+  \"z\": 0\n+}\n"
	if r.Diff != want {
		t.Errorf("%q", r.Diff)
	}
}

// TestDocumentation: docs/extensions.md shows the files that are tested here.
func TestDocumentation(t *testing.T) {
	doc, err := os.ReadFile("../../docs/extensions.md")
	if err != nil {
		t.Fatal(err)
	}
	names, err := fs.Glob(documented(), "extensions/*")
	if err != nil || len(names) != 4 {
		t.Fatalf("%q %v", names, err)
	}
	for _, name := range names {
		text, err := fs.ReadFile(documented(), name)
		if err != nil || !strings.Contains(string(doc), "\n"+string(text)+"```\n") {
			t.Errorf("docs/extensions.md does not show %s as it is: %v", name, err)
		}
	}
	if _, err := newScene(t).bindLayers(documented()); err != nil {
		t.Error(err)
	}
}
