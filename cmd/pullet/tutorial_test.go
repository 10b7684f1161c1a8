package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestTutorial runs docs/tutorial.md as it is written, in one shell with a new home. Each block of commands prints the
// block of text after it, or nothing if there is none. A line "…" stands for any output. Only the build is left out.
func TestTutorial(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/tutorial.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?ms)^```sh\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?").FindAllStringSubmatch(string(page), -1)
	if len(blocks) < 12 || strings.Count(string(page), "```text\n") < 9 {
		t.Fatalf("the page has only %d blocks of commands", len(blocks))
	}
	const end = "=== end of block ===\n"
	var script strings.Builder
	script.WriteString("go() { test \"${!#}\" = ./cmd/pullet; }\n")
	for _, block := range blocks {
		script.WriteString(block[1] + "echo " + end)
	}

	home := t.TempDir()
	shell := exec.Command("bash", "-c", script.String())
	shell.Dir = home
	shell.Env = []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "LANG=C.UTF-8", "GIT_CONFIG_NOSYSTEM=1"}
	out, err := shell.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	printed := strings.Split(string(out), end)
	if len(printed) != len(blocks)+1 {
		t.Fatalf("%d blocks printed\n%s", len(printed)-1, out)
	}
	for i, block := range blocks {
		if !shows(block[2], printed[i]) {
			t.Errorf("the commands\n%sprinted\n%sand the page shows\n%s", block[1], printed[i], block[2])
		}
	}
	if left, err := filepath.Glob(home + "/*"); err != nil || len(left) > 0 {
		t.Errorf("the page leaves %q: %v", left, err)
	}
}

// shows reports whether a page shows an output, apart from commits, durations and the width of the terminal.
func shows(page, output string) bool {
	changing := regexp.MustCompile(`\b([0-9a-f]{8}|\d+(\.\d+)?m?s)\b`)
	plain := func(text string) string {
		return strings.Join(strings.Fields(changing.ReplaceAllString(text, "*")), " ")
	}
	want := strings.ReplaceAll(regexp.QuoteMeta(plain(page)), " … ", ".*")
	return regexp.MustCompile("^" + want + "$").MatchString(plain(output))
}
