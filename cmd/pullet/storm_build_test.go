package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// stormPatch is a change of one place of a source file, for one build: the compiler is given another file in its place (go build -overlay). The product
// itself has no switch for it.
type stormPatch struct{ file, old, new string }

// apply is the text of the file with the patch. One whose place is not there any more is an error: it would test nothing.
func (p stormPatch) apply(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(p.file)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(text), p.old); n != 1 {
		t.Errorf("%s has %q %d times: the patch has to be written anew", p.file, p.old, n)
	}
	return strings.Replace(string(text), p.old, p.new, 1)
}

// buildPullet builds pullet with patches, and returns the program.
func buildPullet(t *testing.T, dir string, patches ...stormPatch) string {
	t.Helper()
	replace := map[string]string{}
	for i, p := range patches {
		to := filepath.Join(dir, fmt.Sprintf("patch%d.go", i))
		if err := os.WriteFile(to, []byte(p.apply(t)), 0o644); err != nil {
			t.Fatal(err)
		}
		abs, err := filepath.Abs(p.file)
		if err != nil {
			t.Fatal(err)
		}
		replace[abs] = to
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	list := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(list, overlay, 0o644); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, "pullet")
	if out, err := exec.Command("go", "build", "-overlay", list, "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return program
}

// jumpingClock makes every process of pullet on a host add to the time of day what a file says, in seconds. Its name is in PULLET_TEST_CLOCK.
func jumpingClock(t *testing.T) []stormPatch {
	t.Helper()
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	dir, now := filepath.Join(strings.TrimSpace(string(root)), "src/time"), "func Now() Time {\n\tsec, nsec, mono := runtimeNow()\n"
	return []stormPatch{
		{filepath.Join(dir, "time.go"), now, now + "\tsec += jumped()\n"},
		{filepath.Join(dir, "sys_unix.go"), "func open(name string)", stormClock + "func open(name string)"},
	}
}

// stormClock stands in package time, which can read a file but imports nothing that does.
const stormClock = `
func jumped() (by int64) {
	name, found := syscall.Getenv("PULLET_TEST_CLOCK")
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
