package apply_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/render"
)

// sourced is a value that comes from a file of the repository.
type sourced struct {
	Name     string `yaml:"name,required"`
	Source   string `yaml:"source,required"`
	Template bool   `yaml:"template"`
	put      put
}

func (a *sourced) Bind(b apply.Binding) error {
	data, err := b.Source(a.Source, a.Template)
	a.put.Name, a.put.Value = a.Name, string(data)
	return err
}

func (a *sourced) Check(ctx context.Context, h *apply.Host) (apply.Change, error) {
	return a.put.Check(ctx, h)
}

func (a *sourced) Apply(ctx context.Context, h *apply.Host, c apply.Change) (apply.Output, error) {
	return a.put.Apply(ctx, h, c)
}

func (a *sourced) Manages() []apply.Resource {
	return []apply.Resource{apply.NamedResource("value", a.Name, "t.none")}
}

// library is a repository with files, for a lab's host.
type library struct {
	*lab
	files fstest.MapFS
	in    render.Input
}

// newLibrary has one job and the files of the repository in pairs of a name and a text.
func newLibrary(t *testing.T, steps string, files ...string) *library {
	l := &library{lab: newLab(t), files: fstest.MapFS{}, in: render.Input{Node: render.Node{Name: "n1"}, Version: "v1"}}
	l.more = []apply.Spec{{Name: "t.sourced", New: func() apply.Action { return &sourced{put: put{lab: l.lab}} }}}
	l.file("base/jobs.yaml", "jobs: {'*': [{name: a}]}\n")
	l.file("jobs/a.yaml", steps)
	for i := 0; i < len(files); i += 2 {
		l.file("files/"+files[i], files[i+1])
	}
	return l
}

func (l *library) file(name, text string) { l.files[name] = &fstest.MapFile{Data: []byte(text)} }

func (l *library) compile() (*apply.Program, error) {
	p, _, err := apply.Compile(render.Open(render.Layer{Name: "main", FS: l.files}), l.in, l.specs())
	return p, err
}

func (l *library) program() *apply.Program {
	l.t.Helper()
	p, err := l.compile()
	if err != nil {
		l.t.Fatal(err)
	}
	return p
}

func (l *library) pull() *apply.Report {
	l.t.Helper()
	r, err := l.program().Run(context.Background(), l.options())
	if err != nil {
		l.t.Fatal(err)
	}
	return r
}

// from is a step with the text of a file.
func from(source string, more ...string) string {
	return "{name: s, action: t.sourced, parameters: {name: s, source: '" + source + "'" + strings.Join(append([]string{""}, more...), ", ") + "}}"
}

// TestMistakesOfSources: each has its place, in the step or in the template, before anything is touched.
func TestMistakesOfSources(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ step, want string }{
		"none":               {from("text"), ""},
		"Salt's file server": {from("salt://text"), "jobs/a.yaml:2:62: source: salt:// is not a path: sources are files of the repository, below files/: write source: text\n"},
		"no such file":       {from("txt"), "jobs/a.yaml:2:62: source: there is no files/txt in the repository (did you mean \"text\"?)\n"},
		"a directory":        {from("dir"), "jobs/a.yaml:2:62: source: files/dir is a directory: add recurse: true\n"},
		"no template":        {from("broken"), ""},
		"a bad template":     {from("broken", "template: true"), "files/broken:1:"},
		"a bad parameter":    {from("text", "templat: true"), "jobs/a.yaml:2:"},
		"no such action":     {thing("t.putt", "x"), "jobs/a.yaml:2:21: there is no action \"t.putt\" (did you mean \"t.put\"?)\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLibrary(t, list(c.step), "text", "x", "dir/one", "x", "broken", "{{ nothing }}")
			_, err := l.compile()
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.HasPrefix(err.Error(), c.want)) {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
		})
	}
}

// TestCompileTellsAll: the mistakes of the repository and those that actions find are told together, and a compilation
// that was ended says why.
func TestCompileTellsAll(t *testing.T) {
	t.Parallel()
	l := newLibrary(t, list(from("no"), "{name: b, action: t.cmd, parameters: {name: '{{ nothing }}'}}"))
	_, err := l.compile()
	var all render.ErrorList
	if !errors.As(err, &all) || len(all) != 2 {
		t.Errorf("%d mistakes: %v", len(all), err)
	}
	ended := errors.New("the pull is over")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(ended)
	l = newLibrary(t, list(from("text")), "text", "x")
	l.in.Context = ctx
	if p, err := l.compile(); !errors.Is(err, ended) || p != nil {
		t.Errorf("it was ended: %v", err)
	}
}

// TestTextsOfSources: what a file says, what its template makes of it, and what only the run can tell.
func TestTextsOfSources(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ text, more, want string }{
		"as it is":          {"{{ node.name }}", "template: false", "{{ node.name }}"},
		"a template":        {"{{ 1 | add 1 }}", "template: true", "2"},
		"a result of a run": {"{{ (step `c`).StdOut }}", "template: true", "out of c"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLibrary(t, list(cmds("c"), from("text", c.more)), "text", c.text)
			l.want(l.pull(), "c changed, s changed")
			if got := l.values["s"]; got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// TestSensitiveSources: a template that names a secret, or holds one, makes the step sensitive; another one does not.
func TestSensitiveSources(t *testing.T) {
	t.Parallel()
	for text, hidden := range map[string]bool{"open": false, "{{ if vars.token }}yes{{ end }}": true, "s3cret-of-the-host": true, "{{ vars.other }}": false} {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			l := newLibrary(t, list(from("text", "template: true")), "text", text)
			vars, secrets, err := render.HostVars(fstest.MapFS{
				"s.yaml": {Data: []byte("sensitive: true\ntoken: s3cret-of-the-host\n")}, "t.yaml": {Data: []byte("other: known\n")},
			}, "v")
			if err != nil {
				t.Fatal(err)
			}
			l.in.HostVars, l.in.Secrets = vars, secrets
			if diff := step(t, l.pull(), "s").Diff; (diff == "(sensitive: not shown)\n") != hidden {
				t.Errorf("the diff is %q", diff)
			}
		})
	}
}

// TestDigestOfAProgram: it changes with what the steps say, with the files that they read and with the host's
// variables, and with nothing else.
func TestDigestOfAProgram(t *testing.T) {
	t.Parallel()
	make := func(text, step string, vars map[string]any) string {
		l := newLibrary(t, list(step), "text", text, "other", text+" of another")
		l.in.HostVars = vars
		return l.program().Digest()
	}
	same := make("x", from("text"), nil)
	if again := make("x", from("text"), nil); again != same || len(same) != 32 {
		t.Errorf("%s and %s", same, again)
	}
	for what, digest := range map[string]string{
		"a file":      make("y", from("text"), nil),
		"a parameter": make("x", from("text", "template: true"), nil),
		"a variable":  make("x", from("text"), map[string]any{"one": 1}),
		"a step":      make("x", puts("s"), nil),
	} {
		if digest == same {
			t.Errorf("%s makes no difference", what)
		}
	}
}

// TestDriftOfSources: a file that says something else is no drift; the host that does is.
func TestDriftOfSources(t *testing.T) {
	t.Parallel()
	l := newLibrary(t, list(from("text")), "text", "one")
	drifts := func(version string, want bool) {
		t.Helper()
		l.in.Version = version
		r := l.pull()
		if s := step(t, r, "s"); s.Outcome != apply.Changed || s.Drift != want {
			t.Errorf("%s: %s, drift %v", version, s.Outcome, s.Drift)
		}
	}
	drifts("v1", false)
	l.file("files/text", "two")
	drifts("v2", false)
	l.values["s"] = "by hand"
	drifts("v2", true)
	l.values["s"] = "by hand"
	l.file("files/other", "x")
	drifts("v3", true)
}
