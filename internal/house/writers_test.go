package house

import (
	"go/ast"
	"go/token"
	"go/types"
	"path/filepath"
	"testing"
)

// shared are the types of package agent that the parts of a pull share. Their fields are written in the file that
// declares them, by methods that say what happened: nothing travels from one part to another through a field that both
// write.
var shared = map[string]string{"Outcome": "outcome.go", "joined": "joined.go"}

// TestSharedFields finds other files that assign to fields of what is shared.
func TestSharedFields(t *testing.T) {
	p := check(t, "internal/agent")
	fields := map[types.Object]string{}
	for name, file := range shared {
		of := p.Scope().Lookup(name).Type().Underlying().(*types.Struct)
		for i := range of.NumFields() {
			fields[of.Field(i)] = file
		}
	}
	written := 0
	for _, f := range p.parsed {
		ast.Inspect(f, func(n ast.Node) bool {
			for _, to := range assigned(n) {
				s, ok := to.(*ast.SelectorExpr)
				if !ok || p.Selections[s] == nil || fields[p.Selections[s].Obj()] == "" {
					continue
				}
				at := typedFiles.Position(s.Pos())
				if written++; filepath.Base(at.Filename) != fields[p.Selections[s].Obj()] {
					t.Errorf("%s: %s is written in %s alone, by a method", at, s.Sel.Name, fields[p.Selections[s].Obj()])
				}
			}
			return true
		})
	}
	if written < 10 {
		t.Errorf("only %d writes were found", written)
	}
}

// assigned are the expressions that a node assigns to, or takes the address of.
func assigned(n ast.Node) []ast.Expr {
	switch n := n.(type) {
	case *ast.AssignStmt:
		return n.Lhs
	case *ast.IncDecStmt:
		return []ast.Expr{n.X}
	case *ast.UnaryExpr:
		if n.Op == token.AND {
			return []ast.Expr{n.X}
		}
	}
	return nil
}
