package ownfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestCheck: what somebody else can write, on any part of the way to a file, is refused.
func TestCheck(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("gives files to other users: needs root")
	}
	for name, c := range map[string]struct {
		change func(dir string) error
		want   string // DIR is the directory
	}{
		"as it should be": {func(string) error { return nil }, ""},
		"group of root":   {func(d string) error { return os.Chmod(d+"/a/file", 0o664) }, ""},
		"everybody writes the file": {func(d string) error { return os.Chmod(d+"/a/file", 0o666) },
			"DIR/a/file can be written by everybody (mode 0666): chmod o-w DIR/a/file"},
		"everybody writes the directory": {func(d string) error { return os.Chmod(d+"/a", 0o777) },
			"DIR/a, on the way to DIR/a/file, can be written by everybody (mode 0777): chmod o-w DIR/a"},
		"sticky": {func(d string) error { return os.Chmod(d+"/a", 0o777|fs.ModeSticky) }, ""},
		"a group writes it": {func(d string) error { return errors.Join(os.Chown(d+"/a/file", 0, 4), os.Chmod(d+"/a/file", 0o660)) },
			"DIR/a/file can be written by group 4 (mode 0660): chmod g-w DIR/a/file"},
		"a user's file": {func(d string) error { return os.Chown(d+"/a/file", 1000, 0) },
			"DIR/a/file belongs to user 1000, and pullet runs as root: chown -h 0 DIR/a/file"},
		"a user's directory": {func(d string) error { return os.Chown(d+"/a", 1000, 0) },
			"DIR/a, on the way to DIR/a/file, belongs to user 1000, and pullet runs as root: chown -h 0 DIR/a"},
		"a link to a good file": {func(d string) error {
			return errors.Join(os.Rename(d+"/a", d+"/b"), os.Symlink("b", d+"/a"))
		}, ""},
		"a user's link": {func(d string) error {
			return errors.Join(os.Rename(d+"/a", d+"/b"), os.Symlink("b", d+"/a"), os.Lchown(d+"/a", 1000, 0))
		}, "DIR/a, on the way to DIR/a/file, belongs to user 1000, and pullet runs as root: chown -h 0 DIR/a"},
		"a link through a user's directory": {func(d string) error {
			return errors.Join(os.Mkdir(d+"/his", 0o755), os.Rename(d+"/a", d+"/his/a"), os.Symlink("his/a", d+"/a"), os.Chown(d+"/his", 1000, 0))
		}, "DIR/his, on the way to DIR/a/file, belongs to user 1000, and pullet runs as root: chown -h 0 DIR/his"},
		"a loop": {func(d string) error {
			return errors.Join(os.Remove(d+"/a/file"), os.Symlink("file", d+"/a/file"))
		}, "open DIR/a/file: too many levels of symbolic links"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			must(t, os.Mkdir(dir+"/a", 0o755))
			must(t, os.WriteFile(dir+"/a/file", []byte("text"), 0o644))
			must(t, c.change(dir))
			text, err := Read(dir + "/a/file")
			if c.want == "" {
				if err != nil || string(text) != "text" {
					t.Errorf("%q, %v", text, err)
				}
				return
			}
			if want := strings.ReplaceAll(c.want, "DIR", dir); err == nil || err.Error() != want {
				t.Errorf("got  %v\nwant %s", err, want)
			}
		})
	}
}

// TestAsUser: a user's own files are good for the user.
func TestAsUser(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("becomes another user: needs root")
	}
	dir := t.TempDir()
	must(t, os.Chmod(filepath.Dir(dir), 0o755))
	must(t, os.Chmod(dir, 0o755))
	file := filepath.Join(dir, "file")
	must(t, os.WriteFile(file, nil, 0o664))
	must(t, os.Chown(file, 1000, 1000))
	if err := Check(file); err == nil {
		t.Error("root takes a user's file")
	}
	must(t, syscall.Setegid(1000))
	must(t, syscall.Seteuid(1000))
	err := Check(file)
	must(t, syscall.Seteuid(0))
	must(t, syscall.Setegid(0))
	if err != nil {
		t.Error(err)
	}
}

// TestPrivate: credentials that others can read are refused.
func TestPrivate(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	must(t, os.WriteFile(file, nil, 0o640))
	want := "credentials in " + file + " are open to others (mode 0640): chmod 600 " + file
	if err := Private(file); err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	must(t, os.Chmod(file, 0o600))
	if err := Private(file); err != nil {
		t.Error(err)
	}
	if err := Private(file + ".not"); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}
