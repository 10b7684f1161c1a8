package pullet

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestOneWriter: the command line prints through the one writer that makes texts harmless to a terminal. Only main has the process's own outputs, and only what
// draws on a terminal writes control sequences.
func TestOneWriter(t *testing.T) {
	files, err := filepath.Glob("cmd/pullet/*.go")
	if err != nil || len(files) < 20 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		name := filepath.Base(file)
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		set := token.NewFileSet()
		parsed, err := parser.ParseFile(set, file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			switch at := n.(type) {
			case *ast.SelectorExpr:
				of, _ := at.X.(*ast.Ident)
				around := of != nil && (of.Name == "os" && (at.Sel.Name == "Stdout" || at.Sel.Name == "Stderr") && name != "main.go" || of.Name == "fmt" && strings.HasPrefix(at.Sel.Name, "Print"))
				if around || at.Sel.Name == "Own" && name != "terminal.go" {
					t.Errorf("%s: print to the app's outputs", set.Position(at.Pos()))
				}
			case *ast.BasicLit:
				if at.Kind == token.STRING && strings.Contains(at.Value, `\x1b`) && !slices.Contains([]string{"screen.go", "progress.go"}, name) {
					t.Errorf("%s: control sequences are for what draws on a terminal", set.Position(at.Pos()))
				}
			}
			return true
		})
	}
}
