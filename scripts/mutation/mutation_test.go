package main

import (
	"context"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
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

// TestByPackage builds and tests mutants of a small module: one that its test finds, one that it does not, and one that is no program.
func TestByPackage(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":      "module " + strings.TrimSuffix(module, "/") + "\n\ngo 1.26\n",
		"p/p.go":      "package p\n\nfunc Less(a, b int) bool { return a < b }\n",
		"p/p_test.go": "package p\n\nimport \"testing\"\n\nfunc TestLess(t *testing.T) {\n\tif !Less(1, 2) || Less(2, 1) {\n\t\tt.Fatal()\n\t}\n}\n",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	b := &bench{dir: t.TempDir(), limits: map[string]time.Duration{}}
	text, err := os.ReadFile("p/p.go")
	if err != nil {
		t.Fatal(err)
	}
	for op, want := range map[string]string{">=": "TestLess", "<=": "", "nothing": errNotCompiled.Error()} {
		by, err := b.byPackage(context.Background(), &mutant{file: "p/p.go", line: 3, endLine: 3, text: strings.Replace(string(text), "<", op, 1)})
		if err != nil {
			by = err.Error()
		}
		if by != want {
			t.Errorf("a %s b: killed by %q, want %q", op, by, want)
		}
	}
}

// TestTouched: only scripts that run a line are asked about its mutants.
func TestTouched(t *testing.T) {
	profile := filepath.Join(t.TempDir(), "profile")
	text := "mode: set\n" + module + "lock/a.go:3.10,5.2 2 1\n" + module + "lock/a.go:6.2,8.3 1 0\n" + module + "lock/b.go:3.1,4.2 1 12\n"
	if err := os.WriteFile(profile, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	touch := &touched{blocks: map[string][]block{}}
	for _, script := range []string{"one", "two"} {
		if err := touch.read(profile, script); err != nil {
			t.Fatal(err)
		}
	}
	for line, want := range map[int]string{2: "", 3: "^TestScripts$/^(one|two)$", 5: "^TestScripts$/^(one|two)$", 7: ""} {
		if got := touch.by(&mutant{file: "lock/a.go", line: line, endLine: line}); got != want {
			t.Errorf("line %d: %q, want %q", line, got, want)
		}
	}
}
