package pullet

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
	packages := exported(t)
	files := token.NewFileSet()
	p := packages[module+"/agent"]
	info := &types.Info{Selections: map[*ast.SelectorExpr]*types.Selection{}}
	config := types.Config{Importer: importing(files, packages)}
	parsed := p.parse(t, files)
	checked, err := config.Check(p.ImportPath, files, parsed, info)
	if err != nil {
		t.Fatal(err)
	}
	fields := map[types.Object]string{}
	for name, file := range shared {
		of := checked.Scope().Lookup(name).Type().Underlying().(*types.Struct)
		for i := range of.NumFields() {
			fields[of.Field(i)] = file
		}
	}
	written := 0
	for _, f := range parsed {
		ast.Inspect(f, func(n ast.Node) bool {
			for _, to := range assigned(n) {
				s, ok := to.(*ast.SelectorExpr)
				if !ok || info.Selections[s] == nil || fields[info.Selections[s].Obj()] == "" {
					continue
				}
				at := files.Position(s.Pos())
				if written++; filepath.Base(at.Filename) != fields[info.Selections[s].Obj()] {
					t.Errorf("%s: %s is written in %s alone, by a method", at, s.Sel.Name, fields[info.Selections[s].Obj()])
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
