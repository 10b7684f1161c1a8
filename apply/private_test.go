package apply

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// TestPrivateFile: only its user can read it, and nothing of it is left.
func TestPrivateFile(t *testing.T) {
	h := &Host{Root: "/", Notes: filepath.Join(t.TempDir(), "commands")}
	path, remove, err := h.PrivateFile("x.sh", "", []byte("secret"))
	if err != nil {
		t.Fatal(err)
	}
	for at, want := range map[string]os.FileMode{path: 0o400, filepath.Dir(path): 0o700 | os.ModeDir} {
		if info, err := os.Stat(at); err != nil || info.Mode() != want {
			t.Errorf("%s: %v %v, want %v", at, info.Mode(), err, want)
		}
	}
	if err := remove(); err != nil {
		t.Error(err)
	}
	left, err := os.ReadDir(h.Notes)
	if _, gone := os.Stat(filepath.Dir(path)); !os.IsNotExist(gone) || err != nil || len(left) > 0 {
		t.Errorf("left: %v, notes %v %v", gone, left, err)
	}
}

// TestPrivateFileOfAKilledPull: the next pull removes it, but not while the command that reads it still runs.
func TestPrivateFileOfAKilledPull(t *testing.T) {
	h := &Host{Root: "/", Notes: filepath.Join(t.TempDir(), "commands")}
	path, _, err := h.PrivateFile("x.sh", "", []byte("secret"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("sleep", "60")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	stop := func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }
	t.Cleanup(stop)
	h.recordProcess(cmd.Process.Pid)
	if err := Orphans(h.Notes); err == nil || !strings.Contains(err.Error(), strconv.Itoa(cmd.Process.Pid)) {
		t.Fatalf("%v: process %d runs", err, cmd.Process.Pid)
	}
	if _, err := os.Stat(path); err != nil {
		t.Errorf("removed under a command that runs: %v", err)
	}
	stop()
	if err := Orphans(h.Notes); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Dir(path)); !os.IsNotExist(err) {
		t.Errorf("it is still there: %v", err)
	}
}
