package action_test

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
)

// records are the records in a directory.
func (s *scene) records(dir string) []string {
	s.t.Helper()
	found, err := filepath.Glob(s.path(dir) + "/.pullet-archive-*")
	if err != nil {
		s.t.Fatal(err)
	}
	return found
}

// holds compares what is below a directory, links with their targets and records left out.
func (s *scene) holds(dir string, want map[string]string) {
	s.t.Helper()
	got := map[string]string{}
	err := filepath.WalkDir(s.path(dir), func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasPrefix(d.Name(), ".pullet-archive-") && strings.HasSuffix(d.Name(), ".json") {
			return err
		}
		rel, err := filepath.Rel(s.path(dir), p)
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
		s.t.Fatal(err)
	}
	if !maps.Equal(got, want) {
		s.t.Errorf("%s holds %q, want %q", dir, got, want)
	}
}

var inApp = map[string]string{"bin/run": "#!/bin/sh\n", "etc/app.conf": "port = 1\n", "etc/current": "-> ../bin/run"}

// TestExtracted: every format gives the same, with modes and times, without setuid bits, and with the agent as owner.
func TestExtracted(t *testing.T) {
	for _, source := range []string{"app.tar", "app.tgz", "app.xz", "app.zst", "app.zip"} {
		s := newScene(t)
		s.mustRun("archive.extracted", "{name: /opt/app, strip: 1, source: "+source+"}")
		s.holds("opt/app", inApp)
		for name, want := range map[string]fs.FileMode{"bin/run": 0o755, "etc/app.conf": 0o644, "etc": 0o755 | fs.ModeDir} {
			info, err := os.Lstat(s.path("opt/app/" + name))
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
	needRoot(t)
	s := newScene(t)
	s.mustRun("archive.extracted", "{name: /opt/app, strip: 1, source: app.tgz, owner: '4711', group: '4712', mode: 0640}")
	for name, want := range map[string]fs.FileMode{"bin/run": 0o750, "etc/app.conf": 0o640, "etc": 0o750 | fs.ModeDir, "etc/current": 0o777 | fs.ModeSymlink, "": 0o750 | fs.ModeDir} {
		info, err := os.Lstat(s.path("opt/app/" + name))
		if err != nil || info.Mode() != want {
			t.Errorf("%s: %v %v, want %v", name, info.Mode(), err, want)
		}
		if uid, gid := ownerOf(t, s.path("opt/app/"+name)); uid != 4711 || gid != 4712 {
			t.Errorf("%s: owner %d:%d", name, uid, gid)
		}
	}
}

// TestExtractedDrift: every kind of change by hand is found and corrected, with the record and without; a touch is
// none.
func TestExtractedDrift(t *testing.T) {
	at := time.Unix(1700000000, 0)
	for name, drift := range map[string]func(s *scene) error{
		"content of the same size and time": func(s *scene) error {
			return errors.Join(os.WriteFile(s.path("opt/app/etc/app.conf"), []byte("port = 2\n"), 0o644), os.Chtimes(s.path("opt/app/etc/app.conf"), at, at))
		},
		"shorter": func(s *scene) error { return os.Truncate(s.path("opt/app/bin/run"), 3) },
		"missing": func(s *scene) error { return os.Remove(s.path("opt/app/bin/run")) },
		"mode":    func(s *scene) error { return os.Chmod(s.path("opt/app/bin/run"), 0o700) },
		"target": func(s *scene) error {
			return errors.Join(os.Remove(s.path("opt/app/etc/current")), os.Symlink("/bin/sh", s.path("opt/app/etc/current")))
		},
		"directory": func(s *scene) error { return os.RemoveAll(s.path("opt/app/etc")) },
		"all":       func(s *scene) error { return os.RemoveAll(s.path("opt/app")) },
		"a link": func(s *scene) error {
			return errors.Join(os.Remove(s.path("opt/app/bin/run")), os.Symlink("x", s.path("opt/app/bin/run")))
		},
		"not executed": func(s *scene) error { return os.Chmod(s.path("opt/app/bin/run"), 0o644) },
	} {
		for _, keep := range []bool{true, false} {
			t.Run(name, func(t *testing.T) {
				s := newScene(t)
				p := s.mustBind("archive.extracted", "{name: /opt/app, strip: 1, source: app.tgz}")
				s.run(p)
				if err := drift(s); err != nil {
					t.Fatal(err)
				}
				for _, r := range s.records("opt/app") {
					if !keep {
						if err := os.Remove(r); err != nil {
							t.Fatal(err)
						}
					}
				}
				if r := s.run(p); r.Outcome != apply.Changed {
					t.Errorf("%s %s %s", r.Outcome, r.Summary, r.Reason)
				}
				s.holds("opt/app", inApp)
				if r := s.plan(p); r.Outcome != apply.OK {
					t.Errorf("then: %s %s %s", r.Outcome, r.Summary, r.Diff)
				}
			})
		}
	}
	s := newScene(t)
	p := s.mustBind("archive.extracted", "{name: /opt/app, strip: 1, source: app.tgz}")
	s.run(p)
	if err := os.Chtimes(s.path("opt/app/bin/run"), at, time.Now()); err != nil {
		t.Fatal(err)
	}
	if r := s.plan(p); r.Outcome != apply.OK {
		t.Errorf("a touch: %s %s", r.Outcome, r.Diff)
	}
}

// TestModeNeedsNoArchive: an owner or a mode is corrected without the archive, which may be gone.
func TestModeNeedsNoArchive(t *testing.T) {
	s := newScene(t, "f tmp/app.tgz 644 "+repository["app.tgz"])
	p := s.mustBind("archive.extracted", "{name: /opt/app, strip: 1, source: /tmp/app.tgz}")
	s.run(p)
	for _, err := range []error{os.Remove(s.path("tmp/app.tgz")), os.Chmod(s.path("opt/app/bin/run"), 0o700)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if r := s.run(p); r.Outcome != apply.Changed || r.Diff != "/opt/app/bin/run: mode 0700 -> 0755\n" {
		t.Errorf("%s %s %q", r.Outcome, r.Reason, r.Diff)
	}
	if err := os.Remove(s.path("opt/app/bin/run")); err != nil {
		t.Fatal(err)
	}
	if r := s.run(p); r.Outcome != apply.Failed || r.Reason != "there is no archive /tmp/app.tgz on this host" {
		t.Errorf("%s %s", r.Outcome, r.Reason)
	}
}

// TestNewArchive: what an older archive of the step brought goes with it, unless somebody changed it; what others put
// there stays.
func TestNewArchive(t *testing.T) {
	s := newScene(t, "f tmp/a.tar 644 "+tarball(packed{"f", "lib/v1.so", "1"}, packed{"f", "old/deep/x", "x"}, packed{"f", "conf", "default"}, packed{"l", "current", "lib/v1.so"}, packed{"f", "both", "1"}))
	p := s.mustBind("archive.extracted", "{name: /opt, source: /tmp/a.tar}")
	s.run(p)
	s.plant("f opt/mine 644 mine")
	s.plant("f opt/lib/mine 644 mine")
	for name, text := range map[string]string{"opt/conf": "edited", "tmp/a.tar": tarball(packed{"f", "lib/v2.so", "2"}, packed{"f", "both", "2"})} {
		if err := os.WriteFile(s.path(name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	r := s.run(p)
	if r.Summary != "extract: create 1, change 1, remove 5" {
		t.Errorf("%s %s\n%s", r.Summary, r.Reason, r.Diff)
	}
	s.holds("opt", map[string]string{"lib/v2.so": "2", "both": "2", "mine": "mine", "lib/mine": "mine", "conf": "edited"})
	if exists(s.path("opt/old")) {
		t.Error("an empty directory is left")
	}
	if r := s.plan(p); r.Outcome != apply.OK || len(s.records("opt")) != 1 {
		t.Errorf("then: %s %s, records %q", r.Outcome, r.Diff, s.records("opt"))
	}
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// TestCutOff: a run that was killed in the middle leaves files, files under their other names, and no record, or the
// one before; the next run makes it whole.
func TestCutOff(t *testing.T) {
	s := newScene(t)
	p := s.mustBind("archive.extracted", "{name: /opt/app, strip: 1, source: app.tgz}")
	s.run(p)
	old := s.records("opt/app")[0]
	s.files["app.tgz"] = gzipped(tarball(append(app, packed{"f", "app/etc/more", "more"}, packed{"f", "app/bin/run", "#!/bin/bash\n"})...))
	p = s.mustBind("archive.extracted", "{name: /opt/app, strip: 1, source: app.tgz}")
	s.plant("f opt/app/etc/more 600 mo") // cut off
	s.run(p)
	if !slices.Contains(s.records("opt/app"), old) {
		t.Error("the record has another name")
	}
	want := maps.Clone(inApp)
	want["etc/more"], want["bin/run"] = "more", "#!/bin/bash\n"
	s.holds("opt/app", want)
	// A file that was being written has the same other name in every run.
	for _, r := range s.records("opt/app") {
		if err := os.Remove(r); err != nil {
			t.Fatal(err)
		}
	}
	s.plant("f opt/app/etc/.pullet-archive-new-" + sumOf("more")[7:19] + " 600 mo")
	if err := os.Remove(s.path("opt/app/etc/more")); err != nil {
		t.Fatal(err)
	}
	s.run(p)
	s.holds("opt/app", want)
}

// TestForgedRecord: the directory may belong to somebody else. A record that is not the agent's own, or leads out, is
// none.
func TestForgedRecord(t *testing.T) {
	needRoot(t)
	s := newScene(t, "f opt/precious 644 mine")
	p := s.mustBind("archive.extracted", "{name: /opt/app, strip: 1, source: app.tgz}")
	s.run(p)
	at := s.records("opt/app")[0]
	whole, err := os.ReadFile(at)
	if err != nil {
		t.Fatal(err)
	}
	var r map[string]any
	if err := json.Unmarshal(whole, &r); err != nil {
		t.Fatal(err)
	}
	r["archive"] = noSum
	r["entries"] = []any{map[string]any{"path": "../precious", "kind": "file", "size": 4, "sum": sumOf("mine")}}
	out := must(json.Marshal(r))
	r["entries"] = []any{}
	r["archive"] = sumOf(repository["app.tgz"])
	empty := must(json.Marshal(r))
	for name, forge := range map[string]func() error{
		"leads out": func() error { return os.WriteFile(at, out, 0o600) },
		"damaged":   func() error { return os.WriteFile(at, whole[:100], 0o600) },
		"of another": func() error {
			return errors.Join(os.WriteFile(at, empty, 0o600), os.Chown(at, 4711, 0))
		},
		"written by others": func() error { return errors.Join(os.WriteFile(at, empty, 0o600), os.Chmod(at, 0o666)) },
		"a link": func() error {
			return errors.Join(os.Remove(at), os.WriteFile(s.path("opt/empty"), empty, 0o600), os.Symlink("../empty", at))
		},
	} {
		if err := errors.Join(forge(), os.RemoveAll(s.path("opt/app/bin"))); err != nil {
			t.Fatal(err)
		}
		if r := s.run(p); r.Outcome != apply.Changed || !exists(s.path("opt/app/bin/run")) {
			t.Errorf("%s: %s %s", name, r.Outcome, r.Reason)
		}
		if s.read("opt/precious") != "mine" {
			t.Fatalf("%s: it led out", name)
		}
	}
}

// TestRefusedBefore: an archive with one bad entry at its end leaves nothing at all.
func TestRefusedBefore(t *testing.T) {
	s := newScene(t)
	s.files["bad"] = tarball(packed{"f", "good", "x"}, packed{"d", "dir", ""}, packed{"f", "../bad", "x"})
	if r := s.run(s.mustBind("archive.extracted", "{name: /opt/app, source: bad}")); r.Outcome != apply.Failed || exists(s.path("opt")) {
		t.Errorf("%s %s, /opt is there: %v", r.Outcome, r.Reason, exists(s.path("opt")))
	}
}
