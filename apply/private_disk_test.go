package apply

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// privateLeft are the private directories in the directory for temporary files.
func privateLeft(t *testing.T) []string {
	t.Helper()
	left, err := filepath.Glob(filepath.Join(os.TempDir(), "pullet-*"))
	if err != nil {
		t.Fatal(err)
	}
	return left
}

// TestPrivateDirNoted: a private directory has a note as long as it is there, and none on a host without notes.
func TestPrivateDirNoted(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	notes := filepath.Join(t.TempDir(), "a", "commands")
	for _, at := range []string{notes, ""} {
		dir, remove, err := (&Host{Notes: at}).PrivateDir()
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "x"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		note := filepath.Join(notes, "dir-"+filepath.Base(dir))
		text, err := os.ReadFile(note)
		if want := fmt.Sprintf(`{"pid":0,"started":"","dir":%q}`, dir); at != "" && (err != nil || string(text) != want) || at == "" && err == nil {
			t.Errorf("notes at %q: %s %v, want %s", at, text, err, want)
		}
		if info, err := os.Stat(note); err == nil && info.Mode() != 0o600 {
			t.Errorf("the note has %v", info.Mode())
		}
		if err := remove(); err != nil {
			t.Errorf("notes at %q: %v", at, err)
		}
		if _, err := os.Stat(note); !errors.Is(err, fs.ErrNotExist) || len(privateLeft(t)) > 0 {
			t.Errorf("notes at %q: left are %v and the note: %v", at, privateLeft(t), err)
		}
	}
}

// TestPrivateDirFails: what cannot be made or noted is an error, and leaves nothing.
func TestPrivateDirFails(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		temp, notes, want string
		is                error
	}{
		"no directory for it":    {filepath.Join(dir, "none"), "", "cannot make a temporary directory: ", fs.ErrNotExist},
		"a file for the notes":   {dir, file, "cannot note a temporary directory: ", syscall.ENOTDIR},
		"a file above the notes": {dir, file + "/notes", "cannot note a temporary directory: ", syscall.ENOTDIR},
	} {
		t.Setenv("TMPDIR", c.temp)
		h := &Host{Notes: c.notes}
		_, remove, err := h.PrivateDir()
		if err == nil || !strings.HasPrefix(err.Error(), c.want) || !errors.Is(err, c.is) || remove != nil || len(privateLeft(t)) > 0 {
			t.Errorf("%s: %v; left %v", name, err, privateLeft(t))
		}
		if _, _, err := h.PrivateFile("x", "", nil); err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s, a file: %v", name, err)
		}
	}
}

// TestPrivateFileFails: a file that cannot be written, or whose user nobody knows, leaves nothing.
func TestPrivateFileFails(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	h := &Host{Notes: filepath.Join(t.TempDir(), "commands")}
	for name, c := range map[string]struct{ file, user, want string }{
		"no directory for it": {"none/x", "", "cannot write a temporary file: "},
		"no such user":        {"x", "no-such-user", `user "no-such-user": `},
	} {
		path, remove, err := h.PrivateFile(c.file, c.user, []byte("secret"))
		if err == nil || !strings.HasPrefix(err.Error(), c.want) || path != "" || remove != nil {
			t.Errorf("%s: %q %v", name, path, err)
		}
		left, err := os.ReadDir(h.Notes)
		if err != nil && !errors.Is(err, fs.ErrNotExist) || len(left) > 0 || len(privateLeft(t)) > 0 {
			t.Errorf("%s: left %v %v, notes %v", name, privateLeft(t), err, left)
		}
	}
}

// TestPrivateFileOfAUser: the user who is to read a file has it and its directory, and may still not write it.
func TestPrivateFileOfAUser(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("gives a file to another user: needs root")
	}
	t.Setenv("TMPDIR", t.TempDir())
	nobody, err := user.Lookup("nobody")
	if err != nil {
		t.Fatal(err)
	}
	path, remove, err := (&Host{}).PrivateFile("x", "nobody", []byte("secret"))
	if err != nil {
		t.Fatal(err)
	}
	for at, mode := range map[string]fs.FileMode{path: 0o400, filepath.Dir(path): 0o700 | fs.ModeDir} {
		info, err := os.Stat(at)
		if err != nil {
			t.Fatal(err)
		}
		st := info.Sys().(*syscall.Stat_t)
		if info.Mode() != mode || strconv.Itoa(int(st.Uid)) != nobody.Uid || strconv.Itoa(int(st.Gid)) != nobody.Gid {
			t.Errorf("%s: %v of %d:%d, want %v of %s:%s", at, info.Mode(), st.Uid, st.Gid, mode, nobody.Uid, nobody.Gid)
		}
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != "secret" {
		t.Errorf("%q %v", text, err)
	}
	if err := remove(); err != nil || len(privateLeft(t)) > 0 {
		t.Errorf("%v; left %v", err, privateLeft(t))
	}
}

// TestRenamed: the text has the name that people know, and the error is still what it was.
func TestRenamed(t *testing.T) {
	err := Renamed(&fs.PathError{Op: "open", Path: "/tmp/pullet-1/x", Err: syscall.EIO}, "/tmp/pullet-1/x", "files/x")
	if err.Error() != "open files/x: input/output error" || !errors.Is(err, syscall.EIO) || FaultOf(err) != HostFault {
		t.Errorf("%v, fault %s", err, FaultOf(err))
	}
}
