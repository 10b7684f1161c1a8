package main

import (
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pullet/pullet/internal/tier"
)

// TestStatic: the program that README.md says how to build needs no library of the host.
func TestStatic(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil || !strings.Contains(string(readme), "\nCGO_ENABLED=0 go install ./cmd/pullet ") {
		t.Errorf("README.md does not build it without cgo: %v", err)
	}
	tier.Long(t, "links the program")
	file := filepath.Join(t.TempDir(), "pullet")
	build := exec.Command("go", "build", "-o", file, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	program, err := elf.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer program.Close()
	if libraries, err := program.ImportedLibraries(); err != nil || len(libraries) > 0 || program.Section(".interp") != nil {
		t.Errorf("it is not static: %q, %v", libraries, err)
	}
}
