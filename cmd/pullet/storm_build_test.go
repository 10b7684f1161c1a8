package main

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pullet/pullet/scripts/overlay"
)

// buildPullet builds pullet with patches, and returns the program.
func buildPullet(t *testing.T, dir string, patches ...overlay.Patch) string {
	t.Helper()
	list, err := overlay.Write(dir, patches...)
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, "pullet")
	if out, err := exec.Command("go", "build", "-overlay", list, "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return program
}

// jumpingClock makes every process of pullet on a host add to the time of day what a file says, in seconds. Its name is
// in PULLET_TEST_CLOCK. What the scheduler itself sends, when a timer fires, keeps the machine's time: there it has no
// stack to read a file with.
func jumpingClock(t *testing.T) []overlay.Patch {
	t.Helper()
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	dir, now := filepath.Join(strings.TrimSpace(string(root)), "src/time"), "func Now() Time {\n\tsec, nsec, mono := runtimeNow()\n"
	return []overlay.Patch{
		overlay.Change(filepath.Join(dir, "time.go"), now, "func Now() Time { return jumping(jumped()) }\n\nfunc jumping(by int64) Time {\n\tsec, nsec, mono := runtimeNow()\n\tsec += by\n"),
		overlay.Change(filepath.Join(dir, "sleep.go"), "<- Now().Add(", "<- jumping(0).Add("),
		overlay.Change(filepath.Join(dir, "sys_unix.go"), "func open(name string)", stormClock+"func open(name string)"),
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
