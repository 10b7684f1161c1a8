// Package lab runs scripts on the hosts of scripts/lab, which boot the real systemd. Tests only.
package lab

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/pullet/pullet/internal/tier"
)

// Require skips a test where the lab cannot make hosts, and fails it on a machine that only lacks packages. The
// directory root is that of the module.
func Require(t testing.TB, root string) {
	t.Helper()
	tier.Root(t, "hosts of the lab are made of namespaces and mounts")
	out, err := exec.Command(script(t, root), "needs").CombinedOutput()
	if err != nil || len(out) > 0 {
		t.Fatalf("the lab needs Debian packages: apt-get install %s %v", strings.Join(strings.Fields(string(out)), " "), err)
	}
}

// script returns the path of scripts/lab of the module in the directory root.
func script(t testing.TB, root string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join(root, "scripts/lab"))
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// Run runs scripts/lab for the lab with this name, which ends with the test process, and returns its output.
func Run(t testing.TB, root, name string, args ...string) (string, error) {
	t.Helper()
	return RunFor(t, root, name, os.Getpid(), args...)
}

// RunFor runs scripts/lab for the lab with this name, which ends with the process owner, and returns its output.
func RunFor(t testing.TB, root, name string, owner int, args ...string) (string, error) {
	t.Helper()
	cmd := exec.Command(script(t, root), args...)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "PULLET_LAB="+name, fmt.Sprint("PULLET_LAB_OWNER=", owner))
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// Name returns the name of a lab that no other test on this machine has.
func Name(test string) string {
	return fmt.Sprintf("t%d-%.24s", os.Getpid(), strings.ReplaceAll(test, "_", "-"))
}

// Address returns the address of the machine on the bridge of the lab with this name.
func Address(name string) (string, error) {
	subnet, err := os.ReadFile("/run/pullet-lab/" + name + "/subnet")
	return "10.99." + strings.TrimSpace(string(subnet)) + ".1", err
}

// Main is the program lab of scripts: `lab ARGS...` is `scripts/lab ARGS...`. It does not return.
func Main() { execScript(os.Args[1:]) }

// OnMain is the program on of scripts: `on HOST CMD...` is `lab exec HOST -- CMD...`. It does not return.
func OnMain() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: on HOST CMD...")
		os.Exit(2)
	}
	execScript(append([]string{"exec", os.Args[1], "--"}, os.Args[2:]...))
}

// execScript replaces the process by scripts/lab.
func execScript(args []string) {
	script := os.Getenv("LAB_SCRIPT")
	err := syscall.Exec(script, append([]string{script}, args...), os.Environ())
	fmt.Fprintln(os.Stderr, script, err)
	os.Exit(1)
}
