package main

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
)

// TestServicesPage: docs/services.md shows the files that services_page.txtar runs, and commands that it runs.
func TestServicesPage(t *testing.T) {
	page, err := os.ReadFile("../../docs/services.md")
	if err != nil {
		t.Fatal(err)
	}
	script, err := txtar.ParseFile("testdata/script/services_page.txtar")
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for _, f := range script.Files {
		files[f.Name] = string(f.Data)
	}
	shown := regexp.MustCompile("(?s)```yaml\n# (\\S+)\n(.*?)```").FindAllStringSubmatch(string(page), -1)
	if len(shown) < 5 {
		t.Errorf("%d files on the page", len(shown))
	}
	for _, m := range shown {
		if files["repo/"+m[1]] != m[2] {
			t.Errorf("%s is not what the script runs:\n%s", m[1], m[2])
		}
	}
	commands := regexp.MustCompile("(?s)```sh\n(.*?)```").FindStringSubmatch(string(page))
	for line := range strings.Lines(commands[1]) {
		if !strings.Contains(string(script.Comment), " "+line) {
			t.Errorf("the script does not run %q", line)
		}
	}
}
