package house

import (
	"go/ast"
	"go/constant"
	"go/token"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestLazyRegexps: a package-level variable of the program compiles no regular expression when the program starts, and
// each lazy one compiles.
func TestLazyRegexps(t *testing.T) {
	constants, lazy := map[string]ast.Expr{}, map[string]ast.Expr{}
	eachSource(t, func(path, _ string, files *token.FileSet, parsed *ast.File) {
		if ofTests(path) || strings.HasPrefix(path, "scripts/") {
			return
		}
		for _, decl := range parsed.Decls {
			gen, ok := decl.(*ast.GenDecl)
			if !ok {
				continue
			}
			for _, spec := range gen.Specs {
				values, _ := spec.(*ast.ValueSpec)
				for i := 0; values != nil && i < len(values.Values); i++ {
					if gen.Tok == token.CONST {
						constants[filepath.Dir(path)+"."+values.Names[i].Name] = values.Values[i]
						continue
					}
					call, ok := values.Values[i].(*ast.CallExpr)
					switch {
					case ok && calls(call, "regexp", "MustCompile"):
						t.Errorf("%s: compiles at each start: use lazyregexp.New", files.Position(call.Pos()))
					case ok && calls(call, "lazyregexp", "New"):
						lazy[filepath.Dir(path)+"."+values.Names[i].Name] = call.Args[0]
					}
				}
			}
		}
	})
	if len(lazy) < 50 {
		t.Errorf("only %d lazy regular expressions were found", len(lazy))
	}
	for name, expr := range lazy {
		dir, _, _ := strings.Cut(name, ".")
		text := constantText(expr, dir, constants)
		if text == "" {
			t.Errorf("%s: is not a constant", name)
		} else if _, err := regexp.Compile(text); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// calls reports whether a call is to a function of a package.
func calls(call *ast.CallExpr, pkg, name string) bool {
	fun, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	from, ok := fun.X.(*ast.Ident)
	return ok && from.Name == pkg && fun.Sel.Name == name
}

// constantText returns the text of an expression of literals and constants of its package, or "".
func constantText(expr ast.Expr, dir string, constants map[string]ast.Expr) string {
	switch e := expr.(type) {
	case *ast.BasicLit:
		return constant.StringVal(constant.MakeFromLiteral(e.Value, e.Kind, 0))
	case *ast.Ident:
		return constantText(constants[dir+"."+e.Name], dir, constants)
	case *ast.BinaryExpr:
		left, right := constantText(e.X, dir, constants), constantText(e.Y, dir, constants)
		if left == "" || right == "" {
			return ""
		}
		return left + right
	}
	return ""
}
