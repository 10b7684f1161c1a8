package house

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestDependencies: docs/dev/dependencies.md gives a reason for each module that go.mod requires directly, and for no
// other.
func TestDependencies(t *testing.T) {
	file, err := os.ReadFile("go.mod")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("docs/dev/dependencies.md")
	if err != nil {
		t.Fatal(err)
	}
	var required, explained []string
	for _, m := range regexp.MustCompile(`(?m)^\t(\S+) v\d\S+(.*)$`).FindAllStringSubmatch(string(file), -1) {
		if !strings.Contains(m[2], "// indirect") {
			required = append(required, m[1])
		}
	}
	for _, row := range regexp.MustCompile("(?m)^\\| (`[^|]*) \\| .+ \\|$").FindAllStringSubmatch(string(page), -1) {
		for _, m := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(row[1], -1) {
			explained = append(explained, m[1])
		}
	}
	if len(required) < 20 {
		t.Fatalf("go.mod requires %q", required)
	}
	for _, m := range required {
		if !slices.Contains(explained, m) {
			t.Errorf("docs/dev/dependencies.md gives no reason for %s", m)
		}
	}
	for _, m := range explained {
		if !slices.Contains(required, m) {
			t.Errorf("docs/dev/dependencies.md: go.mod does not require %s", m)
		}
	}
}
