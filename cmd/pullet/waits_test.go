package main

import (
	"cmp"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/pullet/pullet/state"
)

// TestCures: every kind of wait is on the page with what clears it, and a script prints that and does it.
func TestCures(t *testing.T) {
	page, err := os.ReadFile("../../docs/waits.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]string{}
	for line := range strings.Lines(string(page)) {
		if cells := strings.Split(line, "|"); len(cells) == 6 {
			rows[strings.TrimSpace(cells[1])] = cells[4]
		}
	}
	seen := map[state.WaitKind]bool{}
	for _, c := range cures() {
		if seen[c.kind] {
			t.Errorf("%s: it has two cures", c.kind)
		}
		seen[c.kind] = true
		if row, ok := rows[string(c.kind)]; !ok || !strings.Contains(row, c.clear) {
			t.Errorf("%s: docs/waits.md says %q, not %q", c.kind, row, c.clear)
		}
		c.isShown(t)
	}
	for name, kind := range waitKinds(t) {
		if !seen[kind] {
			t.Errorf("state.%s has no cure", name)
		}
	}
}

// TestRowCures: each state of a node in status that somebody has to end says how, and a script does it.
func TestRowCures(t *testing.T) {
	cures := rowCures()
	for _, name := range allStates {
		c, has := cures[name]
		if !has {
			t.Errorf("state %s has no cure", name)
		} else if c.shown != "" {
			c.kind = state.WaitKind(name)
			c.isShown(t)
		}
	}
}

// isShown checks that a script prints the text of a cure and then does what the text says; where it is a test's file,
// that it has the text.
func (c cure) isShown(t *testing.T) {
	t.Helper()
	says := cmp.Or(c.says, c.clear)
	if strings.HasSuffix(c.shown, ".go") {
		text, err := os.ReadFile(c.shown)
		if err != nil || !strings.Contains(string(text), says) {
			t.Errorf("%s: %s does not show %q: %v", c.kind, c.shown, says, err)
		}
		return
	}
	text, err := os.ReadFile(filepath.Join("testdata", "script", c.shown+".txtar"))
	if err != nil {
		t.Fatal(err)
	}
	commands, _, _ := strings.Cut(string(text), "\n-- ")
	lines := strings.Split(commands, "\n")
	at := slices.IndexFunc(lines, func(line string) bool {
		checks := slices.Contains([]string{"stdout", "stderr", "waitfor"}, strings.SplitN(line, " ", 2)[0])
		return checks && strings.Contains(line, says)
	})
	if at < 0 || c.does == "" {
		t.Errorf("%s: %s does not show %q, or nothing is done about it", c.kind, c.shown, says)
		return
	}
	for step := range strings.SplitSeq(c.does, "; ") {
		next := slices.IndexFunc(lines[at+1:], func(line string) bool { return strings.HasPrefix(line, step) })
		if next < 0 {
			t.Errorf("%s: %s shows %q, and %q does not follow", c.kind, c.shown, says, step)
			return
		}
		at += 1 + next
	}
}

// waitKinds are the constants of the type in its source.
func waitKinds(t *testing.T) map[string]state.WaitKind {
	out := map[string]state.WaitKind{}
	file, err := parser.ParseFile(token.NewFileSet(), "../../state/wait.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if of, ok := spec.Type.(*ast.Ident); ok && of.Name == "WaitKind" {
			value := spec.Values[0].(*ast.BasicLit).Value
			out[spec.Names[0].Name] = state.WaitKind(strings.Trim(value, `"`))
		}
		return true
	})
	if len(out) < 30 {
		t.Fatalf("only %d kinds were found", len(out))
	}
	return out
}

// sourceFiles are the Go files of the packages that make waits.
func sourceFiles(t *testing.T) (files []string) {
	t.Helper()
	for _, pattern := range []string{"*.go", "../../*/*.go", "../../internal/*/*.go"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	return files
}

// TestWaitsHaveKinds: no wait is made without its kind.
func TestWaitsHaveKinds(t *testing.T) {
	files := sourceFiles(t)
	waits := 0
	for _, path := range files {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			lit, ok := n.(*ast.CompositeLit)
			if !ok || !isWait(lit.Type) {
				return true
			}
			waits++
			if !hasKey(lit, "Kind") {
				t.Errorf("%s: a wait without Kind", set.Position(lit.Pos()))
			}
			return true
		})
	}
	if waits < 20 {
		t.Errorf("only %d waits were found", waits)
	}
}

// TestRemediesAreTyped: whether an operator has to act is in the type of a remedy. Nothing compares its text, which
// people read, with another one; and it is set with its type, by the functions of state/remedy.go.
func TestRemediesAreTyped(t *testing.T) {
	files := sourceFiles(t)
	others := []string{"../../state/key.go", "../../internal/agent/repositories.go"} // they set the text of an error, and of a trouble
	seen := 0
	for _, path := range files {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.BinaryExpr:
				if (isClear(n.X) || isClear(n.Y)) && n.Op != token.ADD && !isEmpty(n.Y) {
					t.Errorf("%s: a decision by the text of a remedy", set.Position(n.Pos()))
				}
			case *ast.AssignStmt:
				if slices.ContainsFunc(n.Lhs, isClear) && !slices.Contains(others, path) {
					t.Errorf("%s: a remedy's text is set without its type", set.Position(n.Pos()))
				}
			case *ast.BasicLit:
				if n.Value == `"no action needed"` && !strings.HasSuffix(path, "state/remedy.go") && !strings.HasSuffix(path, "state/kinds.go") {
					t.Errorf("%s: use state.NoAction", set.Position(n.Pos()))
				}
			case *ast.CallExpr:
				if f, ok := n.Fun.(*ast.SelectorExpr); ok && f.Sel.Name == "Act" {
					seen++
				}
			}
			return true
		})
	}
	if seen < 20 {
		t.Errorf("only %d remedies were found", seen)
	}
}

func isClear(e ast.Expr) bool {
	s, ok := e.(*ast.SelectorExpr)
	return ok && s.Sel.Name == "Clear"
}

func isEmpty(e ast.Expr) bool {
	lit, ok := e.(*ast.BasicLit)
	return ok && lit.Value == `""`
}

func isWait(of ast.Expr) bool {
	switch of := of.(type) {
	case *ast.Ident:
		return of.Name == "Wait"
	case *ast.SelectorExpr:
		return of.Sel.Name == "Wait"
	}
	return false
}

func hasKey(lit *ast.CompositeLit, name string) bool {
	for _, e := range lit.Elts {
		if kv, ok := e.(*ast.KeyValueExpr); ok {
			if key, ok := kv.Key.(*ast.Ident); ok && key.Name == name {
				return true
			}
		}
	}
	return false
}

// TestOutageIsSaidOnce: etcd that goes away under a connection is first a reset connection and then a broken pipe; that
// is one outage and one line. The next outage has a line of its own.
func TestOutageIsSaidOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		said := "2 upgrading"
		for _, reason := range []string{"connection reset by peer", "broken pipe", "connection refused"} {
			var err error
			if said, err = outlast(t.Context(), &out, said, errors.New(reason)); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := outlast(t.Context(), &out, "2 upgrading", errors.New("no route to host")); err != nil {
			t.Fatal(err)
		}
		if want := "connection reset by peer\nno route to host\n"; out.String() != want {
			t.Errorf("printed %q, want %q", out.String(), want)
		}
	})
}
