package actiontest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/apply/action"
	"github.com/pullet/pullet/internal/journal"
	"github.com/pullet/pullet/render"
)

// Scene is a host below a temporary directory, with a state directory outside of it and a repository of one job. A test
// uses it from one goroutine, and may change its fields between two steps.
type Scene struct {
	T           *testing.T
	Root, State string
	Files       map[string]string // below files/ of the repository
	Macros      string            // of macros/all.yaml
	Actions     []apply.Spec      // that steps may name; nil: the built-in ones
	Fleet       *Fleet            // nil: its record is away
	Emitted     []apply.EmittedEvent
	Whole       bool // the root is / of a host of the lab
}

// New makes a scene with these entries, each "d PATH MODE", a directory, "f PATH MODE CONTENT", a file, or "l PATH
// TARGET", a link. Modes are octal; parents are made with mode 0755. Files has archives and a tree: see repository.
func New(t *testing.T, entries ...string) *Scene {
	t.Helper()
	base := t.TempDir()
	s := &Scene{T: t, Root: filepath.Join(base, "root"), State: filepath.Join(base, "state")}
	s.Files = Repository()
	for _, dir := range []string{s.Root, s.State} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, e := range entries {
		s.Plant(e)
	}
	return s
}

// Plant adds one entry, as New does.
func (s *Scene) Plant(entry string) {
	s.T.Helper()
	f := append(strings.SplitN(entry, " ", 4), "", "")
	path := s.Path(f[1])
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
		s.T.Fatalf("plant %q: %v", entry, err)
	}
}

// Link gives a file of the host another name.
func (s *Scene) Link(name, other string) {
	s.T.Helper()
	if err := os.Link(s.Path(name), s.Path(other)); err != nil {
		s.T.Fatal(err)
	}
}

// Path is where a file of the host is on this machine.
func (s *Scene) Path(name string) string { return filepath.Join(s.Root, name) }

// Host is the host as a run gets it.
func (s *Scene) Host() *apply.Host {
	h := &apply.Host{Root: s.Root, Backups: filepath.Join(s.State, "backups")}
	if s.Fleet != nil {
		h.Fleet = s.Fleet
	}
	h.Emit = func(_ context.Context, e apply.EmittedEvent) error {
		s.Emitted = append(s.Emitted, e)
		return nil
	}
	return h
}

// Bind makes the program of one step, named it, in the job a.
func (s *Scene) Bind(actionName, params string) (*apply.Program, error) {
	return s.BindText(fmt.Sprintf("steps:\n- name: it\n  action: %s\n  parameters: %s\n", actionName, params))
}

// BindText makes the program of a job, which is written as in a repository.
func (s *Scene) BindText(job string) (*apply.Program, error) {
	m := fstest.MapFS{
		"base/jobs.yaml": {Data: []byte("jobs:\n  '*': [{name: a}]\n")}, "jobs/a.yaml": {Data: []byte(job)},
	}
	if s.Macros != "" {
		m["base/macros.yaml"] = &fstest.MapFile{Data: []byte("macros: {'*': [{name: all}]}\n")}
		m["macros/all.yaml"] = &fstest.MapFile{Data: []byte(s.Macros)}
	}
	for name, text := range s.Files {
		m["files/"+name] = &fstest.MapFile{Data: []byte(text)}
	}
	in := render.Input{Node: render.Node{Name: "n1"}, Facts: Facts(), Version: "v1"}
	cat, err := render.Open(render.Layer{Name: "main", FS: m}).Compile(in)
	if err != nil {
		return nil, err
	}
	if s.Actions == nil {
		return apply.Bind(cat, action.All())
	}
	return apply.Bind(cat, s.Actions)
}

// Watch returns where the action is that the next step of a spec is bound to.
func (s *Scene) Watch(spec apply.Spec) *apply.Action {
	var bound apply.Action
	made := spec.New
	spec.New = func() apply.Action {
		bound = made()
		return bound
	}
	s.Actions = append(action.All(), spec) // of two with one name the later counts
	return &bound
}

// MustBind is Bind of parameters that are right.
func (s *Scene) MustBind(actionName, params string) *apply.Program {
	s.T.Helper()
	p, err := s.Bind(actionName, params)
	if err != nil {
		s.T.Fatalf("bind: %v", err)
	}
	return p
}

// Plan plans the program, and gives the report of its only step.
func (s *Scene) Plan(p *apply.Program) *apply.StepReport {
	s.T.Helper()
	return s.Only(p.Plan(context.Background(), s.Options()))
}

// Run runs the program, and gives the report of its only step.
func (s *Scene) Run(p *apply.Program) *apply.StepReport {
	s.T.Helper()
	return s.Only(s.RunAll(context.Background(), p))
}

// Only is the report of the only step.
func (s *Scene) Only(r *apply.Report) *apply.StepReport {
	s.T.Helper()
	if len(r.Steps) != 1 {
		s.T.Fatalf("the report has %d steps, want 1: stopped %q", len(r.Steps), r.Stopped)
	}
	return r.Steps[0]
}

// RunAll runs a program of any number of steps.
func (s *Scene) RunAll(ctx context.Context, p *apply.Program) *apply.Report {
	s.T.Helper()
	r, err := p.Run(ctx, s.Options())
	if err != nil {
		s.T.Fatalf("run: %v", err)
	}
	return r
}

// Options are those of a run, with the journal of the state directory.
func (s *Scene) Options() apply.Options {
	s.T.Helper()
	j, err := journal.Open(s.State)
	if err != nil {
		s.T.Fatal(err)
	}
	return apply.Options{Run: "r", Host: s.Host(), Journal: j, Upgrade: true}
}

// Facts are those of the node n1, whose program it is.
func Facts() render.Facts {
	return render.Facts{
		"fqdn": "n1.example.org", "address": "192.0.2.7",
		"addresses": map[string]any{"eth0": []any{"192.0.2.7"}, "eth1": []any{"198.51.100.7"}},
	}
}

// MustRun runs one step, which has to change the host.
func (s *Scene) MustRun(actionName, params string) {
	s.T.Helper()
	if r := s.Run(s.MustBind(actionName, params)); r.Outcome != apply.Changed {
		s.T.Fatalf("%s %s: %s, %s; want changed", actionName, params, r.Outcome, r.Reason)
	}
}

// Read is the content of a file of the host.
func (s *Scene) Read(name string) string {
	s.T.Helper()
	data, err := os.ReadFile(s.Path(name))
	if err != nil {
		s.T.Fatal(err)
	}
	return string(data)
}

// NeedRoot skips a test that is not run by root.
func NeedRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: it changes owners, users or mounts")
	}
}
