package house

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestTrustPage: each test and each script that docs/trust.md names exists, and so does one for every row about who
// else writes in etcd.
func TestTrustPage(t *testing.T) {
	text, err := os.ReadFile("docs/trust.md")
	if err != nil {
		t.Fatal(err)
	}
	tests, quoted := testNames(t), regexp.MustCompile("`([^`]+)`")
	section, named := "", 0
	for _, line := range strings.Split(string(text), "\n") {
		if title, ok := strings.CutPrefix(line, "## "); ok {
			section = title
		}
		cells := strings.Split(strings.Trim(line, "| "), " | ")
		if !strings.HasPrefix(line, "| ") || section == "" || cells[len(cells)-1] == "test" || strings.HasPrefix(line, "| ---") {
			continue
		}
		last := quoted.FindAllStringSubmatch(line[strings.LastIndex(strings.TrimRight(line, "| "), " | "):], -1)
		if strings.HasSuffix(line, "| |") {
			last = nil
		}
		if len(last) == 0 && (section == "Peer node" || section == "etcd writer") {
			t.Errorf("no test is named: %s", line)
		}
		for _, name := range last {
			named++
			scripts, _ := filepath.Glob("cmd/pullet/testdata/*/" + name[1] + ".txtar") // the pattern is good
			if len(scripts) == 0 && !tests[name[1]] {
				t.Errorf("there is no test or script %s: %s", name[1], line)
			}
		}
	}
	if named < 50 {
		t.Errorf("%d tests are named: the page is read wrong", named)
	}
}

// testNames are the tests and fuzz targets of the tree.
func testNames(t *testing.T) map[string]bool {
	names, function := map[string]bool{}, regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)
	eachFile(t, func(_, text string) {
		for _, found := range function.FindAllStringSubmatch(text, -1) {
			names[found[1]] = true
		}
	}, "_test.go")
	return names
}
