package file_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/apply/action/actiontest"
)

// TestReadersSeeWholeFiles: while a file is replaced again and again, every reader sees one content as a whole.
func TestReadersSeeWholeFiles(t *testing.T) {
	s := actiontest.New(t)
	whole := map[string]bool{}
	var programs []*apply.Program
	for _, c := range []string{"a", "b"} {
		s.Files[c] = strings.Repeat(c, 1<<20)
		whole[s.Files[c]] = true
	}
	for _, c := range []string{"a", "b"} {
		programs = append(programs, s.MustBind("file.managed", "{name: /f, source: "+c+"}"))
	}
	s.Run(programs[0])
	stop, bad := make(chan struct{}), make(chan string, 1)
	go func() {
		defer close(bad)
		for reads := 0; ; reads++ {
			select {
			case <-stop:
				if reads < 2 {
					bad <- "the reader hardly read"
				}
				return
			default:
			}
			data, err := os.ReadFile(s.Path("f"))
			if err != nil || !whole[string(data)] {
				bad <- fmt.Sprintf("read %d bytes, %v", len(data), err)
				return
			}
		}
	}()
	for i := range 30 {
		if r := s.Run(programs[(i+1)%2]); r.Outcome != apply.Changed {
			t.Fatalf("%s %s", r.Outcome, r.Reason)
		}
	}
	close(stop)
	for b := range bad {
		t.Error(b)
	}
}

// TestModes: all twelve bits arrive, on new files and on replaced ones.
func TestModes(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]fs.FileMode{
		"'0600'": 0o600, "0644": 0o644, "0o755": 0o755, "'4755'": 0o755 | fs.ModeSetuid, "'2750'": 0o750 | fs.ModeSetgid,
		"'1777'": 0o777 | fs.ModeSticky, "'6711'": 0o711 | fs.ModeSetuid | fs.ModeSetgid, "'0'": 0,
	} {
		for _, before := range [][]string{nil, {"f f 644 old"}, {"f f 640 new"}} {
			for _, params := range []string{"{name: /f, content: new, mode: %s}", "{name: /d, mode: %s}"} {
				s := actiontest.New(t, before...)
				name, act := "f", "file.managed"
				if strings.Contains(params, "/d") {
					name, act = "d", "file.directory"
				}
				s.MustRun(act, fmt.Sprintf(params, text))
				info, err := os.Stat(s.Path(name))
				if err != nil || info.Mode()&^fs.ModeDir != want {
					t.Errorf("mode %s over %q: %v %v, want %v", text, before, info.Mode(), err, want)
				}
			}
		}
	}
}

// TestDefaultMode: a new file has 0644 whatever the umask; a replaced one keeps its mode and owner.
func TestDefaultMode(t *testing.T) {
	old := syscall.Umask(0o077)
	defer syscall.Umask(old)
	s := actiontest.New(t, "f kept 4750 old")
	s.MustRun("file.managed", "{name: /new, content: x}")
	s.MustRun("file.managed", "{name: /kept, content: x}")
	for name, want := range map[string]fs.FileMode{"new": 0o644, "kept": 0o750 | fs.ModeSetuid} {
		if info, err := os.Stat(s.Path(name)); err != nil || info.Mode() != want {
			t.Errorf("%s: %v %v, want %v", name, info.Mode(), err, want)
		}
	}
}

// TestOwners: names are those of the root's own passwd and group files, and links to those stay beneath the root.
func TestOwners(t *testing.T) {
	t.Parallel()
	actiontest.NeedRoot(t)
	users := []string{"f files/passwd 644 root:x:0:0::/:/bin/sh\nsvc:x:4711:4712::/:/bin/sh\n", "f files/group 644 grp:x:4713:\n", "l etc /files"}
	s := actiontest.New(t, append(users, "f kept 600 old", "f taken 600 old", "f given 600 old")...)
	for _, name := range []string{"kept", "taken", "given"} {
		if err := os.Chown(s.Path(name), 4000, 4001); err != nil {
			t.Fatal(err)
		}
	}
	s.MustRun("file.managed", "{name: /f, content: x, owner: svc, group: grp, mode: '4755'}")
	s.MustRun("file.managed", "{name: /n, content: x, owner: 4800, group: '4801'}")
	s.MustRun("file.managed", "{name: /kept, content: new}")
	s.MustRun("file.managed", "{name: /taken, content: new, owner: 0, group: 0}")
	s.MustRun("file.managed", "{name: /given, content: new, owner: svc, group: grp}")
	s.MustRun("file.directory", "{name: /d, owner: svc}")
	for name, want := range map[string][2]int{"f": {4711, 4713}, "n": {4800, 4801}, "kept": {4000, 4001}, "taken": {0, 0}, "given": {4711, 4713},
		"d": {4711, os.Getegid()}} {
		if uid, gid := actiontest.OwnerOf(t, s.Path(name)); uid != want[0] || gid != want[1] {
			t.Errorf("%s: owner %d:%d, want %v", name, uid, gid, want)
		}
	}
	if info, _ := os.Stat(s.Path("f")); info.Mode() != 0o755|fs.ModeSetuid {
		t.Errorf("the setuid bit did not outlive the change of owner: %v", info.Mode())
	}
	r := s.Run(s.MustBind("file.managed", "{name: /f, owner: root, group: '0'}"))
	if r.Summary != "owner 4711 -> 0, group 4713 -> 0" {
		t.Errorf("summary %q", r.Summary)
	}
}

// TestNothingLeadsOut: whatever links a root has, an action works beneath it. The directory beside the root must stay
// as it is.
func TestNothingLeadsOut(t *testing.T) {
	t.Parallel()
	links := []string{"l link /", "l up ../../../..", "l outside ../outside", "l abs %s", "l chain link/up/abs", "f passwd 644 x"}
	actions := map[string]string{
		"file.managed":      "{name: /%s/x/victim, content: evil, mode: 0600, makeDirs: true, backup: true}",
		"file.directory":    "{name: /%s/x, mode: 0700}",
		"file.symlink":      "{name: /%s/victim-link, target: evil}",
		"file.absent":       "{name: /%s/victim}",
		"cmd.run":           "{cmd: touch victim-cmd, cwd: /%s}",
		"file.line":         "{name: /%s/victim, line: evil, create: true, makeDirs: true, backup: true}",
		"file.block":        "{name: /%s/victim-block, content: evil, create: true, makeDirs: true}",
		"file.content":      "{name: /%s/victim}",
		"archive.extracted": "{name: /%s/x, source: app.tgz}",
	}
	for act, params := range actions {
		for _, via := range []string{"link", "up", "outside", "abs", "chain", "../../..", "link/../outside"} {
			t.Run(act+" "+via, func(t *testing.T) {
				s := actiontest.New(t)
				outside := s.Root + "/../outside"
				for _, err := range []error{os.Mkdir(outside, 0o755), os.WriteFile(outside+"/victim", []byte("whole"), 0o644)} {
					if err != nil {
						t.Fatal(err)
					}
				}
				for _, l := range links {
					s.Plant(strings.ReplaceAll(l, "%s", filepath.Clean(outside)))
				}
				before := actiontest.Tree(t, outside)
				p, err := s.Bind(act, fmt.Sprintf(params, via))
				if err != nil && strings.Contains(err.Error(), "too near the root") {
					return // refused, which is as good
				}
				if err != nil {
					t.Fatal(err)
				}
				report := s.Run(p)
				t.Logf("%s %s", report.Outcome, report.Reason)
				for _, d := range actiontest.Differences(before, actiontest.Tree(t, outside)) {
					t.Errorf("it led out: %s", d)
				}
				onlyKnown(s)
			})
		}
	}
}

// onlyKnown: nothing new stands beside the root and the state directory.
func onlyKnown(s *actiontest.Scene) {
	s.T.Helper()
	found, err := os.ReadDir(s.Root + "/..")
	if err != nil {
		s.T.Fatal(err)
	}
	for _, e := range found {
		if name := e.Name(); name != "root" && name != "state" && name != "outside" {
			s.T.Errorf("%s appeared beside the root", name)
		}
	}
}

// TestFinalLinks: a link in place of a file that gets content is replaced; what it names is neither read, nor changed,
// nor given another mode.
func TestFinalLinks(t *testing.T) {
	t.Parallel()
	for _, params := range []string{
		"{name: /l, content: new, mode: 0600}", "{name: /l, content: ''}", "{name: /l, content: new, backup: true}",
		"{name: /l, content: secret}",
	} {
		s := actiontest.New(t, "f target 644 secret")
		if err := os.Symlink(s.Path("target"), s.Path("l")); err != nil {
			t.Fatal(err)
		}
		before := actiontest.Tree(t, s.Path("target"))
		r := s.Run(s.MustBind("file.managed", params))
		info, err := os.Lstat(s.Path("l"))
		if err != nil || !info.Mode().IsRegular() {
			t.Errorf("%s: %v %v (%s %s), want a regular file", params, info.Mode(), err, r.Outcome, r.Reason)
		}
		if d := actiontest.Differences(before, actiontest.Tree(t, s.Path("target"))); len(d) > 0 {
			t.Errorf("%s: %v", params, d)
		}
		if len(backups(t, s)) > 0 {
			t.Errorf("%s: the link was followed for a backup", params)
		}
		if strings.Contains(r.Diff, "-secret") {
			t.Errorf("%s: the diff shows what the link names", params)
		}
	}
}

// backups are the contents below the directory of backups.
func backups(t *testing.T, s *actiontest.Scene) []string {
	t.Helper()
	var out []string
	err := filepath.WalkDir(s.Host().Backups, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return nil
		}
		data, err := os.ReadFile(path)
		out = append(out, string(data))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestBackup: what was replaced is kept, below the state directory also where the path climbs.
func TestBackup(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"/etc/f", "/../../etc/f", "/etc/x/../f"} {
		s := actiontest.New(t, "f etc/f 644 old")
		s.MustRun("file.managed", "{name: "+name+", content: new, backup: true}")
		if got := backups(t, s); len(got) != 1 || got[0] != "old" {
			t.Errorf("%s: backups %q, want the old content", name, got)
		}
		if s.Read("etc/f") != "new" {
			t.Errorf("%s: %q", name, s.Read("etc/f"))
		}
		onlyKnown(s)
	}
}

// TestValidate: the command sees the new content before anything is replaced, under the file's name and with its mode,
// in a directory that only the agent can enter and that is gone afterwards.
func TestValidate(t *testing.T) {
	t.Parallel()
	s := actiontest.New(t, "f d/f 600 old")
	s.MustRun("file.managed", `{name: /d/f, content: new, mode: 0640, validate: "stat -c %a %s > seen; cat %s d/f >> seen; echo >> seen; echo %s >> seen; stat -c %a $(dirname %s) >> seen"}`)
	lines := strings.Split(s.Read("seen"), "\n")
	if lines[0] != "640" || lines[1] != "newold" || filepath.Base(lines[2]) != "f" || lines[3] != "700" {
		t.Errorf("the command saw %q", lines)
	}
	if _, err := os.Stat(filepath.Dir(lines[2])); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s is left: %v", lines[2], err)
	}
	justOne(s, "d", "new")
}

// TestValidateFails: the old file is whole, nothing else is in its directory, and the message names the file, not the
// candidate.
func TestValidateFails(t *testing.T) {
	t.Parallel()
	s := actiontest.New(t, "f d/f 600 old")
	before := actiontest.Tree(t, s.Path("d/f"))
	r := s.Run(s.MustBind("file.managed", `{name: /d/f, content: new, mode: 0640, validate: "echo %s is bad >&2; exit 9"}`))
	want := "validate: exit code 9: /d/f is bad; the old file is untouched"
	if r.Outcome != apply.Failed || r.Reason != want {
		t.Errorf("%s %q, want %q", r.Outcome, r.Reason, want)
	}
	if d := actiontest.Differences(before, actiontest.Tree(t, s.Path("d/f"))); len(d) > 0 {
		t.Errorf("%v", d)
	}
	justOne(s, "d", "old")
}

// justOne: a directory holds the file f and nothing else.
func justOne(s *actiontest.Scene, dir, content string) {
	s.T.Helper()
	found, err := os.ReadDir(s.Path(dir))
	if err != nil || len(found) != 1 {
		s.T.Errorf("%s holds %v %v, want one file", dir, found, err)
	}
	if got := s.Read(dir + "/f"); got != content {
		s.T.Errorf("%s/f holds %.40q, want %q", dir, got, content)
	}
}

// TestFullDisk: on a full disk the old file stays whole and no candidate is left behind.
func TestFullDisk(t *testing.T) {
	if !inPrivateMounts(t) {
		return
	}
	s := actiontest.New(t, "d d 755")
	mount(s, "small", "d", "tmpfs", 0, "size=64k")
	s.Plant("f d/f 600 old")
	s.Files["big"] = strings.Repeat("x", 1<<20)
	r := s.Run(s.MustBind("file.managed", "{name: /d/f, source: big}"))
	if r.Outcome != apply.Failed || !strings.Contains(r.Reason, "no space left on device") || !strings.Contains(r.Reason, "the old file is untouched") {
		t.Errorf("%s %q", r.Outcome, r.Reason)
	}
	justOne(s, "d", "old")
}

// TestDiffs: text line by line, everything else by size and digest, and no more of it than a page can bear.
func TestDiffs(t *testing.T) {
	t.Parallel()
	many := strings.Repeat("line\n", 2000)
	for _, c := range []struct {
		name, old, new string
		want, not      string
	}{
		{"text", "a\nb\n", "a\nc\n", "-b\n+c\n", "binary"},
		{"binary now", "a\x00b", "text\n", "binary: 3 bytes sha256:", "text"},
		{"binary then", "text\n", "a\xff\xfe", "binary: 5 bytes sha256:", "text"},
		{"long", "", many, "more lines\n", ""},
		{"huge", "", strings.Repeat("x", 1<<20+1), "binary: 0 bytes sha256:", "xxx"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := actiontest.New(t, "f f 644")
			if err := os.WriteFile(s.Path("f"), []byte(c.old), 0o644); err != nil {
				t.Fatal(err)
			}
			s.Files["new"] = c.new
			r := s.Plan(s.MustBind("file.managed", "{name: /f, source: new}"))
			if !strings.Contains(r.Diff, c.want) || c.not != "" && strings.Contains(r.Diff, c.not) || strings.Count(r.Diff, "\n") > 401 {
				t.Errorf("diff of %d lines: %.200q", strings.Count(r.Diff, "\n"), r.Diff)
			}
			s.MustRun("file.managed", "{name: /f, source: new}")
			if s.Read("f") != c.new {
				t.Error("the content is not what was asked for")
			}
		})
	}
}

// TestTemplateSource: a template is executed, a plain source with braces is not.
func TestTemplateSource(t *testing.T) {
	t.Parallel()
	s := actiontest.New(t)
	s.Files["f"] = "{{ server.name }}"
	s.MustRun("file.managed", "{name: /plain, source: f}")
	s.MustRun("file.managed", "{name: /made, source: f, template: true}")
	if s.Read("plain") != "{{ server.name }}" || s.Read("made") != "n1" {
		t.Errorf("plain %q, template %q", s.Read("plain"), s.Read("made"))
	}
}

// TestLinkLeavesNothing: a link that cannot be made leaves nothing behind, and one candidate of an earlier crash is no
// obstacle.
func TestLinkLeavesNothing(t *testing.T) {
	t.Parallel()
	s := actiontest.New(t, "f d/.l.pullet 644 left by a crash")
	s.MustRun("file.symlink", "{name: /d/l, target: x}")
	found, err := os.ReadDir(s.Path("d"))
	if err != nil || len(found) != 1 || found[0].Name() != "l" {
		t.Errorf("%v %v, want the link alone", found, err)
	}
}
