package main

import (
	"os"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"
)

// TestCIPage checks that the files in docs/ci.md are YAML, and that ci_page.txtar has them and runs their commands.
func TestCIPage(t *testing.T) {
	pageRuns(t, "ci.md", 3, "script/ci_page.txtar")
	page, err := os.ReadFile("../../docs/ci.md")
	if err != nil {
		t.Fatal(err)
	}
	script, err := os.ReadFile("testdata/script/ci_page.txtar")
	if err != nil {
		t.Fatal(err)
	}
	commands, _, _ := strings.Cut(string(script), "\n-- ")
	_, wait, _ := strings.Cut(string(script), "\n-- wait.sh --\n")
	type job struct {
		Steps  []struct{ Run string } // of GitHub
		Script []string               // of GitLab
	}
	waits, checks := 0, 0
	for _, block := range strings.Split(string(page), "```yaml\n")[1:] {
		block, _, _ = strings.Cut(block, "```")
		var file struct {
			Jobs           map[string]job
			Validate, Wait job
		}
		if err := yaml.Unmarshal([]byte(block), &file); err != nil {
			t.Errorf("%v in\n%s", err, block)
		}
		var run []string
		for _, j := range []job{file.Validate, file.Wait, file.Jobs["validate"], file.Jobs["wait"]} {
			run = append(run, j.Script...)
			for _, step := range j.Steps {
				run = append(run, step.Run)
			}
		}
		for _, text := range run {
			if text == wait {
				waits++
			} else if strings.HasPrefix(text, "pullet ") && strings.Contains(commands, " "+text+"\n") {
				checks++
			} else if text != "" && !strings.HasPrefix(text, "go install ") {
				t.Errorf("the script does not run %q", text)
			}
		}
	}
	if waits != 2 || checks != 2 {
		t.Errorf("%d jobs run wait.sh and %d run validate, expected 2 and 2", waits, checks)
	}
}
