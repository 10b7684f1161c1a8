package main

import (
	"context"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

const source = `package p

func f(a, b int, ok bool, g func() error) (int, error) {
	if ok && a < 1 {
		println("x")
	}
	for i := 0; i < b-1; i++ {
		println(i)
	}
	switch {
	case !ok:
		return 0, nil
	}
	h := func() error { return g() }
	if err := h(); err != nil {
		return 0, err
	}
	return f(a, b, ok, g)
}
`

// TestMutants: what each kind does to a function. Every mutant of it compiles.
func TestMutants(t *testing.T) {
	found, err := mutants("p.go", []byte(source), 1)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range found {
		line := strings.TrimSpace(strings.Split(m.text, "\n")[m.line-1])
		got = append(got, m.kind+" | "+line)
		compiles(t, m.text)
	}
	want := []string{
		"condition negated | if !(ok && a < 1) {",
		"condition dropped | if false && (ok && a < 1) {",
		"left side dropped | if (true || ok) && a < 1 {",
		"right side dropped | if ok && (true || a < 1) {",
		"condition negated | if ok && a >= 1 {",
		"edge moved | if ok && a <= 1 {",
		`call skipped | if false { println("x") }`,
		"condition negated | for i := 0; i >= b-1; i++ {",
		"edge moved | for i := 0; i <= b-1; i++ {",
		"off by one | for i := 0; i < b-2; i++ {",
		"call skipped | if false { println(i) }",
		"condition negated | case !(!ok):",
		"condition dropped | case false && (!ok):",
		"error swallowed | h := func() error { _ = g(); return nil }",
		"condition dropped | if err := h(); false && (err != nil) {",
		"condition negated | if err := h(); err == nil {",
		"error swallowed | _ = err; return 0, nil",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got:\n%s", strings.Join(got, "\n"))
	}
}

func compiles(t *testing.T, text string) {
	t.Helper()
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, "p.go", text, 0)
	if err != nil {
		t.Fatalf("%v:\n%s", err, text)
	}
	config := types.Config{Importer: importer.Default()}
	if _, err := config.Check("p", set, []*ast.File{file}, nil); err != nil {
		t.Errorf("%v:\n%s", err, text)
	}
}

// TestSampleStays: a change elsewhere in a file leaves the order of its mutants as it is; another seed changes it.
func TestSampleStays(t *testing.T) {
	order := func(text string, seed int) (out []string) {
		found, err := mutants("p.go", []byte(text), seed)
		if err != nil {
			t.Fatal(err)
		}
		slices.SortFunc(found, func(a, b *mutant) int { return strings.Compare(a.rank, b.rank) })
		for _, m := range found {
			out = append(out, m.kind+m.old)
		}
		return out
	}
	first := order(source, 1)
	moved := order(strings.Replace(source, "func f", "// f is new here.\n\nvar x = 1\n\nfunc f", 1), 1)
	if !slices.Equal(first, moved) {
		t.Errorf("%q became %q", first, moved)
	}
	if other := order(source, 2); slices.Equal(first, other) {
		t.Errorf("seeds 1 and 2 have the same order: %q", other)
	}
}

// small makes a module of files the working directory.
func small(t *testing.T, files map[string]string) {
	t.Helper()
	dir := t.TempDir()
	files["go.mod"] = "module small\n\ngo 1.26\n"
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
}

const less = "package p\n\nfunc Less(a, b int) bool { return a < b }\n"

// TestKiller builds and tests mutants of a small module: one that its test finds, one that it does not, and one that is
// no program.
func TestKiller(t *testing.T) {
	small(t, map[string]string{
		"p/p.go":      less,
		"p/p_test.go": "package p\n\nimport \"testing\"\n\nfunc TestLess(t *testing.T) {\n\tif !Less(1, 2) || Less(2, 1) {\n\t\tt.Fatal()\n\t}\n}\n",
	})
	b := newBench(t.TempDir(), io.Discard)
	for op, want := range map[string]string{">=": "TestLess fails", "<=": "alive", "nothing": errNotCompiled.Error()} {
		v, err := b.killer(context.Background(), suite{pkg: "p"}, &mutant{file: "p/p.go", text: strings.Replace(less, "<", op, 1)})
		got := v.String()
		if err != nil {
			got = err.Error()
		} else if !v.failed() {
			got = "alive"
		}
		if got != want {
			t.Errorf("a %s b: %q, want %q", op, got, want)
		}
	}
}

// TestFlakyTestKillsNothing: a test that passes the second time on the mutant, or fails without the fault, is left out.
// Another test kills.
func TestFlakyTestKillsNothing(t *testing.T) {
	for _, failing := range []string{"2", "2 3"} { // runs of the test: the first is without a fault, the second on a mutant, the third without it
		small(t, map[string]string{"p/p.go": less, "p/p_test.go": fmt.Sprintf(flaky, failing)})
		var notes strings.Builder
		b := newBench(t.TempDir(), &notes)
		for _, m := range [][2]string{{"<=", ""}, {">", "TestLess"}} {
			v, err := b.killer(context.Background(), suite{pkg: "p"}, &mutant{file: "p/p.go", text: strings.Replace(less, "<", m[0], 1)})
			if err != nil || v.test != m[1] {
				t.Errorf("run %s fails, a %s b: killed by %q %v, want %q", failing, m[0], v.test, err, m[1])
			}
		}
		if !strings.Contains(notes.String(), "TestChance is flaky") {
			t.Errorf("run %s fails: the notes are %q", failing, notes.String())
		}
	}
}

const flaky = `package p

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

func TestChance(t *testing.T) {
	before, _ := os.ReadFile("runs")
	if err := os.WriteFile("runs", append(before, 'x'), 0o600); err != nil || strings.Contains(%q, fmt.Sprint(len(before)+1)) {
		t.Fatal(err)
	}
}

func TestLess(t *testing.T) {
	if Less(2, 1) {
		t.Fatal()
	}
}
`

// TestVerdicts: what the output of a test program says.
func TestVerdicts(t *testing.T) {
	for out, want := range map[string]string{
		"--- FAIL: TestA (0.00s)\n    --- FAIL: TestA/one (0.00s)\nFAIL\n":                                        "TestA/one fails",
		"--- FAIL: TestA (0.00s)\npanic: nil [recovered]\n":                                                       "TestA fails",
		"panic: test timed out after 1m0s\n\trunning tests:\n\t\tTestB/two (3s)\n\t\tTestC (1s)\n\ngoroutine 5\n": "TestB/two does not end within 1m0s",
		"panic: nil\n\ngoroutine 7 [running]:\n":                                                                  "no test by name: it panics",
		"":                                                                                                        "no test by name: it does not end within 1m0s",
	} {
		if got := verdictOf(out, time.Minute).String(); got != want {
			t.Errorf("%q: %s, want %s", out, got, want)
		}
	}
	if got, want := (suite{"p", ""}).only("TestA/b.c").run, `^TestA$/^b\.c$`; got != want {
		t.Errorf("only TestA/b.c is %s, want %s", got, want)
	}
}
