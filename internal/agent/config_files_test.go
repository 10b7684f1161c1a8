package agent

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pullet/pullet/internal/ownfile"
	"github.com/pullet/pullet/puller"
	"github.com/pullet/pullet/render"
)

// TestConfigFiles: which files of a configuration count, and what is said of those that cannot be read.
func TestConfigFiles(t *testing.T) {
	t.Parallel()
	text := repositories + "node: {name: web1}\n"
	for name, c := range map[string]struct {
		files map[string]string // a name that ends with / is a directory
		want  string            // of the error
	}{
		"a directory":             {map[string]string{"pullet.yaml/": ""}, "is a directory"},
		"hidden, and not of YAML": {map[string]string{"pullet.yaml": text, "conf.d/.a.yaml": "x: 1\n", "conf.d/a.yaml~": "x: 1\n", "conf.d/README": "x"}, ""},
		"no directory of more":    {map[string]string{"pullet.yaml": text}, ""},
		"a file in its place":     {map[string]string{"pullet.yaml": text, "conf.d": ""}, "conf.d"},
		"a directory in it":       {map[string]string{"pullet.yaml": text, "conf.d/a.yaml/": ""}, "is a directory"},
		"nothing is pruned":       {map[string]string{"pullet.yaml": text + "agent: {pruneLimit: 0}\n"}, "agent.pruneLimit: 0 is not a number of things from 1 on"},
		"one is pruned":           {map[string]string{"pullet.yaml": text + "agent: {pruneLimit: 1, reports: {keep: 1}}\n"}, ""},
		"endpoints":               {map[string]string{"pullet.yaml": text + "etcd: {endpoints: ['http://e:2379']}\n"}, ""},
		"a directory of etcd":     {map[string]string{"pullet.yaml": text + "etcd: {dir: /x}\n"}, ""},
	} {
		dir := t.TempDir()
		for file, text := range c.files {
			path := filepath.Join(dir, file)
			err := os.MkdirAll(filepath.Dir(path), 0o755)
			if err == nil && strings.HasSuffix(file, "/") {
				err = os.MkdirAll(path, 0o755)
			} else if err == nil {
				err = os.WriteFile(path, []byte(text), 0o644)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		_, err := ReadConfig(filepath.Join(dir, "pullet.yaml"), t.TempDir())
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// TestOpenFiles: files of host variables that somebody else can write are refused; with secrets that others can read
// they are a warning of each pull, and of a plan.
func TestOpenFiles(t *testing.T) {
	t.Parallel()
	h := newHost(t, job("one", "true"))
	own := filepath.Join(h.Paths.HostVars, "own.yaml")
	h.write("vars.d/own.yaml", "sensitive: true\nx: 1\n")
	h.write("vars.d/plain.yaml", "y: 1\n")
	for _, file := range []string{"own.yaml", "plain.yaml"} {
		if err := os.Chmod(filepath.Join(h.Paths.HostVars, file), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want := "paths.hostVars: credentials in " + own + " are open to others (mode 0644)"
	h.warned(h.exits(ExitOK, ""), want)
	plan, err := h.plan("")
	if err != nil {
		t.Fatal(err)
	}
	h.warned(plan, want)
	if all := h.OpenSecrets(); len(all) != 1 || !strings.Contains(all[0].Error(), want) {
		t.Errorf("%v", all)
	}
	if err := os.Chmod(own, 0o622); err != nil {
		t.Fatal(err)
	}
	h.write("root/etc/motd", "by hand")
	out, err := h.with(Options{})
	var refused *ownfile.RefusedError
	if !errors.As(err, &refused) || !strings.Contains(err.Error(), "paths.hostVars: "+own) || out.Report != nil || h.file("etc/motd") != "by hand" {
		t.Errorf("%v %+v", err, out.Report)
	}
	h.Paths.HostVars = filepath.Join(h.home, "[")
	if got := h.CheckFiles(); got != nil {
		t.Errorf("%v", got)
	}
}

// TestNewFails: an agent is not made where its state directory or the settings of its repositories cannot be used.
func TestNewFails(t *testing.T) {
	t.Parallel()
	h := newHost(t, job("one", "true"))
	fails := func(want string) {
		t.Helper()
		if a, err := New(h.Config, "test", h.entry()); a != nil || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	good := h.Paths.State
	h.write("file", "")
	h.Paths.State = filepath.Join(h.home, "file/state")
	fails("state directory: ")
	h.Paths.State = filepath.Join(h.home, "file")
	fails("state directory: ")
	h.Paths.State = good
	h.Repositories = []puller.Source{{Name: "main", URL: "://"}}
	fails("main")
}

// TestStoreOfAHost: a host that never pulled has no record, and who only reads makes none.
func TestStoreOfAHost(t *testing.T) {
	t.Parallel()
	h := newHost(t, job("one", "true"))
	etcd := filepath.Join(h.Paths.State, "etcd")
	if !h.NoStore() {
		t.Error("there is a record before the first pull")
	}
	s, err := h.ReadStore(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(etcd); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("who reads made a record: %v", err)
	}
	h.exits(ExitOK, "")
	if h.NoStore() {
		t.Error("there is no record after a pull")
	}
	elsewhere := h.Config
	elsewhere.Etcd.Dir = filepath.Join(h.home, "own")
	if !elsewhere.NoStore() {
		t.Error("another directory is the same record")
	}
	remote := h.Config
	remote.Etcd.Endpoints, remote.Etcd.Timeout = []string{"http://127.0.0.1:1"}, render.Duration(50*time.Millisecond)
	if s, err := remote.ReadStore(t.Context()); err == nil || remote.NoStore() {
		t.Errorf("nobody answers: %v %v", s, err)
	}
}
