package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pullet/pullet/render"
)

// TestMistakesStopPulls holds a pull against validate: it refuses exactly the repositories of docs/errors.md in which
// validate finds a mistake of the host, with the same message, and leaves the host as it was.
func TestMistakesStopPulls(t *testing.T) {
	t.Parallel()
	for _, w := range gallery() {
		t.Run(w.title, func(t *testing.T) {
			t.Parallel()
			const host = "web1"
			mistakes := slices.DeleteFunc(findingsOf(t, w).Mistakes(), func(e *render.Error) bool {
				return len(e.Hosts) > 0 && !slices.Contains(e.Hosts, host)
			})
			said, left := pulled(t, w.files(), host)
			refused := strings.Contains(said, "is not proposed to the fleet")
			if refused != (len(mistakes) > 0) {
				t.Errorf("refused %v, and validate finds %d mistakes:\n%s\nthe pull prints:\n%s", refused, len(mistakes), mistakes, said)
			}
			if refused && len(left) > 0 {
				t.Errorf("the refused pull left %q on the host", left)
			}
			for _, e := range mistakes {
				one := *e
				one.Hosts = nil
				if !strings.Contains(said, render.ErrorList{&one}.Error()) {
					t.Errorf("validate finds\n%s\nthe pull prints:\n%s", one.Error(), said)
				}
			}
		})
	}
}

// pulled makes a git repository of files, pulls it on a new host, and returns the output and the files of the host.
func pulled(t *testing.T, files map[string]string, host string) (said string, left []string) {
	t.Helper()
	dir := t.TempDir()
	root := filepath.Join(dir, "root")
	if err := os.MkdirAll(filepath.Join(root, "etc"), 0o755); err != nil {
		t.Fatal(err)
	}
	config := fmt.Sprintf("node: {name: %[2]s, labels: {role: web}}\nrepositories: [{name: main, url: 'file://%[1]s/repo'}]\n"+
		"agent: {wait: 0s}\npaths: {state: '%[1]s/state', hostVars: '%[1]s/vars.d'}\n", dir, host)
	write := func(name, text string) {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("pullet.yaml", config)
	for name, text := range files {
		write(filepath.Join("repo", name), text)
	}
	for _, args := range [][]string{{"init", "-q", "-b", "main"}, {"add", "-A"}, {"-c", "user.name=Ada", "-c", "user.email=ada@example.org", "commit", "-q", "-m", "first"}} {
		gitIn(t, filepath.Join(dir, "repo"), args...)
	}
	var out bytes.Buffer
	run(t.Context(), []string{"pull", "--config", filepath.Join(dir, "pullet.yaml"), "--root", root}, &out, &out, nil)
	err := filepath.WalkDir(root, func(name string, _ os.DirEntry, err error) error {
		if rel, _ := filepath.Rel(root, name); rel != "." && rel != "etc" {
			left = append(left, rel)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out.String(), left
}

// TestWithoutEchoes: validate prints no warning at the place of a mistake.
func TestWithoutEchoes(t *testing.T) {
	at := func(severity render.Severity, line, col int) *render.Error {
		return &render.Error{Pos: render.Position{File: "a", Line: line, Col: col}, Severity: severity, Message: fmt.Sprintf("%s %d %d", severity, line, col)}
	}
	var got []string
	for _, e := range withoutEchoes(render.ErrorList{
		at(render.Warning, 1, 2), at(render.Mistake, 1, 2), at(render.Note, 1, 2), at(render.Warning, 1, 3), at(render.Warning, 0, 0), at(render.Mistake, 0, 0),
	}) {
		got = append(got, e.Message)
	}
	want := []string{"error 1 2", "note 1 2", "warning 1 3", "warning 0 0", "error 0 0"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
