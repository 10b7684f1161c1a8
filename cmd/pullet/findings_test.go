package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/sirupsen/logrus"

	"github.com/pullet/pullet/internal/agent"
	"github.com/pullet/pullet/puller"
	"github.com/pullet/pullet/render"
)

// TestFindings holds the output of pullet validate against the archives in testdata/findings, and its mistakes against
// those that a pull finds on each host. testdata/findings/README.md describes the archives.
func TestFindings(t *testing.T) {
	t.Parallel()
	archives, err := filepath.Glob("testdata/findings/*.txtar")
	if err != nil || len(archives) == 0 {
		t.Fatalf("%d archives: %v", len(archives), err)
	}
	for _, path := range archives {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			t.Parallel()
			archive, err := txtar.ParseFile(path)
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range findingCases(archive) {
				t.Run(c.title, c.run)
			}
			if !*update {
				return
			}
			if err := os.WriteFile(path, txtar.Format(archive), 0o644); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// findingCase is a state repository and the output of commands in it.
type findingCase struct {
	title    string
	files    map[string][]byte // by their path from the repository
	commands []*txtar.File
}

// findingCases returns the cases of an archive. The files before the first case belong to each case. The commands are
// those of the archive, so that their output can be written to it.
func findingCases(a *txtar.Archive) (cases []*findingCase) {
	shared := map[string][]byte{}
	for i := range a.Files {
		f := &a.Files[i]
		title, begins := strings.CutPrefix(f.Name, "case: ")
		switch {
		case begins:
			cases = append(cases, &findingCase{title: title, files: maps.Clone(shared)})
		case len(cases) == 0:
			shared[f.Name] = f.Data
		case strings.HasPrefix(f.Name, "$ "):
			last := cases[len(cases)-1]
			last.commands = append(last.commands, f)
		default:
			cases[len(cases)-1].files[f.Name] = f.Data
		}
	}
	return cases
}

// run checks the output of each command, and that hosts find the mistakes.
func (c *findingCase) run(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "repo")
	for name, text := range c.files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if len(c.commands) == 0 {
		t.Error("the case has no command")
	}
	for _, f := range c.commands {
		got := transcript(t, dir, strings.TrimPrefix(f.Name, "$ "))
		if *update {
			f.Data = []byte(got)
		}
		if got != string(f.Data) {
			t.Errorf("%s\n%s\nwant:\n%s\nrewrite it with: go test ./cmd/pullet -run TestFindings -update", f.Name, got, f.Data)
		}
	}
	c.checkHosts(t, dir)
}

// transcript returns the output and the exit code of a command line that is run in a repository.
func transcript(t *testing.T, dir, line string) string {
	t.Helper()
	words := strings.Fields(line)
	if words[0] != "pullet" {
		t.Fatalf("%s: a command starts with pullet", line)
	}
	for i, word := range words {
		if strings.HasPrefix(word, "../") {
			words[i] = filepath.Join(dir, word)
		}
	}
	var out, errs bytes.Buffer
	code := run(t.Context(), append(words[1:], dir), &out, &errs, nil)
	for line := range strings.Lines(errs.String()) {
		out.WriteString("stderr: " + line)
	}
	text := strings.ReplaceAll(out.String(), filepath.Dir(dir), "..")
	return fmt.Sprintf("%sexit %d\n", text, code)
}

// checkHosts holds the mistakes that validate finds against those that the hosts find.
func (c *findingCase) checkHosts(t *testing.T, dir string) {
	vars := filepath.Join(filepath.Dir(dir), "vars.d")
	files, err := puller.WorkTree(t.Context(), dir)
	if _, _, refused := puller.Refused(err); refused {
		return // as hosts do when they fetch
	}
	if err != nil {
		t.Fatal(err)
	}
	repo := render.Open(render.Layer{Name: "main", FS: files})
	nodes, _ := repo.Nodes()         // its mistakes are among those of each host
	inventory, _ := repo.Inventory() // also
	var hosts, got, want []string
	for _, n := range nodes {
		hosts = append(hosts, n.Name)
	}
	unnamed := withoutNames(hosts)
	for _, n := range nodes {
		for _, e := range planMistakes(t, dir, vars, n) {
			got = append(got, unnamed(n.Name, e))
		}
	}
	for _, e := range validateMistakes(t, repo, vars) {
		on := e.Hosts
		if len(on) == 0 && len(inventory) == 0 { // validate does not name the hosts that it makes up
			on = slices.DeleteFunc(slices.Clone(hosts), func(h string) bool { return !slices.Contains(got, unnamed(h, e)) })
		}
		if len(on) == 0 {
			on = hosts
		}
		for _, host := range on {
			want = append(want, unnamed(host, e))
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("hosts find:\n%s\nwant what validate finds:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// withoutNames returns a function that shows a mistake of a host with HOST for the names of all hosts: validate prints
// a mistake that differs only in them once.
func withoutNames(hosts []string) func(host string, e *render.Error) string {
	var pairs []string
	for _, h := range hosts {
		pairs = append(pairs, h, "HOST")
	}
	names := strings.NewReplacer(pairs...)
	return func(host string, e *render.Error) string {
		bare := *e
		bare.Hosts = nil
		return host + ": " + names.Replace(render.ErrorList{&bare}.Error())
	}
}

// planMistakes returns the mistakes that a host finds before it touches anything. A plan of a directory compiles as a
// pull does, and needs neither git nor etcd: nothing listens at the endpoint.
func planMistakes(t *testing.T, dir, vars string, n render.Node) render.ErrorList {
	t.Helper()
	config := agent.Default()
	config.Node.Node = n
	config.Root, config.Paths.State, config.Paths.HostVars = t.TempDir(), t.TempDir(), vars
	config.Repositories = []puller.Source{{Name: "main", URL: "file://" + dir}}
	config.Etcd.Endpoints = render.Strings{"http://127.0.0.1:1"}
	config.Etcd.Timeout = render.Duration(time.Millisecond)
	log := logrus.New()
	log.SetOutput(io.Discard)
	host, err := agent.New(config, "", logrus.NewEntry(log))
	if err != nil {
		t.Fatal(err)
	}
	defer host.Close() // nothing was written
	_, err = host.Plan(t.Context(), dir, agent.Options{})
	return mistakesOf(t, err)
}

// validateMistakes returns the mistakes that validate finds in a repository, without its warnings, and without
// submodules and files in git LFS, which hosts refuse when they fetch.
func validateMistakes(t *testing.T, repo *render.Repository, vars string) render.ErrorList {
	t.Helper()
	if _, err := os.Stat(vars); errors.Is(err, fs.ErrNotExist) {
		vars = ""
	}
	own, err := ownVars(vars)
	if err != nil {
		return mistakesOf(t, err)
	}
	_, found, err := validate(t.Context(), repo, "", nil, own, nil)
	if err != nil {
		t.Fatal(err)
	}
	return found.Mistakes()
}

// mistakesOf returns the mistakes of an error. A host that no target matches has none.
func mistakesOf(t *testing.T, err error) (list render.ErrorList) {
	t.Helper()
	if err != nil && !errors.As(err, &list) && !strings.Contains(err.Error(), "matches this host") {
		t.Fatal(err)
	}
	return list
}
