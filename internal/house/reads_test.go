package house

import (
	"go/types"
	"path/filepath"
	"slices"
	"testing"
)

// readers are the files that may touch the value of a key of etcd: whatever else reads the fleet's record goes through
// state.Read.
var readers = []string{"state/record.go", "state/scan.go", "state/steprun.go", "state/extension.go"} // the last two hold content against its digest

// TestOneReader: nothing but the reader touches the value of a key of etcd, and nothing decodes JSON in the packages
// that read the fleet's record but the reader and those that read files of this host.
func TestOneReader(t *testing.T) {
	seen := 0
	for _, name := range []string{"state", "lock", "internal/agent", "cmd/pullet"} {
		p := check(t, name)
		for at, s := range p.Selections {
			field, ok := s.Obj().(*types.Var)
			if !ok || field.Name() != "Value" || field.Pkg().Path() != "go.etcd.io/etcd/api/v3/mvccpb" {
				continue
			}
			file := name + "/" + filepath.Base(typedFiles.Position(at.Pos()).Filename)
			if seen++; !slices.Contains(readers, file) {
				t.Errorf("%s: the value of a key of etcd is read with state.Read", typedFiles.Position(at.Pos()))
			}
		}
		for at, used := range p.Uses {
			file := name + "/" + filepath.Base(typedFiles.Position(at.Pos()).Filename)
			if used.Pkg() != nil && used.Pkg().Path() == "encoding/json" && (used.Name() == "Unmarshal" || used.Name() == "NewDecoder") && !slices.Contains(decoders, file) {
				t.Errorf("%s: JSON of etcd is read with state.Read; a file of this host is read in one of %s", typedFiles.Position(at.Pos()), decoders)
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
