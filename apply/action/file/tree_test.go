package file_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pullet/pullet/apply/action/actiontest"
)

// TestData: the formats as they are written.
func TestData(t *testing.T) {
	t.Parallel()
	data := "{z: {b: [1, a], a: {}}, a: '1', m: 0644, t: 2024-01-02, big: 12345678901, f: 1.5, html: '<&>', n: null}"
	for name, want := range map[string]string{
		"f.json": "{\n  \"a\": \"1\",\n  \"big\": 12345678901,\n  \"f\": 1.5,\n  \"html\": \"<&>\",\n  \"m\": \"0644\",\n  \"n\": null,\n  \"t\": \"2024-01-02\",\n" +
			"  \"z\": {\n    \"a\": {},\n    \"b\": [\n      1,\n      \"a\"\n    ]\n  }\n}\n",
		"f.yaml": "a: \"1\"\nbig: 12345678901\nf: 1.5\nhtml: <&>\nm: \"0644\"\n\"n\": null\nt: \"2024-01-02\"\nz:\n  a: {}\n  b:\n    - 1\n    - a\n",
	} {
		s := actiontest.New(t)
		s.MustRun("file.managed", "{name: /"+name+", data: "+data+"}")
		if got := s.Read(name); got != want {
			t.Errorf("%s:\n%s\nwant\n%s", name, got, want)
		}
	}
}

// TestTree: contents, templates, and the modes of files, executables and directories.
func TestTree(t *testing.T) {
	t.Parallel()
	s := actiontest.New(t, "f t/sub/b.conf 604 old")
	s.MustRun("file.managed", "{name: /t, source: tree, recurse: true, template: true}")
	s.MustRun("file.managed", "{name: /m, source: tree, recurse: true, mode: 0640}")
	s.MustRun("file.managed", "{name: /x, source: tree, recurse: true, fileMode: 0600, dirMode: 0711}")
	if s.Read("t/a.conf") != "a = n1\n" || s.Read("m/a.conf") != "a = {{ server.name }}\n" {
		t.Errorf("%q %q", s.Read("t/a.conf"), s.Read("m/a.conf"))
	}
	for name, want := range map[string]fs.FileMode{
		"t/sub/b.conf": 0o604, "t/sub/deep/c": 0o644, "t/sub/deep": 0o755 | fs.ModeDir,
		"m": 0o750 | fs.ModeDir, "m/sub": 0o750 | fs.ModeDir, "m/a.conf": 0o640, "x/sub": 0o711 | fs.ModeDir, "x/a.conf": 0o600,
	} {
		if info, err := os.Stat(s.Path(name)); err != nil || info.Mode() != want {
			t.Errorf("%s: %v %v, want %v", name, info.Mode(), err, want)
		}
	}
}

// TestTreeDiff: one change shows the diff of each file.
func TestTreeDiff(t *testing.T) {
	t.Parallel()
	s := actiontest.New(t, "f srv/t/b.conf 644 old\n", "f srv/t/gone 644", "f srv/t/deep/c 600 c\n")
	r := s.Plan(s.MustBind("file.managed", "{name: /srv/t, source: tree/sub, recurse: true, clean: true, mode: 0644}"))
	for _, want := range []string{"/srv/t/b.conf (desired)", "-old\n+b\n", "/srv/t/deep/c: mode 0600 -> 0644\n", "/srv/t/gone: remove\n"} {
		if !strings.Contains(r.Diff, want) {
			t.Errorf("the diff lacks %q:\n%s", want, r.Diff)
		}
	}
}

// TestCleanSpares: what other steps name stays with all that is below it, also where it is reached by another path, or
// is known only in part.
func TestCleanSpares(t *testing.T) {
	t.Parallel()
	s := actiontest.New(t, "f srv/app/mine 644", "f srv/app/file 644", "f srv/app/made 644", "f srv/app/sub/x 644", "f srv/app/by/link 644", "l other /srv/app",
		"f srv/app/part-1 644", "f srv/app/deep/er/z 644", "f srv/app/deep/mine 644", "f srv/app/t/b.conf 644 b\n", "f srv/app/t/mine 644", "f srv/app/absent 644")
	p, err := s.BindText(`steps:
- {name: clean, action: file.directory, parameters: {name: /srv/app, clean: true}}
- {name: file, action: file.managed, parameters: {name: /srv/app/file}}
- {name: makes, action: cmd.run, parameters: {cmd: 'true', creates: /srv/app/made}}
- {name: sub, action: file.directory, parameters: {name: /srv/app/sub}}
- {name: link, action: file.managed, parameters: {name: /other/by/link}}
- {name: number, action: template.expression, parameters: {content: '1'}}
- {name: part, action: file.managed, parameters: {name: '/srv/app/part-{{ (step "number").StdOut }}'}}
- {name: deep, action: file.line, parameters: {name: /srv/app/deep/er/z, line: x}}
- {name: tree, action: file.managed, parameters: {name: /srv/app/t, source: tree/sub, recurse: true}}
- {name: absent, action: file.absent, parameters: {name: /srv/app/absent}}
`)
	if err != nil {
		t.Fatal(err)
	}
	r := s.RunAll(context.Background(), p)
	if r.Failed() || r.Steps[0].Summary != "below it: remove 3" {
		t.Errorf("%s %s\n%s", r.Steps[0].Summary, r.Why(), r.Steps[0].Diff)
	}
	for _, gone := range []string{"mine", "deep/mine", "absent"} {
		if _, err := os.Lstat(s.Path("srv/app/" + gone)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", gone, err)
		}
	}
	if r := s.RunAll(context.Background(), p); r.Changed() != 0 {
		t.Errorf("a second run changed %d", r.Changed())
	}
}

// TestCleanKnowsTrees: a directory that is cleaned and filled by a tree has what the tree has; where a step fills it
// with what is not known, cleaning is refused.
func TestCleanKnowsTrees(t *testing.T) {
	t.Parallel()
	s := actiontest.New(t, "f srv/t/mine 644", "f srv/t/b.conf 644 b\n", "f srv/t/deep/c 644 c\n")
	clean := "steps:\n- {name: clean, action: file.directory, parameters: {name: /srv/t, clean: true}}\n- "
	p, err := s.BindText(clean + "{name: tree, action: file.managed, parameters: {name: /srv/t, source: tree/sub, recurse: true}}\n")
	if err != nil {
		t.Fatal(err)
	}
	if r := s.RunAll(context.Background(), p); r.Changed() != 1 || r.Steps[0].Summary != "below it: remove 1" {
		t.Errorf("%d %s", r.Changed(), r.Steps[0].Diff)
	}
	for step, want := range map[string]string{
		"{name: x, action: archive.extracted, parameters: {name: /srv/t, source: app.tgz}}":                 `clean: step "a/x" fills /srv/t, and what it brings is not known here`,
		"{name: x, action: file.managed, parameters: {name: '{{ (step \"clean\").StdOut }}', content: ''}}": "clean: another step has a name that is known only when it runs, and may lie below /srv/t",
	} {
		if _, err := s.BindText(clean + step + "\n"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// TestCleaningLeadsNowhere: whatever links lead to a directory, and stand in it, nothing beside the root is removed or
// gets another owner.
func TestCleaningLeadsNowhere(t *testing.T) {
	t.Parallel()
	actiontest.NeedRoot(t)
	for _, via := range []string{"link", "up", "outside", "in"} {
		s := actiontest.New(t, "l link /", "l up ../../../..", "l outside ../outside", "d in/x 755", "l in/x/out ../../../outside", "l in/x/sub /")
		outside := filepath.Join(filepath.Dir(s.Root), "outside")
		for _, err := range []error{os.MkdirAll(outside+"/x", 0o755), os.WriteFile(outside+"/x/victim", []byte("whole"), 0o644)} {
			if err != nil {
				t.Fatal(err)
			}
		}
		before := actiontest.Tree(t, outside)
		for _, params := range []string{"{name: /%s/x, recurse: true, owner: '4711', fileMode: 0600, dirMode: 0700}", "{name: /%s/x, clean: true}"} {
			r := s.Run(s.MustBind("file.directory", fmt.Sprintf(params, via)))
			t.Logf("%s %s %s", r.Outcome, r.Summary, r.Reason)
			for _, d := range actiontest.Differences(before, actiontest.Tree(t, outside)) {
				t.Errorf("%s: it led out: %s", via, d)
			}
		}
		onlyKnown(s)
	}
}
