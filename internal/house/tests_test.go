package house

import (
	"go/ast"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestAgentTestsAreParallel: the tests of agent wait for etcd most of their time, so each waits beside the others. What
// changes the whole process cannot.
func TestAgentTestsAreParallel(t *testing.T) {
	alone := regexp.MustCompile(`\bt\.(Chdir|Setenv)\(`)
	seen := 0
	eachTestFunc(t, func(path, body string, f *ast.FuncDecl) {
		if filepath.Dir(path) != "internal/agent" || !strings.HasPrefix(f.Name.Name, "Test") || f.Name.Name == "TestMain" {
			return
		}
		if seen++; !alone.MatchString(body) && !strings.Contains(body, "\n\tt.Parallel()\n") {
			t.Errorf("%s: %s does not call t.Parallel", path, f.Name.Name)
		}
	})
	if seen < 50 {
		t.Errorf("only %d tests in agent", seen)
	}
}

// TestTestsDoNotSkipWhatIsMissing: the first tier is the same on each machine. A test that needs a program which
// scripts/test does not install for it calls tier.Program, and a script says [!short].
func TestTestsDoNotSkipWhatIsMissing(t *testing.T) {
	skips := regexp.MustCompile(`LookPath\([^}]*\.Skip`)
	eachFile(t, func(path, text string) {
		if at := skips.FindString(text); at != "" && path != "internal/house/tests_test.go" {
			t.Errorf("%s: %s", path, at)
		}
	}, ".go")
	eachFile(t, func(path, text string) {
		if strings.Contains(text, "\n[exec:") || strings.Contains(text, "\n[!exec:") {
			t.Errorf("%s: [exec:...]", path)
		}
	}, ".txtar")
}

// TestLongProgramsAreAskedFor checks that a test file which starts a program that only scripts/test all installs leaves
// those tests to that tier: else the first tier depends on what happens to be installed.
func TestLongProgramsAreAskedFor(t *testing.T) {
	script, err := os.ReadFile("scripts/test")
	if err != nil {
		t.Fatal(err)
	}
	_, all, _ := strings.Cut(string(script), "\nneeds_all() {\n")
	all, _, _ = strings.Cut(all, "\n}\n")
	names := regexp.MustCompile(`(?m)^  need (\S+) `).FindAllStringSubmatch(all, -1)
	if len(names) < 10 {
		t.Fatalf("scripts/test names only %d programs", len(names))
	}
	for _, name := range names {
		starts := regexp.MustCompile(`exec\.Command(Context)?\(([^"()]*, |[a-z]+\.Context\(\), )?"` + regexp.QuoteMeta(name[1]) + `"`)
		eachFile(t, func(path, text string) {
			if starts.MatchString(text) && !regexp.MustCompile(`tier\.(Program|Long|Soak|Root)\(`).MatchString(text) {
				t.Errorf("%s starts %s, which the first tier does not install: call tier.Program", path, name[1])
			}
		}, "_test.go")
	}
}

// TestLongTestsAreFound: scripts/test runs the tests of a file again, without -short, where the file asks
// whether the run is short. So a helper that asks is for tests of such files.
func TestLongTestsAreFound(t *testing.T) {
	asks := regexp.MustCompile(`testing\.Short\(\)|tier\.(Long|Program)\(`) // as in scripts/test
	helpers, others := map[string][]string{}, map[string]map[string]string{}
	eachTestFunc(t, func(path, body string, f *ast.FuncDecl) {
		if asks.MatchString(body) && !strings.HasPrefix(f.Name.Name, "Test") {
			helpers[filepath.Dir(path)] = append(helpers[filepath.Dir(path)], f.Name.Name)
		}
	})
	if len(helpers) == 0 {
		t.Error("no helper asks: this test has nothing to hold")
	}
	eachFile(t, func(path, text string) {
		if dir := filepath.Dir(path); helpers[dir] != nil && !asks.MatchString(text) {
			if others[dir] == nil {
				others[dir] = map[string]string{}
			}
			others[dir][path] = text
		}
	}, "_test.go")
	for dir, names := range helpers {
		calls := regexp.MustCompile(`\b(` + strings.Join(names, "|") + `)\(`)
		for path, text := range others[dir] {
			if call := calls.FindString(text); call != "" {
				t.Errorf("%s calls %s), which leaves tests to a longer tier: scripts/test does not find this file's", path, call)
			}
		}
	}
}

// eachTestFunc shows the functions of the tree's test files, each with its text.
func eachTestFunc(t *testing.T, see func(path, body string, f *ast.FuncDecl)) {
	t.Helper()
	eachFile(t, func(path, text string) {
		s := parse(t, path, text)
		for _, decl := range s.parsed.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok {
				see(path, text[s.files.Position(f.Pos()).Offset:s.files.Position(f.End()).Offset], f)
			}
		}
	}, "_test.go")
}
