package pullet

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
	"slices"
	"testing"
)

// readers are the files that may touch the value of a key of etcd: whatever else reads the fleet's record goes through
// state.Read.
var readers = []string{"state/record.go", "state/scan.go", "state/steprun.go", "state/extension.go"} // the last two hold content against its digest

// listed is a package as go list shows it.
type listed struct {
	ImportPath, Dir, Export string
	GoFiles                 []string
}

// parse reads the files of the package.
func (p listed) parse(t *testing.T, files *token.FileSet) (parsed []*ast.File) {
	t.Helper()
	for _, name := range p.GoFiles {
		file, err := parser.ParseFile(files, filepath.Join(p.Dir, name), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		parsed = append(parsed, file)
	}
	return parsed
}

// importing finds what packages import in the export data of those that they import.
func importing(files *token.FileSet, packages map[string]listed) types.Importer {
	return importer.ForCompiler(files, "gc", func(path string) (io.ReadCloser, error) {
		if packages[path].Export == "" {
			return nil, errors.New("there is no export data of " + path)
		}
		return os.Open(packages[path].Export)
	})
}

// TestOneReader: nothing but the reader touches the value of a key of etcd, and nothing decodes JSON in the packages
// that read the fleet's record but the reader and those that read files of this host.
func TestOneReader(t *testing.T) {
	packages := exported(t)
	files := token.NewFileSet()
	imports := importing(files, packages)
	seen := 0
	for _, name := range []string{"state", "lock", "agent", "cmd/pullet"} {
		p := packages[module+"/"+name]
		info := &types.Info{Selections: map[*ast.SelectorExpr]*types.Selection{}, Uses: map[*ast.Ident]types.Object{}}
		config := types.Config{Importer: imports}
		if _, err := config.Check(p.ImportPath, files, p.parse(t, files), info); err != nil {
			t.Fatal(err)
		}
		for at, s := range info.Selections {
			field, ok := s.Obj().(*types.Var)
			if !ok || field.Name() != "Value" || field.Pkg().Path() != "go.etcd.io/etcd/api/v3/mvccpb" {
				continue
			}
			file := name + "/" + filepath.Base(files.Position(at.Pos()).Filename)
			if seen++; !slices.Contains(readers, file) {
				t.Errorf("%s: the value of a key of etcd is read with state.Read", files.Position(at.Pos()))
			}
		}
		for at, used := range info.Uses {
			file := name + "/" + filepath.Base(files.Position(at.Pos()).Filename)
			if used.Pkg() != nil && used.Pkg().Path() == "encoding/json" && (used.Name() == "Unmarshal" || used.Name() == "NewDecoder") && !slices.Contains(decoders, file) {
				t.Errorf("%s: JSON of etcd is read with state.Read; a file of this host is read in one of %s", files.Position(at.Pos()), decoders)
			}
		}
	}
	if seen < 3 {
		t.Errorf("the reader itself was found only %d times", seen)
	}
}

// decoders are the files that decode JSON: the reader, and those that read what this host or its operator wrote, beside
// package durable, which reads files only.
var decoders = []string{"state/record.go", "state/kept.go", "cmd/pullet/repo.go"}

// exported are all packages that ours need, with what the compiler knows of them.
func exported(t *testing.T) map[string]listed {
	t.Helper()
	cmd := exec.Command("go", "list", "-export", "-deps", "-json=ImportPath,Dir,Export,GoFiles", "./state", "./lock", "./agent", "./cmd/pullet")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	all := map[string]listed{}
	for d := json.NewDecoder(out); ; {
		var p listed
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		all[p.ImportPath] = p
	}
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	return all
}
