package unixsocket

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestLongPath: a socket is reached at its path, however long that is, and is gone when its listener is closed.
func TestLongPath(t *testing.T) {
	for _, name := range []string{"d", strings.Repeat("long/", 50)} {
		dir := filepath.Join(t.TempDir(), name)
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, "x.sock")
		l, err := Listen(path)
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			if conn, err := l.Accept(); err == nil {
				_, _ = io.WriteString(conn, "hello") // the other side sees what is missing
				_ = conn.Close()
			}
		}()
		conn, err := Dial(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		if text, err := io.ReadAll(conn); string(text) != "hello" || err != nil {
			t.Errorf("read %q, %v from %s", text, err, path)
		}
		if err := errors.Join(conn.Close(), l.Close()); err != nil {
			t.Error(err)
		}
		if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("after Close: %v", err)
		}
		if conn, err := Dial(t.Context(), path); err == nil {
			t.Errorf("connected to %v, where nobody listens", conn.RemoteAddr())
		}
	}
}

// TestNoDirectory: the directory that is missing is named by its own path.
func TestNoDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), strings.Repeat("missing/", 20))
	if _, err := Listen(filepath.Join(dir, "x.sock")); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), filepath.Clean(dir)) {
		t.Errorf("got %v", err)
	}
}
