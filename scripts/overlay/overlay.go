// Package overlay changes places of source files for one build: the compiler is given other files in their place (go
// build -overlay). Tests put faults into the product that way and check that they are found; the product itself has no
// switch for it.
package overlay

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Patch is a change of one place of a source file.
type Patch struct{ File, Old, New string }

// Change is a patch of a file, which may be named relative to the working directory.
func Change(file, old, new string) Patch { return Patch{file, old, new} }

// In changes the place in a text. A text that has it not exactly once is an error: the patch would test nothing.
func (p Patch) In(text string) (string, error) {
	if n := strings.Count(text, p.Old); n != 1 {
		return "", fmt.Errorf("%s has %q %d times: write the patch anew", p.File, p.Old, n)
	}
	return strings.Replace(text, p.Old, p.New, 1), nil
}

// Write writes changed files into a directory, and the list of them that go build -overlay takes. It returns the path
// of the list.
func Write(dir string, patches ...Patch) (list string, err error) {
	replace := map[string]string{}
	for i, p := range patches {
		file, err := filepath.Abs(p.File)
		if err != nil {
			return "", err
		}
		from := file
		if to, changed := replace[file]; changed {
			from = to
		}
		text, err := os.ReadFile(from)
		if err != nil {
			return "", err
		}
		changed, err := p.In(string(text))
		if err != nil {
			return "", err
		}
		replace[file] = filepath.Join(dir, fmt.Sprintf("patch%d.go", i))
		if err := os.WriteFile(replace[file], []byte(changed), 0o600); err != nil {
			return "", err
		}
	}
	data, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	list = filepath.Join(dir, "overlay.json")
	return list, os.WriteFile(list, data, 0o600)
}
