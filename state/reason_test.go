package state

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// TestReasonOf: an error is said in plain words, with why there is no connection where the client says only that time
// is over.
func TestReasonOf(t *testing.T) {
	other := errors.New("permission denied")
	for _, c := range []struct {
		text string
		err  error
		want string
	}{
		{"", context.DeadlineExceeded, "no answer in time"},
		{"the certificate expired", context.DeadlineExceeded, "the certificate expired"},
		{"", other, "permission denied"},
		{"the certificate expired", other, "permission denied: the certificate expired"},
	} {
		r := &reason{text: c.text}
		err := r.of(c.err)
		if err == nil || err.Error() != c.want || !errors.Is(err, c.err) {
			t.Errorf("%q, %v: %v, not %q", c.text, c.err, err, c.want)
		}
	}
}

// TestReadableWithoutDatabase: a member whose log is there and whose database is not does not start as a new one.
func TestReadableWithoutDatabase(t *testing.T) {
	for _, name := range []string{"gone", "empty"} {
		dir := filepath.Join(t.TempDir(), "member")
		must(t, os.MkdirAll(filepath.Join(dir, "member", "wal"), 0o700))
		must(t, os.WriteFile(filepath.Join(dir, "member", "wal", "0.wal"), []byte("x"), 0o600))
		if name == "empty" {
			must(t, os.MkdirAll(filepath.Join(dir, "member", "snap"), 0o700))
			must(t, os.WriteFile(filepath.Join(dir, "member", "snap", "db"), nil, 0o600))
		}
		if err := readable(dir); err == nil || err.Error() != "its database is gone" {
			t.Errorf("%s: %v", name, err)
		}
	}
}
