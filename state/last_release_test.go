package state

import (
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// TestKindsOfLastRelease: hosts with the last release and with this one share a record. So this one has the same kinds
// of records: one that the last release does not know it takes for foreign. A new kind has its minimum in minimumOf:
// this release's format.
func TestKindsOfLastRelease(t *testing.T) {
	t.Parallel()
	rev, err := exec.Command("../scripts/last-release").Output()
	if err != nil {
		t.Fatal(err)
	}
	source, err := exec.Command("git", "show", strings.TrimSpace(string(rev))+":state/kinds.go").Output()
	if err != nil {
		t.Fatalf("the source of the last release cannot be read (with a shallow clone: git fetch --unshallow): %v", err)
	}
	known := map[string]bool{}
	for _, row := range regexp.MustCompile(`(?m)^\t(?:\{|\t)"([A-Za-z_/]+)",`).FindAllStringSubmatch(string(source), -1) {
		known[row[1]] = true
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
