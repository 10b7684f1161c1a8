package archive_test

import (
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/apply/action/actiontest"
)

// records are the records in a directory.
func records(s *actiontest.Scene, dir string) []string {
	s.T.Helper()
	found, err := filepath.Glob(s.Path(dir) + "/.pullet-archive-*")
	if err != nil {
		s.T.Fatal(err)
	}
	return found
}

// holds compares what is below a directory, links with their targets and records left out.
func holds(s *actiontest.Scene, dir string, want map[string]string) {
	s.T.Helper()
	got := map[string]string{}
	err := filepath.WalkDir(s.Path(dir), func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasPrefix(d.Name(), ".pullet-archive-") && strings.HasSuffix(d.Name(), ".json") {
			return err
		}
		rel, err := filepath.Rel(s.Path(dir), p)
		if err != nil {
			return err
		}
		if d.Type()&fs.ModeSymlink != 0 {
			to, err := os.Readlink(p)
			got[rel] = "-> " + to
			return err
		}
		text, err := os.ReadFile(p)
		got[rel] = string(text)
		return err
	})
	if err != nil {
		s.T.Fatal(err)
	}
	if !maps.Equal(got, want) {
		s.T.Errorf("%s holds %q, want %q", dir, got, want)
	}
}

var inApp = map[string]string{"bin/run": "#!/bin/sh\n", "etc/app.conf": "port = 1\n", "etc/current": "-> ../bin/run"}

// TestExtracted: every format gives the same, with modes and times, without setuid bits, and with the agent as owner.
func TestExtracted(t *testing.T) {
	t.Parallel()
	for _, source := range []string{"app.tar", "app.tgz", "app.xz", "app.zst", "app.zip"} {
		s := actiontest.New(t)
		s.MustRun("archive.extracted", "{name: /opt/app, strip: 1, source: "+source+"}")
		holds(s, "opt/app", inApp)
		for name, want := range map[string]fs.FileMode{"bin/run": 0o755, "etc/app.conf": 0o644, "etc": 0o755 | fs.ModeDir} {
			info, err := os.Lstat(s.Path("opt/app/" + name))
			if err != nil || info.Mode() != want {
				t.Errorf("%s: %s: %v %v, want %v", source, name, info.Mode(), err, want)
			}
			if name == "etc/app.conf" && info.ModTime().Unix() != 1700000000 {
				t.Errorf("%s: %s: %s", source, name, info.ModTime())
			}
		}
	}
}

// TestExtractedModes: what is said of owners and modes holds for all; executables stay what they are.
func TestExtractedModes(t *testing.T) {
	t.Parallel()
	actiontest.NeedRoot(t)
	s := actiontest.New(t)
	s.MustRun("archive.extracted", "{name: /opt/app, strip: 1, source: app.tgz, owner: '4711', group: '4712', mode: 0640}")
	for name, want := range map[string]fs.FileMode{"bin/run": 0o750, "etc/app.conf": 0o640, "etc": 0o750 | fs.ModeDir, "etc/current": 0o777 | fs.ModeSymlink, "": 0o750 | fs.ModeDir} {
		info, err := os.Lstat(s.Path("opt/app/" + name))
		if err != nil || info.Mode() != want {
			t.Errorf("%s: %v %v, want %v", name, info.Mode(), err, want)
		}
		if uid, gid := actiontest.OwnerOf(t, s.Path("opt/app/"+name)); uid != 4711 || gid != 4712 {
			t.Errorf("%s: owner %d:%d", name, uid, gid)
		}
	}
}

// TestExtractedDrift: every kind of change by hand is found and corrected, with the record and without; a touch is
// none.
func TestExtractedDrift(t *testing.T) {
	t.Parallel()
	at := time.Unix(1700000000, 0)
	for name, drift := range map[string]func(s *actiontest.Scene) error{
		"content of the same size and time": func(s *actiontest.Scene) error {
			return errors.Join(os.WriteFile(s.Path("opt/app/etc/app.conf"), []byte("port = 2\n"), 0o644), os.Chtimes(s.Path("opt/app/etc/app.conf"), at, at))
		},
		"shorter": func(s *actiontest.Scene) error { return os.Truncate(s.Path("opt/app/bin/run"), 3) },
		"missing": func(s *actiontest.Scene) error { return os.Remove(s.Path("opt/app/bin/run")) },
		"mode":    func(s *actiontest.Scene) error { return os.Chmod(s.Path("opt/app/bin/run"), 0o700) },
		"target": func(s *actiontest.Scene) error {
			return errors.Join(os.Remove(s.Path("opt/app/etc/current")), os.Symlink("/bin/sh", s.Path("opt/app/etc/current")))
		},
		"directory": func(s *actiontest.Scene) error { return os.RemoveAll(s.Path("opt/app/etc")) },
		"all":       func(s *actiontest.Scene) error { return os.RemoveAll(s.Path("opt/app")) },
		"a link": func(s *actiontest.Scene) error {
			return errors.Join(os.Remove(s.Path("opt/app/bin/run")), os.Symlink("x", s.Path("opt/app/bin/run")))
		},
		"not executed": func(s *actiontest.Scene) error { return os.Chmod(s.Path("opt/app/bin/run"), 0o644) },
	} {
		for _, keep := range []bool{true, false} {
			t.Run(name, func(t *testing.T) {
				s := actiontest.New(t)
				p := s.MustBind("archive.extracted", "{name: /opt/app, strip: 1, source: app.tgz}")
				s.Run(p)
				if err := drift(s); err != nil {
					t.Fatal(err)
				}
				for _, r := range records(s, "opt/app") {
					if !keep {
						if err := os.Remove(r); err != nil {
							t.Fatal(err)
						}
					}
				}
				if r := s.Run(p); r.Outcome != apply.Changed {
					t.Errorf("%s %s %s", r.Outcome, r.Summary, r.Reason)
				}
				holds(s, "opt/app", inApp)
				if r := s.Plan(p); r.Outcome != apply.OK {
					t.Errorf("then: %s %s %s", r.Outcome, r.Summary, r.Diff)
				}
			})
		}
	}
	s := actiontest.New(t)
	p := s.MustBind("archive.extracted", "{name: /opt/app, strip: 1, source: app.tgz}")
	s.Run(p)
	if err := os.Chtimes(s.Path("opt/app/bin/run"), at, time.Now()); err != nil {
		t.Fatal(err)
	}
	if r := s.Plan(p); r.Outcome != apply.OK {
		t.Errorf("a touch: %s %s", r.Outcome, r.Diff)
	}
}

// TestModeNeedsNoArchive: an owner or a mode is corrected without the archive, which may be gone.
func TestModeNeedsNoArchive(t *testing.T) {
	t.Parallel()
	s := actiontest.New(t)
	s.Plant("f tmp/app.tgz 644 " + s.Files["app.tgz"])
	p := s.MustBind("archive.extracted", "{name: /opt/app, strip: 1, source: /tmp/app.tgz}")
	s.Run(p)
	for _, err := range []error{os.Remove(s.Path("tmp/app.tgz")), os.Chmod(s.Path("opt/app/bin/run"), 0o700)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if r := s.Run(p); r.Outcome != apply.Changed || r.Diff != "/opt/app/bin/run: mode 0700 -> 0755\n" {
		t.Errorf("%s %s %q", r.Outcome, r.Reason, r.Diff)
	}
	if err := os.Remove(s.Path("opt/app/bin/run")); err != nil {
		t.Fatal(err)
	}
	if r := s.Run(p); r.Outcome != apply.Failed || r.Reason != "there is no archive /tmp/app.tgz on this host" {
		t.Errorf("%s %s", r.Outcome, r.Reason)
	}
}

// TestNewArchive: what an older archive of the step brought goes with it, unless somebody changed it; what others put
// there stays.
func TestNewArchive(t *testing.T) {
	t.Parallel()
	s := actiontest.New(t, "f tmp/a.tar 644 "+actiontest.Tarball(actiontest.Packed{"f", "lib/v1.so", "1"}, actiontest.Packed{"f", "old/deep/x", "x"}, actiontest.Packed{"f", "conf", "default"}, actiontest.Packed{"l", "current", "lib/v1.so"}, actiontest.Packed{"f", "both", "1"}))
	p := s.MustBind("archive.extracted", "{name: /opt, source: /tmp/a.tar}")
	s.Run(p)
	s.Plant("f opt/mine 644 mine")
	s.Plant("f opt/lib/mine 644 mine")
	for name, text := range map[string]string{"opt/conf": "edited", "tmp/a.tar": actiontest.Tarball(actiontest.Packed{"f", "lib/v2.so", "2"}, actiontest.Packed{"f", "both", "2"})} {
		if err := os.WriteFile(s.Path(name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	r := s.Run(p)
	if r.Summary != "extract: create 1, change 1, remove 5" {
		t.Errorf("%s %s\n%s", r.Summary, r.Reason, r.Diff)
	}
	holds(s, "opt", map[string]string{"lib/v2.so": "2", "both": "2", "mine": "mine", "lib/mine": "mine", "conf": "edited"})
	if exists(s.Path("opt/old")) {
		t.Error("an empty directory is left")
	}
	if r := s.Plan(p); r.Outcome != apply.OK || len(records(s, "opt")) != 1 {
		t.Errorf("then: %s %s, records %q", r.Outcome, r.Diff, records(s, "opt"))
	}
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// TestCutOff: a run that was killed in the middle leaves files, files under their other names, and no record, or the
// one before; the next run makes it whole.
func TestCutOff(t *testing.T) {
	t.Parallel()
	s := actiontest.New(t)
	p := s.MustBind("archive.extracted", "{name: /opt/app, strip: 1, source: app.tgz}")
	s.Run(p)
	old := records(s, "opt/app")[0]
	s.Files["app.tgz"] = actiontest.Gzipped(actiontest.Tarball(append(actiontest.App, actiontest.Packed{"f", "app/etc/more", "more"}, actiontest.Packed{"f", "app/bin/run", "#!/bin/bash\n"})...))
	p = s.MustBind("archive.extracted", "{name: /opt/app, strip: 1, source: app.tgz}")
	s.Plant("f opt/app/etc/more 600 mo") // cut off
	s.Run(p)
	if !slices.Contains(records(s, "opt/app"), old) {
		t.Error("the record has another name")
	}
	want := maps.Clone(inApp)
	want["etc/more"], want["bin/run"] = "more", "#!/bin/bash\n"
	holds(s, "opt/app", want)
	// A file that was being written has the same other name in every run.
	for _, r := range records(s, "opt/app") {
		if err := os.Remove(r); err != nil {
			t.Fatal(err)
		}
	}
	s.Plant("f opt/app/etc/.pullet-archive-new-" + actiontest.SumOf("more")[7:19] + " 600 mo")
	if err := os.Remove(s.Path("opt/app/etc/more")); err != nil {
		t.Fatal(err)
	}
	s.Run(p)
	holds(s, "opt/app", want)
}

// TestForgedRecord: the directory may belong to somebody else. A record that is not the agent's own, or leads out, is
// none.
func TestForgedRecord(t *testing.T) {
	t.Parallel()
	actiontest.NeedRoot(t)
	s := actiontest.New(t, "f opt/precious 644 mine")
	p := s.MustBind("archive.extracted", "{name: /opt/app, strip: 1, source: app.tgz}")
	s.Run(p)
	at := records(s, "opt/app")[0]
	whole, err := os.ReadFile(at)
	if err != nil {
		t.Fatal(err)
	}
	var r map[string]any
	if err := json.Unmarshal(whole, &r); err != nil {
		t.Fatal(err)
	}
	r["archive"] = actiontest.NoSum
	r["entries"] = []any{map[string]any{"path": "../precious", "kind": "file", "size": 4, "sum": actiontest.SumOf("mine")}}
	out, bad := json.Marshal(r)
	r["entries"] = []any{}
	r["archive"] = actiontest.SumOf(s.Files["app.tgz"])
	empty, err := json.Marshal(r)
	if err != nil || bad != nil {
		t.Fatal(err, bad)
	}
	for name, forge := range map[string]func() error{
		"leads out": func() error { return os.WriteFile(at, out, 0o600) },
		"damaged":   func() error { return os.WriteFile(at, whole[:100], 0o600) },
		"of another": func() error {
			return errors.Join(os.WriteFile(at, empty, 0o600), os.Chown(at, 4711, 0))
		},
		"written by others": func() error { return errors.Join(os.WriteFile(at, empty, 0o600), os.Chmod(at, 0o666)) },
		"a link": func() error {
			return errors.Join(os.Remove(at), os.WriteFile(s.Path("opt/empty"), empty, 0o600), os.Symlink("../empty", at))
		},
	} {
		if err := errors.Join(forge(), os.RemoveAll(s.Path("opt/app/bin"))); err != nil {
			t.Fatal(err)
		}
		if r := s.Run(p); r.Outcome != apply.Changed || !exists(s.Path("opt/app/bin/run")) {
			t.Errorf("%s: %s %s", name, r.Outcome, r.Reason)
		}
		if s.Read("opt/precious") != "mine" {
			t.Fatalf("%s: it led out", name)
		}
	}
}

// TestRefusedBefore: an archive with one bad entry at its end leaves nothing at all.
func TestRefusedBefore(t *testing.T) {
	t.Parallel()
	s := actiontest.New(t)
	s.Files["bad"] = actiontest.Tarball(actiontest.Packed{"f", "good", "x"}, actiontest.Packed{"d", "dir", ""}, actiontest.Packed{"f", "../bad", "x"})
	if r := s.Run(s.MustBind("archive.extracted", "{name: /opt/app, source: bad}")); r.Outcome != apply.Failed || exists(s.Path("opt")) {
		t.Errorf("%s %s, /opt is there: %v", r.Outcome, r.Reason, exists(s.Path("opt")))
	}
}
