package extension_test

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
	"github.com/pullet/pullet/apply/action/actiontest"
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
func bindLayers(s *actiontest.Scene, layers ...fs.FS) (*apply.Program, error) {
	s.T.Helper()
	return bindOn(s, extension.Host{Dir: cache(s)}, layers...)
}

// bindOn does so on a host that believes somebody, or has a record of the fleet.
func bindOn(s *actiontest.Scene, h extension.Host, layers ...fs.FS) (*apply.Program, error) {
	s.T.Helper()
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
	return program, extensions.Fetch(context.Background(), h, cat)
}

// cache is where executables lie.
func cache(s *actiontest.Scene) string { return filepath.Join(s.State, "extensions") }

func mustBindLayers(s *actiontest.Scene, layers ...fs.FS) *apply.Program {
	s.T.Helper()
	p, err := bindLayers(s, layers...)
	if err != nil {
		s.T.Fatalf("bind: %v", err)
	}
	return p
}

// documented is the repository of docs/extensions.md.
func documented() fs.FS { return os.DirFS("../../../docs/examples/extensions") }

// documentedCases are the examples of the contract for the documented extensions.
var documentedCases = map[string][]actiontest.Example{
	"motd.banner": {
		{Name: "create", Params: "{text: hello}", Host: []string{"d etc 755"}, Want: "create"},
		{Name: "another file and frame", Params: "{text: hello, name: /etc/issue, border: '#'}", Host: []string{"d etc 755"}, Want: "create"},
		{Name: "content", Params: "{text: hello}", Host: []string{"f etc/motd 644 old"}, Want: "content"},
		{Name: "right already", Params: "{text: hello}", Host: []string{"f etc/motd 644 *********\n* hello *\n*********\n"}},
		{Name: "a text with marks", Params: "{text: '$(id) \"x\" `y` \\ & | é'}", Host: []string{"d etc 755"}, Want: "create"},
		{Name: "no directory", Params: "{text: hello}", Want: "create", Fails: "motd.banner apply: exit code 1: mktemp: failed to create file"},
	},
	"json.value": {
		{Name: "create", Params: "{name: /a.json, key: log.level, value: debug}", Want: "set log.level"},
		{Name: "add", Params: "{name: /a.json, key: log.level, value: debug}", Host: []string{`f a.json 600 {"b": [1, 1.50]}`}, Want: "set log.level"},
		{Name: "a map", Params: "{name: /a.json, key: a, value: {b: [1, true, x]}}", Want: "set a"},
		{Name: "true is not 1", Params: "{name: /a.json, key: a, value: true}", Host: []string{`f a.json 600 {"a": 1}`}, Want: "set a"},
		{Name: "right already", Params: "{name: /a.json, key: a.b, value: 1}", Host: []string{`f a.json 600 {"a": {"b": 1}}`}},
		{Name: "no map", Params: "{name: /a.json, key: a.b, value: 1}", Host: []string{`f a.json 600 {"a": 1}`}, Fails: "json.value check: exit code 1: a in a.b is no map"},
		{Name: "no JSON", Params: "{name: /a.json, key: a, value: 1}", Host: []string{`f a.json 600 {`}, Fails: "JSONDecodeError"},
	},
}

// TestExtensionContract holds the documented extensions against what all actions promise.
func TestExtensionContract(t *testing.T) {
	for name, cases := range documentedCases {
		for _, c := range cases {
			t.Run(name+"/"+c.Name, func(t *testing.T) {
				s := c.Scene(t)
				c.Check(s, mustBindLayers(s, job(documented(), name, c.Params)), false)
			})
		}
	}
}

// TestDocumentedResults: what the executables answer arrives.
func TestDocumentedResults(t *testing.T) {
	s := actiontest.New(t, `f a.json 640 {"a": {"b": [1]}, "z": 0}`)
	r := s.Run(mustBindLayers(s, job(documented(), "json.value", "{name: /a.json, key: a.b, value: 2}")))
	if want := "map[previous:[1]]"; r.Result.State != "set" || fmt.Sprint(r.Result.Data) != want || r.Result.StdOut != "" {
		t.Errorf("%+v, want %s", r.Result, want)
	}
	if got, want := s.Read("a.json"), "{\n  \"a\": {\n    \"b\": 2\n  },\n  \"z\": 0\n}\n"; got != want {
		t.Errorf("%s", got)
	}
	if info, err := os.Stat(s.Path("a.json")); err != nil || info.Mode() != 0o640 {
		t.Errorf("%v %v", info.Mode(), err)
	}
	want := "--- /a.json (current)\n+++ /a.json (desired)\n@@ -1 +1,6 @@\n-{\"a\": {\"b\": [1]}, \"z\": 0}\n+{\n+  \"a\": {\n+    \"b\": 2\n+  },\n+  \"z\": 0\n+}\n"
	if r.Diff != want {
		t.Errorf("%q", r.Diff)
	}
}

// TestDocumentation: docs/extensions.md shows the files that are tested here.
func TestDocumentation(t *testing.T) {
	doc, err := os.ReadFile("../../../docs/extensions.md")
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
	if _, err := bindLayers(actiontest.New(t), documented()); err != nil {
		t.Error(err)
	}
}
