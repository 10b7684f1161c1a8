package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pullet/pullet/state"
)

// TestCures: every kind of wait is on the page with what clears it, and a script or a test has that cure.
func TestCures(t *testing.T) {
	page, err := os.ReadFile("../../docs/rollouts.md")
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
			t.Errorf("%s: docs/rollouts.md says %q, not %q", c.kind, row, c.clear)
		}
		file := c.shown
		if !strings.HasSuffix(file, ".go") {
			file = filepath.Join("testdata", "script", file+".txtar")
		}
		text, err := os.ReadFile(file)
		if err != nil || !strings.Contains(string(text), c.clear) {
			t.Errorf("%s: %s does not show %q: %v", c.kind, file, c.clear, err)
		}
	}
	for name, kind := range waitKinds(t) {
		if !seen[kind] {
			t.Errorf("state.%s has no cure", name)
		}
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

// TestWaitsHaveKinds: no wait is made without its kind.
func TestWaitsHaveKinds(t *testing.T) {
	files, err := filepath.Glob("../../*/*.go")
	if err != nil {
		t.Fatal(err)
	}
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
	files, err := filepath.Glob("../../*/*.go")
	if err != nil {
		t.Fatal(err)
	}
	own, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	others := []string{"../../state/key.go", "../../agent/repositories.go"} // they set the text of an error, and of a trouble
	seen := 0
	for _, path := range append(files, own...) {
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
