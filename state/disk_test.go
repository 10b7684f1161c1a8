package state

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"
)

func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// TestDamagedLocal: a record that cannot be read is an error that names the file and says what helps.
func TestDamagedLocal(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "node.json")
	must(t, os.WriteFile(path, []byte(`{"a`), 0o600))
	_, err := LoadLocal(dir)
	if want := path + " is damaged: unexpected end of JSON input; move it away to start anew"; err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	must(t, os.Remove(path), os.Mkdir(path, 0o700)) // nobody is to be given up for what only cannot be read
	if _, err := LoadLocal(dir); !errors.Is(err, syscall.EISDIR) || strings.Contains(err.Error(), "decommission") {
		t.Errorf("%v", err)
	}
}

// TestLocal: a record is read as it was saved, privately; a new node has none.
func TestLocal(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if l, err := LoadLocal(dir); err != nil || !reflect.DeepEqual(l, Local{}) {
		t.Errorf("new: %+v %v", l, err)
	}
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	want := Local{
		Running: &Version{ID: "abc", Release: "v1", Commits: []Commit{{Repo: "main", Commit: "abc"}}}, Validated: true,
		Failed: "def", Failures: 3, LastFailure: at, Labels: map[string]string{"role": "web"}, LastPull: at, Secret: "s",
	}
	must(t, want.Save(dir))
	got, err := LoadLocal(dir)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v %v\nwant %+v", got, err, want)
	}
	info, err := os.Stat(filepath.Join(dir, "node.json"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v %v", info.Mode(), err)
	}
}

// TestRunLock: a second run says who holds the lock, in this process or another one; it is free when the holder ends,
// however it ends.
func TestRunLock(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	mine, err := LockRun(dir, "mine")
	must(t, err)
	wantHeld(t, dir, os.Getpid(), "mine")
	must(t, mine.Release())
	p := startOther(t, "lock", dir)
	wantHeld(t, dir, p.Process.Pid, "theirs")
	p.kill()
	again, err := LockRun(dir, "again")
	must(t, err)
	must(t, again.Release())
	if _, err := LockRun(filepath.Join(dir, "nowhere"), "x"); err == nil || !strings.Contains(err.Error(), "run.lock") {
		t.Errorf("no directory: %v", err)
	}
}

func wantHeld(t *testing.T, dir string, pid int, run string) {
	t.Helper()
	_, err := LockRun(dir, "second")
	var held *LockedError
	if !errors.As(err, &held) || held.PID != pid || held.Run != run || time.Since(held.Since) > time.Minute {
		t.Errorf("got %v, want held by %d, run %s", err, pid, run)
	}
}

// TestSaveSaysWhichFile: an error of a record names the record, and not a file beside it or in /tmp.
func TestSaveSaysWhichFile(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "gone")
	err := Local{}.Save(dir)
	if want := dir + "/node.json cannot be written: no such file or directory"; err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}
