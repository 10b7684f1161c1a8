package action_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/apply/action"
	"github.com/pullet/pullet/render"
	"github.com/pullet/pullet/state"
)

// scene is a host below a temporary directory, with a state directory outside of it.
type scene struct {
	t           *testing.T
	root, state string
	files       map[string]string // below files/ of the repository
	macros      string            // of macros/all.yaml
	fleet       *fleet            // nil: its record is away
	whole       bool              // the root is / of a host of the lab
}

// repository is what examples find below files/. Each test file adds its own.
var repository = map[string]string{}

// scene is where an example runs.
func (c example) scene(t *testing.T) *scene {
	t.Helper()
	if c.root {
		needRoot(t)
	}
	if !c.whole {
		s := newScene(t, c.host...)
		maps.Copy(s.files, c.files)
		if c.fleet != nil {
			known := slices.Clone(c.fleet)
			s.fleet = &known
		}
		if c.prepare != nil {
			c.prepare(s)
		}
		return s
	}
	if os.Getenv(wholeHost) == "" {
		t.Skipf("needs a whole host: the lab's tests run it with %s=1, where it may change anything", wholeHost)
	}
	t.Attr("host", "whole") // by which the lab's test counts these
	s := newScene(t)
	s.root, s.whole = "/", true
	if out, err := exec.Command("/bin/sh", "-ec", c.setup).CombinedOutput(); err != nil {
		t.Fatalf("setup: %v\n%s", err, out)
	}
	for name, from := range c.files {
		s.files[name] = s.read(from)
	}
	return s
}

// wholeHost is set in the environment on a host of the lab.
const wholeHost = "PULLET_WHOLE_HOST"

// watched are the directories of a whole host in which actions leave something.
var watched = []string{"/etc", "/home", "/opt", "/root", "/srv", "/usr/local", "/var/lib/apt", "/var/lib/dpkg", "/var/spool"}

// listed are files that are compared by size and time alone: dpkg's lists of a whole system are thousands, and long.
const listed = "/var/lib/dpkg/info/"

// tree is what an action may change.
func (s *scene) tree() map[string]string {
	s.t.Helper()
	if !s.whole {
		return tree(s.t, s.root)
	}
	out := map[string]string{}
	for _, dir := range watched {
		if _, err := os.Stat(dir); err == nil {
			maps.Copy(out, tree(s.t, dir))
		}
	}
	return out
}

// all is tree with the state directory.
func (s *scene) all() map[string]string {
	s.t.Helper()
	out := s.tree()
	maps.Copy(out, tree(s.t, filepath.Dir(s.state)))
	return out
}

// newScene plants a tree. An entry is "d PATH MODE", "f PATH MODE CONTENT" or "l PATH TARGET".
func newScene(t *testing.T, entries ...string) *scene {
	t.Helper()
	base := t.TempDir()
	s := &scene{t: t, root: filepath.Join(base, "root"), state: filepath.Join(base, "state"), files: maps.Clone(repository)}
	for _, dir := range []string{s.root, s.state} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, e := range entries {
		s.plant(e)
	}
	return s
}

func (s *scene) plant(entry string) {
	s.t.Helper()
	f := append(strings.SplitN(entry, " ", 4), "", "")
	path := s.path(f[1])
	err := os.MkdirAll(filepath.Dir(path), 0o755)
	if f[0] == "l" {
		err = errors.Join(err, os.Symlink(f[2], path))
	} else {
		bits, bad := strconv.ParseUint(f[2], 8, 32)
		mode := fs.FileMode(bits & 0o777)
		if bits&0o4000 != 0 {
			mode |= fs.ModeSetuid
		}
		err = errors.Join(err, bad)
		if f[0] == "d" {
			err = errors.Join(err, os.Mkdir(path, 0o755))
		} else {
			err = errors.Join(err, os.WriteFile(path, []byte(f[3]), 0o600))
		}
		err = errors.Join(err, os.Chmod(path, mode))
	}
	if err != nil {
		s.t.Fatalf("plant %q: %v", entry, err)
	}
}

func (s *scene) path(name string) string { return filepath.Join(s.root, name) }

func (s *scene) host() *apply.Host {
	h := &apply.Host{Root: s.root, Backups: filepath.Join(s.state, "backups")}
	if s.fleet != nil {
		h.Fleet = s.fleet
	}
	return h
}

// bind makes the program of one step.
func (s *scene) bind(actionName, params string) (*apply.Program, error) {
	return s.bindText(fmt.Sprintf("steps:\n- name: it\n  action: %s\n  parameters: %s\n", actionName, params))
}

func (s *scene) bindText(job string) (*apply.Program, error) {
	m := fstest.MapFS{
		"base/jobs.yaml": {Data: []byte("jobs:\n  '*': [{name: a}]\n")}, "jobs/a.yaml": {Data: []byte(job)},
	}
	if s.macros != "" {
		m["base/macros.yaml"] = &fstest.MapFile{Data: []byte("macros: {'*': [{name: all}]}\n")}
		m["macros/all.yaml"] = &fstest.MapFile{Data: []byte(s.macros)}
	}
	for name, text := range s.files {
		m["files/"+name] = &fstest.MapFile{Data: []byte(text)}
	}
	in := render.Input{Node: render.Node{Name: "n1"}, Facts: facts(), Version: "v1"}
	cat, err := render.Open(render.Layer{Name: "main", FS: m}).Compile(in)
	if err != nil {
		return nil, err
	}
	return apply.Bind(cat, action.All())
}

func (s *scene) mustBind(actionName, params string) *apply.Program {
	s.t.Helper()
	p, err := s.bind(actionName, params)
	if err != nil {
		s.t.Fatalf("bind: %v", err)
	}
	return p
}

// plan and run give the report of the only step.
func (s *scene) plan(p *apply.Program) *apply.StepReport {
	s.t.Helper()
	return s.only(p.Plan(context.Background(), s.options()))
}

func (s *scene) run(p *apply.Program) *apply.StepReport {
	s.t.Helper()
	return s.only(s.runAll(context.Background(), p))
}

func (s *scene) only(r *apply.Report) *apply.StepReport {
	s.t.Helper()
	if len(r.Steps) != 1 {
		s.t.Fatalf("the report has %d steps, want 1: stopped %q", len(r.Steps), r.Stopped)
	}
	return r.Steps[0]
}

func (s *scene) runAll(ctx context.Context, p *apply.Program) *apply.Report {
	s.t.Helper()
	r, err := p.Run(ctx, s.options())
	if err != nil {
		s.t.Fatalf("run: %v", err)
	}
	return r
}

func (s *scene) options() apply.Options {
	s.t.Helper()
	j, err := state.OpenJournal(s.state)
	if err != nil {
		s.t.Fatal(err)
	}
	return apply.Options{Run: "r", Host: s.host(), Journal: j, Upgrade: true}
}

// facts are the host's.
func facts() render.Facts {
	return render.Facts{
		"fqdn": "n1.example.org", "address": "192.0.2.7",
		"addresses": map[string]any{"eth0": []any{"192.0.2.7"}, "eth1": []any{"198.51.100.7"}},
	}
}

// mustRun is a step that changed the host.
func (s *scene) mustRun(actionName, params string) {
	s.t.Helper()
	if r := s.run(s.mustBind(actionName, params)); r.Outcome != apply.Changed {
		s.t.Fatalf("%s %s: %s, %s; want changed", actionName, params, r.Outcome, r.Reason)
	}
}

func (s *scene) read(name string) string {
	s.t.Helper()
	data, err := os.ReadFile(s.path(name))
	if err != nil {
		s.t.Fatal(err)
	}
	return string(data)
}

// tree is everything below a directory, file by file: type, mode, owner, time, and content or target.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := os.Lstat(path)
		if err != nil {
			return err
		}
		st := info.Sys().(*syscall.Stat_t)
		what := ""
		switch {
		case info.Mode().IsRegular() && strings.HasPrefix(path, listed):
			what = fmt.Sprintf("%d bytes, ctime %d.%09d", st.Size, st.Ctim.Sec, st.Ctim.Nsec)
		case info.Mode().IsRegular():
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			what = string(data)
		case info.Mode()&fs.ModeSymlink != 0:
			if what, err = os.Readlink(path); err != nil {
				return err
			}
		}
		out[path] = fmt.Sprintf("%s %d:%d ino %d mtime %d %q", info.Mode(), st.Uid, st.Gid, st.Ino, info.ModTime().UnixNano(), what)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// differences are the paths at which two trees are not the same.
func differences(before, after map[string]string) []string {
	var out []string
	for path, was := range before {
		if after[path] != was {
			out = append(out, fmt.Sprintf("%s: %s -> %s", path, was, after[path]))
		}
	}
	for path, is := range after {
		if _, was := before[path]; !was {
			out = append(out, fmt.Sprintf("%s: new %s", path, is))
		}
	}
	return out
}

func needRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: it changes owners, users or mounts")
	}
}
