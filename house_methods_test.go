package pullet

import (
	"go/ast"
	"go/token"
	"path/filepath"
	"testing"
)

// mostMethods is how many methods a type may have: with more it is several things.
const mostMethods = 30

// TestMethods holds types to their number of methods.
func TestMethods(t *testing.T) {
	for name, n := range methods(t) {
		if n > mostMethods {
			t.Errorf("%s has %d methods, and may have %d: give what belongs together a type of its own",
				name, n, mostMethods)
		}
	}
}

// methods counts the methods of each type outside of tests.
func methods(t *testing.T) map[string]int {
	t.Helper()
	count := map[string]int{}
	eachSource(t, func(path, _ string, _ *token.FileSet, parsed *ast.File) {
		for _, decl := range parsed.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && f.Recv != nil {
				count[filepath.ToSlash(filepath.Dir(path))+"."+receiver(f.Recv.List[0].Type)]++
			}
		}
	})
	return count
}

// receiver is the name of the type that a method has.
func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.IndexListExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}
