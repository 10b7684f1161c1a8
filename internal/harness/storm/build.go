package storm

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pullet/pullet/scripts/overlay"
)

// BuildJumping builds pullet from the source of the module in the directory root, and returns the program. Kind.Clocks
// changes the time of day of its processes.
func BuildJumping(t testing.TB, root string) string {
	t.Helper()
	return build(t, root, clockPatches(t)...)
}

// build builds pullet with patches, and returns the program.
func build(t testing.TB, root string, patches ...overlay.Patch) string {
	t.Helper()
	dir := t.TempDir()
	list, err := overlay.Write(dir, patches...)
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, "pullet")
	cmd := exec.Command("go", "build", "-overlay", list, "-o", program, "./cmd/pullet")
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return program
}

// clockEnv is the environment variable with the name of the file from which a process of pullet reads how many seconds
// it adds to the time of day.
const clockEnv = "PULLET_TEST_CLOCK"

// clockPatches returns patches of the Go library with which every process of pullet on a host adds to the time of day.
// Times that the scheduler sends, when a timer fires, keep the time of the machine: there is no stack on which to read
// a file.
func clockPatches(t testing.TB) []overlay.Patch {
	t.Helper()
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(strings.TrimSpace(string(root)), "src/time")
	now := "func Now() Time {\n\tsec, nsec, mono := runtimeNow()\n"
	jumping := "func Now() Time { return jumping(jumped()) }\n\n" +
		"func jumping(by int64) Time {\n\tsec, nsec, mono := runtimeNow()\n\tsec += by\n"
	return []overlay.Patch{
		overlay.Change(filepath.Join(dir, "time.go"), now, jumping),
		overlay.Change(filepath.Join(dir, "sleep.go"), "<- Now().Add(", "<- jumping(0).Add("),
		overlay.Change(filepath.Join(dir, "sys_unix.go"), "func open(name string)", clockSource+"func open(name string)"),
	}
}

// clockSource is part of package time, which can read a file but imports no package that does.
const clockSource = `
func jumped() (by int64) {
	name, found := syscall.Getenv("` + clockEnv + `")
	if !found {
		return 0
	}
	fd, err := open(name)
	if err != nil {
		return 0
	}
	defer closefd(fd)
	var text [24]byte
	n, _ := read(fd, text[:])
	sign := int64(1)
	for _, c := range text[:n] {
		switch {
		case c == '-':
			sign = -1
		case '0' <= c && c <= '9':
			by = 10*by + int64(c-'0')
		}
	}
	return sign * by
}

`
