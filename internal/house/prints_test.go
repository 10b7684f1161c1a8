package house

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestOneWriter: the command line prints through the one writer that makes texts harmless to a terminal. Only main has
// the process's own outputs, and what hands them to the user's editor; only what draws on a terminal writes control
// sequences.
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
				around := of != nil && (of.Name == "os" && (at.Sel.Name == "Stdout" || at.Sel.Name == "Stderr") && !slices.Contains([]string{"main.go", "editor.go", "editor_inside.go"}, name) || of.Name == "fmt" && strings.HasPrefix(at.Sel.Name, "Print"))
				if around || at.Sel.Name == "Own" && name != "terminal.go" {
					t.Errorf("%s: print to the app's outputs", set.Position(at.Pos()))
				}
			case *ast.BasicLit:
				if at.Kind == token.STRING && strings.Contains(at.Value, `\x1b`) && !slices.Contains([]string{"paint.go", "screen.go", "progress.go"}, name) {
					t.Errorf("%s: control sequences are for what draws on a terminal", set.Position(at.Pos()))
				}
			}
			return true
		})
	}
}

// TestOneCompletion: whatever the shell is offered comes through completes, which bounds the time and leaves out what a
// shell would not take as one word.
func TestOneCompletion(t *testing.T) {
	files, err := filepath.Glob("cmd/pullet/*.go")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, file := range files {
		set := token.NewFileSet()
		parsed, err := parser.ParseFile(set, file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		checked := func(value ast.Expr) bool {
			call, ok := value.(*ast.CallExpr)
			if !ok {
				return false
			}
			name, ok := call.Fun.(*ast.Ident)
			found++
			return ok && name.Name == "completes"
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			good := true
			switch at := n.(type) {
			case *ast.KeyValueExpr:
				key, ok := at.Key.(*ast.Ident)
				good = !ok || key.Name != "ValidArgsFunction" && key.Name != "ValidArgs"
			case *ast.AssignStmt:
				if to, ok := at.Lhs[0].(*ast.SelectorExpr); ok && to.Sel.Name == "ValidArgsFunction" {
					good = checked(at.Rhs[0])
				}
			case *ast.CallExpr:
				if of, ok := at.Fun.(*ast.SelectorExpr); ok && of.Sel.Name == "RegisterFlagCompletionFunc" {
					good = checked(at.Args[1])
				}
			}
			if !good {
				t.Errorf("%s: complete with completes, in the tables of completion.go", set.Position(n.Pos()))
			}
			return true
		})
	}
	if found == 0 {
		t.Error("nothing completes")
	}
}
