package house

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// startsProcesses are the files that may start programs: the one for commands of the host, the child that fetches, and
// the editor of who edits secrets, with the child that runs it, the ssh with which an operator lets a host in, and the
// program that takes the place of this one.
var startsProcesses = []string{
	"apply/start.go", "internal/gitremote/child.go", "internal/program/continue.go",
	"cmd/pullet/editor.go", "cmd/pullet/editor_inside.go", "cmd/pullet/editor_program.go", "cmd/pullet/fleet_add.go",
}

// starters are the functions that start a program, by package.
var starters = map[string][]string{
	"os/exec":               {"Command", "CommandContext", "Cmd"},
	"os":                    {"StartProcess"},
	"syscall":               {"Exec", "ForkExec", "StartProcess"},
	"golang.org/x/sys/unix": {"Exec", "Execve"},
}

// TestProcessesStartInOnePlace: what a program gets of the agent (session, open files, groups, environment) is decided
// once.
func TestProcessesStartInOnePlace(t *testing.T) {
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil || !strings.HasSuffix(path, ".go") || ofTests(path):
			return err
		case strings.HasPrefix(path, "scripts/") || slices.Contains(startsProcesses, path):
			return nil
		}
		files := token.NewFileSet()
		parsed, err := parser.ParseFile(files, path, nil, 0)
		if err != nil {
			return err
		}
		for _, call := range startsIn(parsed) {
			t.Errorf("%s: %s starts a program: use (*apply.Host).Run", files.Position(call.Pos()), call.Sel.Name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// startsIn are the uses of starters in a file, other than as the type of a parameter.
func startsIn(file *ast.File) (out []*ast.SelectorExpr) {
	names := map[string][]string{}
	for _, i := range file.Imports {
		path := strings.Trim(i.Path.Value, `"`)
		name := filepath.Base(path)
		if i.Name != nil {
			name = i.Name.Name
		}
		names[name] = starters[path]
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if f, ok := n.(*ast.FuncType); ok && f.Params != nil {
			return false
		}
		s, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if pkg, ok := s.X.(*ast.Ident); ok && slices.Contains(names[pkg.Name], s.Sel.Name) {
			out = append(out, s)
		}
		return true
	})
	return out
}
