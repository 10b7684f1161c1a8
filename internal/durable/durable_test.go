package durable

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestJSON: what was placed is read again, for this user only and with a line end; a file that is not there changes
// nothing.
func TestJSON(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a.json")
	got := map[string]int{"old": 1}
	if err := ReadJSON(path, &got); err != nil || got["old"] != 1 {
		t.Errorf("no file: %v, %v", got, err)
	}
	for _, n := range []int{2, 3} {
		if err := WriteJSON(path, map[string]int{"new": n}); err != nil {
			t.Fatal(err)
		}
		if err := ReadJSON(path, &got); err != nil || got["new"] != n {
			t.Errorf("%v, %v", got, err)
		}
	}
	text, err := os.ReadFile(path)
	info, failed := os.Stat(path)
	if errors.Join(err, failed) != nil || string(text) != "{\"new\":3}\n" || info.Mode().Perm() != 0o600 {
		t.Errorf("%q, %v, %v, %v", text, info.Mode(), err, failed)
	}
}

// TestDamaged: a file that does not say what it should is left alone, and the error names it.
func TestDamaged(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a.json")
	for _, text := range []string{"", `{"a`, `"a"`, "\x00\x00"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		var damaged *DamagedError
		if err := ReadJSON(path, &map[string]int{}); !errors.As(err, &damaged) || !strings.HasPrefix(err.Error(), path+" is damaged: ") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// TestOldStays: a file that cannot be replaced is the old one, whole, and nothing is left beside it.
func TestOldStays(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "a")
	if err := errors.Join(os.Mkdir(path, 0o700), os.WriteFile(filepath.Join(path, "old"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	if err := Place(path, []byte("new")); err == nil || !strings.HasPrefix(err.Error(), path+" cannot be written: ") {
		t.Error(err)
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 1 {
		t.Errorf("%v, %v", left, err)
	}
}

// TestWrite: a file that is written is there as a whole, for this user only, or not at all.
func TestWrite(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path, bad := filepath.Join(dir, "a"), errors.New("no more")
	write := func(text string, err error) error {
		return Write(path, func(w io.Writer) error {
			_, failed := io.WriteString(w, text)
			return errors.Join(failed, err)
		})
	}
	if err := write("first", nil); err != nil {
		t.Fatal(err)
	}
	if err := write("second", bad); !errors.Is(err, bad) {
		t.Error(err)
	}
	text, err := os.ReadFile(path)
	info, failed := os.Stat(path)
	if errors.Join(err, failed) != nil || string(text) != "first" || info.Mode().Perm() != 0o600 {
		t.Errorf("%q, %v, %v, %v", text, info.Mode(), err, failed)
	}
	if names, err := os.ReadDir(dir); err != nil || len(names) != 1 {
		t.Error(names, err)
	}
	if err := Write(path+"/b", nil); err == nil {
		t.Error("a file is no directory")
	}
}
