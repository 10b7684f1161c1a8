package house

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/pullet/pullet/apply/action"
)

// TestNoActionByName: package apply knows no single action. What it has to know of one is in its Spec, or is an
// interface that the action implements.
func TestNoActionByName(t *testing.T) {
	names := map[string]bool{}
	for _, spec := range action.All() {
		module, _, _ := strings.Cut(spec.Name, ".")
		names[spec.Name], names[module+"."] = true, true
	}
	files, err := filepath.Glob("apply/*.go")
	if err != nil || len(files) < 40 || len(names) < 40 {
		t.Fatal(len(files), len(names), err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		set := token.NewFileSet()
		parsed, err := parser.ParseFile(set, file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			lit, ok := n.(*ast.BasicLit)
			if !ok || lit.Kind != token.STRING {
				return true
			}
			text, err := strconv.Unquote(lit.Value)
			if err != nil {
				t.Error(err)
			}
			if names[text] {
				t.Errorf("%s: %q: put what is known of the action into its Spec", set.Position(lit.Pos()), text)
			}
			return true
		})
	}
}
