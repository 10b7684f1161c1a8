package apply_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/internal/journal"
	"github.com/pullet/pullet/render"
)

// lab is a host of two kinds of things: values that can be compared (t.put), and commands that cannot (t.cmd).
type lab struct {
	t       tb
	dir     string // of the journal
	version string
	upgrade bool
	runs    int // names the runs apart
	values  map[string]string
	ran     []string          // what was applied, in order
	fails   map[string]string // by name: what applying it says
	checks  map[string]string // by name: what comparing it says
	held    error             // what Hold says
	root    string            // in which macros run their commands
	macros  string            // macros/m.yaml
	onApply func(name string)
	more    []apply.Spec
	mu      sync.Mutex
}

// tb is what the lab needs of a test: rapid's are none of package testing's.
type tb interface {
	Helper()
	Errorf(format string, args ...any)
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

func newLab(t testing.TB) *lab { return newLabIn(t, t.TempDir()) }

func newLabIn(t tb, dir string) *lab {
	return &lab{
		t: t, dir: dir, version: "v1", upgrade: true,
		values: map[string]string{}, fails: map[string]string{}, checks: map[string]string{},
	}
}

func (l *lab) specs() []apply.Spec {
	return append([]apply.Spec{
		{Name: "t.put", KeepsHost: true, New: func() apply.Action { return &put{lab: l} }},
		{Name: "t.cmd", KeepsHost: true, New: func() apply.Action { return &command{lab: l} }},
		{Name: "u.put", New: func() apply.Action { return &put{lab: l} }},
		{Name: "t.ask", New: func() apply.Action { return &asks{} }},
		{Name: "t.wait", Passive: true, New: func() apply.Action { return &command{lab: l} }},
	}, l.more...)
}

// put is a value that is to be there.
type put struct {
	Name  string `yaml:"name,required"`
	Value string `yaml:"value"`
	lab   *lab
}

func (a *put) Check(context.Context, *apply.Host) (apply.Change, error) {
	if bad := a.lab.checks[a.Name]; bad != "" {
		return apply.Change{}, errors.New(bad)
	}
	if have, ok := a.lab.values[a.Name]; ok && have == a.Value {
		return apply.Change{}, nil
	}
	return apply.Change{Summary: "put " + a.Name, Diff: "+" + a.Value + "\n"}, nil
}

func (a *put) Apply(_ context.Context, _ *apply.Host, _ apply.Change) (apply.Output, error) {
	out, err := a.lab.apply(a.Name)
	if err == nil {
		a.lab.values[a.Name] = a.Value
	}
	return out, err
}

// command is done whenever it is asked for.
type command struct {
	Name string `yaml:"name,required"`
	lab  *lab
}

func (a *command) Unchecked() bool { return true }
func (a *command) Check(context.Context, *apply.Host) (apply.Change, error) {
	return apply.Change{Summary: "run " + a.Name}, nil
}

func (a *command) Apply(_ context.Context, _ *apply.Host, _ apply.Change) (apply.Output, error) {
	return a.lab.apply(a.Name)
}

// asks is a command that a macro runs.
type asks struct {
	Cmd     string `yaml:"cmd,required"`
	Timeout string `yaml:"timeout"` // of the macro
}

func (a *asks) Reads() error { return nil }
func (a *asks) Check(context.Context, *apply.Host) (apply.Change, error) {
	return apply.Change{Summary: "ask"}, nil
}

func (a *asks) Apply(ctx context.Context, h *apply.Host, _ apply.Change) (apply.Output, error) {
	out, err := h.Run(ctx, apply.Command{Args: apply.Shell(a.Cmd)})
	if err == nil && out.ExitCode != 0 {
		err = &apply.ExitError{Command: a.Cmd, Output: out}
	}
	return out, err
}

func (a *asks) Read(ctx context.Context, h *apply.Host) (string, error) {
	out, err := a.Apply(ctx, h, apply.Change{})
	return out.StdOut, err
}

// note takes down what was applied; steps may run at once.
func (l *lab) note(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ran = append(l.ran, name)
}

func (l *lab) apply(name string) (apply.Output, error) {
	l.note(name)
	if l.onApply != nil {
		l.onApply(name)
	}
	out := apply.Output{StdOut: "out of " + name, StdErr: "err of " + name}
	if bad := l.fails[name]; bad != "" {
		return out, errors.New(bad)
	}
	return out, nil
}

// jobs are the texts of job files in their order; a name that begins with "check" is a validation.
type jobs []struct{ name, text string }

// one is the only job of a repository: steps as flow maps.
func one(steps ...string) jobs { return jobs{{"a", list(steps...)}} }

func list(steps ...string) string {
	return "steps:\n- " + strings.Join(steps, "\n- ") + "\n"
}

func (l *lab) bind(js jobs) (*apply.Program, error) {
	files := fstest.MapFS{}
	base := map[bool]string{}
	for _, j := range js {
		name, conditions, _ := strings.Cut(j.name, " ")
		base[strings.HasPrefix(name, "check")] += "  - {name: " + name + conditions + "}\n"
		files["jobs/"+name+".yaml"] = &fstest.MapFile{Data: []byte(j.text)}
	}
	text := "jobs:\n  '*':\n" + base[false] + "validations:\n  '*':\n" + base[true]
	files["base/jobs.yaml"] = &fstest.MapFile{Data: []byte(text)}
	if l.macros != "" {
		files["base/macros.yaml"] = &fstest.MapFile{Data: []byte("macros: {'*': [{name: m}]}\n")}
		files["macros/m.yaml"] = &fstest.MapFile{Data: []byte(l.macros)}
	}
	in := render.Input{Node: render.Node{Name: "n1"}, Version: l.version}
	cat, err := render.Open(render.Layer{Name: "main", FS: files}).Compile(in)
	if err != nil {
		return nil, err
	}
	return apply.Bind(cat, l.specs())
}

func (l *lab) program(js jobs) *apply.Program {
	l.t.Helper()
	p, err := l.bind(js)
	if err != nil {
		l.t.Fatalf("bind: %v", err)
	}
	return p
}

func (l *lab) options() apply.Options {
	l.t.Helper()
	l.runs++
	j, err := journal.Open(l.dir)
	if err != nil {
		l.t.Fatal(err)
	}
	return apply.Options{
		Run: fmt.Sprint("run", l.runs), Host: &apply.Host{Root: l.root}, Journal: j, Upgrade: l.upgrade,
		Gates: holds{ask: func(context.Context) error { return l.held }}, Turn: true,
	}
}

func (l *lab) run(js jobs) *apply.Report {
	l.t.Helper()
	return l.runContext(context.Background(), js)
}

func (l *lab) runContext(ctx context.Context, js jobs) *apply.Report {
	l.t.Helper()
	r, err := l.program(js).Run(ctx, l.options())
	if err != nil {
		l.t.Fatalf("run: %v", err)
	}
	return r
}

// outcomes are a report in one line: "a ok, b failed".
func outcomes(r *apply.Report) string {
	var out []string
	for _, s := range r.Steps {
		out = append(out, s.Step+" "+string(s.Outcome))
	}
	return strings.Join(out, ", ")
}

func (l *lab) want(r *apply.Report, want string) {
	l.t.Helper()
	if got := outcomes(r); got != want {
		l.t.Errorf("got  %s\nwant %s\nwhy: %s", got, want, r.Why())
	}
}

func (l *lab) wantRan(names ...string) {
	l.t.Helper()
	if !slices.Equal(l.ran, names) {
		l.t.Errorf("applied %q, want %q", l.ran, names)
	}
	l.ran = nil
}

// step is a report's step by name.
func step(t tb, r *apply.Report, name string) *apply.StepReport {
	t.Helper()
	for _, s := range r.Steps {
		if s.Step == name {
			return s
		}
	}
	t.Fatalf("the report has no step %q: %s", name, outcomes(r))
	return nil
}

// puts is a step that puts its own name, with more of the step behind.
func puts(name string, more ...string) string { return thing("t.put", name, more...) }

// cmds is a command by its name.
func cmds(name string, more ...string) string { return thing("t.cmd", name, more...) }

func thing(action, name string, more ...string) string {
	return fmt.Sprintf("{name: %s, action: %s, parameters: {name: %s}%s}", name, action, name, strings.Join(append([]string{""}, more...), ", "))
}

// holds are gates that only ask before a step changes the host.
type holds struct {
	apply.Gates
	ask func(context.Context) error
}

func (h holds) Hold(ctx context.Context, _ apply.GatedStep) error { return h.ask(ctx) }
func (h holds) Failed(*apply.Report) error                        { return nil }
func (h holds) Park(context.Context, string) error                { return nil }
func (h holds) Quorum(context.Context, apply.GatedStep) (func(bool), error) {
	return func(bool) {}, nil
}
