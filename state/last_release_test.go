package state

import (
	"flag"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/pullet/pullet/internal/tier"
)

var updateLast = flag.Bool("update-last", false, "write the kinds of records of the last release")

// kindsOfLast is the file with the kinds of records of the last release, so that a source tree without its history has
// them too.
const kindsOfLast = "testdata/kinds-of-last-release"

// TestKindsOfLastRelease: hosts with the last release and with this one share a record. So this one has the same kinds
// of records: one that the last release does not know it takes for foreign. A new kind has its minimum in minimumOf:
// this release's format.
func TestKindsOfLastRelease(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(kindsOfLast)
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for shape := range strings.FieldsSeq(string(text)) {
		known[shape] = true
	}
	for _, k := range kinds {
		if !known[k.shape] && minimumOf[k.shape] != Format {
			t.Errorf("the last release does not know records %s: their minimum is not %d", k.shape, Format)
		}
		delete(known, k.shape)
	}
	for shape := range known {
		t.Errorf("this release does not know records %s of the last one", shape)
	}
}

// TestKindsFileOfLastRelease holds the file against the source of the last release.
func TestKindsFileOfLastRelease(t *testing.T) {
	tier.Long(t, "reads the history of the source")
	rev, err := exec.Command("../scripts/last-release").Output()
	if err != nil {
		t.Fatal(err)
	}
	source, err := exec.Command("git", "show", strings.TrimSpace(string(rev))+":state/kinds.go").Output()
	if err != nil {
		t.Skip("needs the history of the source: git fetch --unshallow")
	}
	var shapes []string
	for _, row := range regexp.MustCompile(`(?m)^\t(?:\{|\t)"([A-Za-z_/]+)",`).FindAllStringSubmatch(string(source), -1) {
		shapes = append(shapes, row[1])
	}
	slices.Sort(shapes)
	want := strings.Join(shapes, "\n") + "\n"
	if *updateLast {
		if err := os.WriteFile(kindsOfLast, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(kindsOfLast); err != nil || string(got) != want {
		t.Errorf("%s is not that of the last release (%v): go test ./state -run TestKindsFileOfLastRelease -update-last", kindsOfLast, err)
	}
}
