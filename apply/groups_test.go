package apply_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/apply/hostfile"
	"github.com/pullet/pullet/internal/journal"
)

// TestSamePathInAGroup: a step that is about what another of the group is about to change, or about what lies below
// that, is compared and applied alone behind the group.
func TestSamePathInAGroup(t *testing.T) {
	t.Parallel()
	for path, alone := range map[string]bool{"/a": true, "/a/x": true, "/aa": false, "/b": false} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			l.root = t.TempDir()
			log := l.files()
			second := "{name: second, action: t.look, parameters: {name: " + path + "}}"
			r := l.run(one(file("a"), second, file("c")))
			if want := map[bool]int{true: 1}[alone]; log.counts["check"] != want || r.Failed() {
				t.Errorf("%v: %s", log.counts, outcomes(r))
			}
			if s := step(t, r, "second"); (s.Outcome == apply.Changed) == alone {
				t.Errorf("%s %s", s.Outcome, s.Reason)
			}
			for _, name := range []string{"a", "c"} {
				if _, err := os.Stat(filepath.Join(l.root, name)); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// TestLatePathIsAlone: a path that waits for a result is not known when groups are made: the step is alone.
func TestLatePathIsAlone(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.root = t.TempDir()
	log := l.files()
	late := "{name: late, action: t.look, parameters: {name: '/{{ (step `c`).ExitCode }}'}}"
	l.want(l.run(one(cmds("c"), late, file("b"))), "c changed, late ok, b changed")
	if log.counts["check"] != 1 || log.counts["look"] != 1 {
		t.Errorf("%v", log.counts)
	}
}

// owned is a file that belongs to its step.
type owned struct {
	looks `yaml:",inline"`
}

func (a *owned) Manages() []apply.Resource {
	return []apply.Resource{{ID: "file " + a.Name, Path: a.Name}}
}

// TestMadeInAGroup: the report says what was not on the host before, so that what pullet brought can be told from what
// it found.
func TestMadeInAGroup(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.root = t.TempDir()
	log := l.files()
	l.more = append(l.more, apply.Spec{Name: "t.owned", New: func() apply.Action { return &owned{looks{log: log}} }})
	r := l.run(one(
		"{name: a, action: t.owned, parameters: {name: /a}}",
		"{name: b, action: t.owned, parameters: {name: /b}}",
	))
	for _, name := range []string{"a", "b"} {
		if made := step(t, r, name).Made; len(made) != 1 || made[0] != "file /"+name {
			t.Errorf("%s: %q", name, made)
		}
	}
	if log.counts["look"] != 2 {
		t.Errorf("no group: %v", log.counts)
	}
}

// torn is a file whose content cannot be made durable.
type torn struct {
	looks `yaml:",inline"`
}

func (a *torn) CheckAt(h *apply.Host, at *hostfile.Entry) (apply.Change, apply.Prepare, error) {
	change, prepare, err := a.looks.CheckAt(h, at)
	if prepare == nil {
		return change, nil, err
	}
	return change, func(ctx context.Context) (*apply.Prepared, error) {
		p, err := prepare(ctx)
		if err == nil {
			err = p.New.Close()
		}
		return p, err
	}, nil
}

// TestFileThatIsNotDurable: the one whose content cannot be made durable fails, and has no name; the others of its
// group are made.
func TestFileThatIsNotDurable(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.root = t.TempDir()
	log := l.files()
	l.more = append(l.more, apply.Spec{Name: "t.torn", New: func() apply.Action { return &torn{looks{log: log}} }})
	l.want(l.run(one(file("a"), "{name: torn, action: t.torn, parameters: {name: /torn}}", file("b"))), "a changed, torn failed, b changed")
	for name, want := range map[string]bool{"a": true, "b": true, "torn": false} {
		if _, err := os.Stat(filepath.Join(l.root, name)); (err == nil) != want {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestHandedOver: a file that is declared by another path is no leftover, and stays one that pullet brought.
func TestHandedOver(t *testing.T) {
	t.Parallel()
	a := newAssets(t)
	a.root = t.TempDir()
	for _, err := range []error{os.Mkdir(filepath.Join(a.root, "real"), 0o755), os.Symlink("real", filepath.Join(a.root, "link"))} {
		if err != nil {
			t.Fatal(err)
		}
	}
	at := func(path string) jobs {
		return jobs{{"a", list("{name: "+strings.Split(path, "/")[1]+", action: t.file, parameters: {name: "+path+", value: x}}", puts("p"))}}
	}
	things := func() map[string]journal.Thing {
		j, err := journal.Open(a.dir)
		if err != nil {
			t.Fatal(err)
		}
		defer j.Close()
		return j.Managed().Things
	}
	a.pull(at("/real/f"), nil)
	if all := things(); len(all) != 1 || !all["file /real/f"].New {
		t.Fatalf("%+v", all)
	}
	r := a.pull(at("/link/f"), nil)
	a.want(r, "link ok, p ok")
	if all := things(); len(all) != 1 || !all["file /link/f"].New || len(r.Leftovers) > 0 {
		t.Errorf("%+v, left %v", all, r.Leftovers)
	}
	r = a.pull(one(puts("p")), nil)
	if all := things(); len(r.Leftovers) != 1 || r.Leftovers[0].ID != "file /link/f" || len(all) != 1 {
		t.Errorf("%+v, left %v", all, r.Leftovers)
	}
}

// TestSensitiveParts: the text of a sensitive part is in no report, also when it is left behind; different texts are
// different things.
func TestSensitiveParts(t *testing.T) {
	t.Parallel()
	a := newAssets(t)
	secret := func(name string) string { return thing("t.part", name, "sensitive: true") }
	a.pull(jobs{{"a", list(secret("password1"), secret("password2"))}}, nil)
	r := a.pull(jobs{{"a", list(puts("other"))}}, nil)
	if len(r.Leftovers) != 2 || r.Leftovers[0].ID == r.Leftovers[1].ID {
		t.Fatalf("%+v", r.Leftovers)
	}
	for _, l := range r.Leftovers {
		if !strings.HasPrefix(l.ID, "file /f: sensitive ") || len(l.ID) != len("file /f: sensitive ")+8 {
			t.Errorf("%s", l.ID)
		}
	}
}
