package gitremote

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestReadRegular: what is no regular file of a reasonable size is refused, and not waited for.
func TestReadRegular(t *testing.T) {
	dir := t.TempDir()
	pipe, giant, open := filepath.Join(dir, "pipe"), filepath.Join(dir, "giant"), filepath.Join(dir, "open")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{giant, open} {
		if err := os.WriteFile(name, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Truncate(giant, 20<<30); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(giant, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{pipe: "is no regular file (p", giant: "has more than 1048576 bytes", dir: "is no regular file (d", open: "are open to others (mode 0644): chmod 600 "} {
		if _, err := ReadSecret(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", name, err, want)
		}
	}
	if _, err := (TLS{CA: pipe}).roots(); err == nil || !strings.Contains(err.Error(), "is no regular file") {
		t.Errorf("a pipe as ca: %v", err)
	}
}
