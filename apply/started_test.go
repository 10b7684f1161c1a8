package apply_test

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/internal/patience"
)

// TestOrphanByMark: a command that killed its pull before its process was on record is found by its mark, and forgotten
// when it is gone.
func TestOrphanByMark(t *testing.T) {
	notes := t.TempDir()
	data, err := json.Marshal(map[string]string{"mark": "ABC"})
	if err == nil {
		err = os.WriteFile(filepath.Join(notes, "command-ABC"), data, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("sleep", "60")
	cmd.Env = []string{"PULLET_COMMAND=ABC"}
	// Commands lead a session. The session of the test may have begun outside of its container, which shows it as 0.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	stop := func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }
	t.Cleanup(stop)
	executed(t, cmd.Process.Pid)
	var orphan *apply.OrphanError
	if err := apply.Orphans(notes); !errors.As(err, &orphan) || orphan.PID != cmd.Process.Pid {
		t.Errorf("while it runs: %v", err)
	}
	stop()
	if err := apply.Orphans(notes); err != nil {
		t.Errorf("when it is gone: %v", err)
	}
	if left, err := os.ReadDir(notes); err != nil || len(left) > 0 {
		t.Errorf("notes are left: %v, %v", left, err)
	}
}

// executed waits until a process shows its own environment: it starts to run a little before.
func executed(t *testing.T, pid int) {
	t.Helper()
	patience.Until(t, "the process has its environment", func() bool {
		text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "environ"))
		if err != nil {
			t.Fatal(err)
		}
		return len(text) > 0
	})
}
