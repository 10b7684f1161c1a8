package apply_test

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/pullet/pullet/apply"
)

// TestOrphanByMark: a command that killed its pull before its process was on record is found by its mark, and forgotten when it is gone.
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
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	stop := func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }
	t.Cleanup(stop)
	var orphan *apply.OrphanError
	if err := apply.Orphans(notes); !errors.As(err, &orphan) || orphan.PID <= 1 {
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
