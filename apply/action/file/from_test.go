package file_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/apply/action/actiontest"
)

// TestFrom: what a step reads, another places: a file, a directory, several; a mode that is not said is as it was.
func TestFrom(t *testing.T) {
	t.Parallel()
	s := actiontest.New(t, "f etc/x 640 \x00data\xff", "f etc/d/y 600 y", "f etc/d/sub/z 755 z")
	const job = `steps:
- {name: x, action: file.content, parameters: {name: /etc/x}}
- {name: d, action: file.content, parameters: {name: /etc/d}}
- {name: place x, action: file.managed, parameters: {name: /srv/x, from: [{file: x}], makeDirs: true}}
- {name: place d, action: file.managed, parameters: {name: /srv/d, from: [{file: d}]}}
- {name: place both, action: file.managed, parameters: {name: /srv/b, from: [{file: x}, {file: a/d}], fileMode: 0444}}
`
	p, err := s.BindText(job)
	if err != nil {
		t.Fatal(err)
	}
	if r := p.Plan(context.Background(), s.Options()); r.Steps[2].Outcome != apply.Changed || !strings.HasPrefix(r.Steps[2].Summary, "depends on what a/") {
		t.Errorf("plan: %+v", r.Steps[2])
	}
	if r := s.RunAll(context.Background(), p); r.Failed() || r.Changed() != 3 {
		t.Fatalf("%d changed, %s", r.Changed(), r.Why())
	}
	for name, want := range map[string]string{"x": "-rw-r----- \x00data\xff", "d/y": "-rw------- y", "d/sub/z": "-rwxr-xr-x z", "b/x": "-r--r--r-- \x00data\xff", "b/y": "-r--r--r-- y"} {
		info, err := os.Stat(s.Path("srv/" + name))
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Mode().String() + " " + s.Read("srv/"+name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if r := s.RunAll(context.Background(), p); r.Changed() != 0 || r.Failed() {
		t.Errorf("a second run changed %d %s", r.Changed(), r.Why())
	}
	if err := os.WriteFile(s.Path("etc/x"), []byte("new"), 0o640); err != nil {
		t.Fatal(err)
	}
	if p, err = s.BindText(strings.ReplaceAll(job, "/etc/x}}", "/etc/x}, runOptions: {runs: always}}")); err != nil {
		t.Fatal(err)
	}
	if s.RunAll(context.Background(), p); s.Read("srv/x") != "new" {
		t.Errorf("with runs: always: %q", s.Read("srv/x"))
	}
}

// TestFromSensitive: what a sensitive step read is in no diff of another.
func TestFromSensitive(t *testing.T) {
	t.Parallel()
	s := actiontest.New(t, "f etc/key 600 secret")
	p, err := s.BindText(`steps:
- {name: key, action: file.content, parameters: {name: /etc/key}, sensitive: true}
- {name: place, action: file.managed, parameters: {name: /key, from: [{file: key}]}}
`)
	if err != nil {
		t.Fatal(err)
	}
	r := s.RunAll(context.Background(), p)
	if s.Read("key") != "secret" || strings.Contains(fmt.Sprintf("%+v %+v", *r.Steps[0], *r.Steps[1]), "secret") {
		t.Errorf("%q %+v %+v", s.Read("key"), *r.Steps[0], *r.Steps[1])
	}
}

// TestFromMistakes: what cannot be read in time is said before anything runs.
func TestFromMistakes(t *testing.T) {
	t.Parallel()
	s := actiontest.New(t)
	const place = "- {name: p, action: file.managed, parameters: {name: /p, from: [{file: x}]}}\n"
	for job, want := range map[string]string{
		"steps:\n" + place + "- {name: x, action: file.content, parameters: {name: /x}}\n":                                            `from: step "x" need not have run by then: add require: [{step: a/x}]`,
		"runOptions: {ordering: genius}\nsteps:\n- {name: x, action: file.content, parameters: {name: /x}}\n" + place:                 `need not have run by then`,
		"steps:\n- {name: x, action: test.succeed}\n" + place:                                                                         `from: step "x" reads no file: its action is test.succeed, not file.content`,
		"steps:\n- {name: x, action: file.content, parameters: {name: /x}}\n" + strings.Replace(place, "from", "content: a, from", 1): `from: content and from exclude each other`,
	} {
		if _, err := s.BindText(job); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s%v\nwant %s", job, err, want)
		}
	}
	required := "runOptions: {ordering: genius}\nsteps:\n" + strings.Replace(place, "}}\n", "}, require: [{step: x}]}\n", 1) +
		"- {name: x, action: file.content, parameters: {name: /x}}\n"
	p, err := s.BindText(required)
	if err != nil {
		t.Fatal(err)
	}
	s.Plant("f x 600 hello")
	if r := s.RunAll(context.Background(), p); r.Failed() || s.Read("p") != "hello" {
		t.Errorf("%s", r.Why())
	}
}
