package archive_test

import (
	"maps"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/apply/action/actiontest"
)

// drawnArchive draws a version of an archive: few names, each a file, a directory or a link, so that versions have
// different kinds of things at the same path.
func drawnArchive(random *rand.Rand) []actiontest.Packed {
	kinds := map[string]string{".": "d"}
	var out []actiontest.Packed
	for range 8 {
		at := strings.Join([]string{"a", "b", "c"}[:1+random.IntN(3)], "/")
		at = path.Join(path.Dir(at), []string{"a", "b", "c", "d"}[random.IntN(4)])
		if _, known := kinds[at]; known || kinds[path.Dir(at)] != "d" {
			continue
		}
		kind := []string{"f", "d", "l"}[random.IntN(3)]
		text := map[string]string{"f": []string{"one", "two"}[random.IntN(2)], "l": []string{"a", "b/c", "gone"}[random.IntN(3)]}[kind]
		kinds[at], out = kind, append(out, actiontest.Packed{kind, at, text})
	}
	return append(out, actiontest.Packed{"f", "version", "x"})
}

// names are the paths below a directory, without the record.
func names(s *actiontest.Scene, dir string) []string {
	s.T.Helper()
	var out []string
	for at := range actiontest.Tree(s.T, s.Path(dir)) {
		if rel, err := filepath.Rel(s.Path(dir), at); err == nil && rel != "." && !strings.HasPrefix(rel, ".pullet-archive-") {
			out = append(out, rel)
		}
	}
	slices.Sort(out)
	return out
}

// TestVersionsOfAnArchive extracts versions over one another, whatever kinds of things they have at a path, and also
// where a run was cut off when it had removed some of the old one. The directory then holds what a new directory would
// hold. A file of somebody else stays, or the step fails and nothing is lost.
func TestVersionsOfAnArchive(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(39, 4))
	extract := func(s *actiontest.Scene, version []actiontest.Packed) *apply.StepReport {
		s.Files["v"] = actiontest.Tarball(version...)
		return s.Run(s.MustBind("archive.extracted", "{name: /opt, source: v}"))
	}
	for i := range 10 {
		s := actiontest.New(t)
		extract(s, drawnArchive(random))
		for step := range 4 {
			if step == 2 {
				for _, rel := range names(s, "opt") {
					if random.IntN(3) == 0 {
						_ = os.Remove(s.Path("opt/" + rel)) // but not a directory with something in it
					}
				}
			}
			version := drawnArchive(random)
			fresh := actiontest.New(t)
			extract(fresh, version)
			if r := extract(s, version); r.Outcome == apply.Failed {
				t.Fatalf("%d: %q fails: %s", i, version, r.Reason)
			}
			if have, want := names(s, "opt"), names(fresh, "opt"); !slices.Equal(have, want) {
				t.Fatalf("%d: %q: there is %q, want %q", i, version, have, want)
			}
			if r := s.Plan(s.MustBind("archive.extracted", "{name: /opt, source: v}")); r.Outcome != apply.OK {
				t.Fatalf("%d: %q: a second plan: %s %q", i, version, r.Outcome, r.Diff)
			}
		}
		theirs := foreignFiles(s, random)
		r := extract(s, drawnArchive(random))
		for name, text := range theirs {
			if have, err := os.ReadFile(name); err != nil || string(have) != text {
				t.Fatalf("%d: %s of somebody else: %q %v (%s %s)", i, name, have, err, r.Outcome, r.Reason)
			}
		}
	}
}

// foreignFiles puts a file into some of the directories, and returns their contents.
func foreignFiles(s *actiontest.Scene, random *rand.Rand) map[string]string {
	out := map[string]string{}
	for _, rel := range names(s, "opt") {
		at := s.Path("opt/" + rel)
		if info, err := os.Lstat(at); err != nil || !info.IsDir() || random.IntN(2) == 0 {
			continue
		}
		s.Plant("f opt/" + rel + "/mine 644 mine")
		maps.Copy(out, map[string]string{at + "/mine": "mine"})
	}
	return out
}
