package hostfile_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/pullet/pullet/apply/hostfile"
)

// TestReadWhileReplaced: a file that an editor replaces by a rename can be read at every moment.
func TestReadWhileReplaced(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	path, next := filepath.Join(top, "fstab"), filepath.Join(top, "next")
	write := func(name string) {
		if err := os.WriteFile(name, []byte("whole\n"), 0o600); err != nil {
			t.Error(err)
		}
	}
	write(path)
	at, err := hostfile.Root("/").Entry(path)
	if err != nil {
		t.Fatal(err)
	}
	defer at.Close()
	ended, end := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-end:
				return
			default:
			}
			write(next)
			if err := os.Rename(next, path); err != nil {
				t.Error(err)
			}
		}
	}()
	for range 20_000 {
		if text, err := at.ReadFile(100); err != nil || string(text) != "whole\n" {
			t.Errorf("%q, %v", text, err)
			break
		}
	}
	close(end)
	<-ended
}
