package house

import (
	"encoding/json"
	"errors"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// typedFiles holds the positions of all type-checked packages.
var typedFiles = token.NewFileSet()

// listed is a package as go list shows it.
type listed struct {
	ImportPath, Dir, Export string
	GoFiles                 []string
}

// exports returns all packages that ours need, by import path, with their export data. It runs go list once.
var exports = sync.OnceValues(func() (map[string]listed, error) {
	cmd := exec.Command("go", "list", "-export", "-deps", "-json=ImportPath,Dir,Export,GoFiles", "./...")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	all := map[string]listed{}
	for d := json.NewDecoder(out); ; {
		var p listed
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		all[p.ImportPath] = p
	}
	return all, cmd.Wait()
})

// imports finds what a package imports in the export data. One importer serves all packages, and reads the data of each
// imported package once.
var imports = importer.ForCompiler(typedFiles, "gc", func(path string) (io.ReadCloser, error) {
	all, err := exports()
	if err != nil {
		return nil, err
	}
	if all[path].Export == "" {
		return nil, errors.New("there is no export data of " + path)
	}
	return os.Open(all[path].Export)
})

// typed is a package of ours whose types are known.
type typed struct {
	*types.Package
	types.Info
	parsed []*ast.File
}

var allTyped = map[string]*typed{}

// check returns a package of ours, whose types it checks once.
func check(t *testing.T, name string) *typed {
	t.Helper()
	if allTyped[name] != nil {
		return allTyped[name]
	}
	all, err := exports()
	if err != nil {
		t.Fatal(err)
	}
	path := module + "/" + name
	p := &typed{Info: types.Info{Selections: map[*ast.SelectorExpr]*types.Selection{}, Uses: map[*ast.Ident]types.Object{}}}
	for _, file := range all[path].GoFiles {
		parsed, err := parser.ParseFile(typedFiles, filepath.Join(all[path].Dir, file), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		p.parsed = append(p.parsed, parsed)
	}
	if p.Package, err = (&types.Config{Importer: imports}).Check(path, typedFiles, p.parsed, &p.Info); err != nil {
		t.Fatal(err)
	}
	allTyped[name] = p
	return p
}
