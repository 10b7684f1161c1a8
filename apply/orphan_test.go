package apply

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pullet/pullet/apply/proc"
)

// sleeper starts a program that leads a session and sleeps.
func sleeper(t *testing.T) (pid int) {
	t.Helper()
	cmd := exec.Command("sleep", "60")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return cmd.Process.Pid
}

// TestNotesOfAKilledPull: which notes mean that a command still runs, and which are dropped, with the directory that
// they name.
func TestNotesOfAKilledPull(t *testing.T) {
	pid := sleeper(t)
	leader, ok := proc.Read(strconv.Itoa(pid))
	if !ok || leader.Group != strconv.Itoa(pid) || leader.Session != strconv.Itoa(pid) || leader.Parent != strconv.Itoa(os.Getpid()) {
		t.Fatalf("the process is %+v", leader)
	}
	for name, c := range map[string]struct {
		note string
		runs int
	}{
		"it runs":                  {jsonOf(t, proc.ID{PID: pid, Started: leader.Started}), pid},
		"a later process has it":   {jsonOf(t, proc.ID{PID: pid, Started: leader.Started + "0"}), 0},
		"no process has it":        {jsonOf(t, proc.ID{PID: 1 << 22, Started: "1"}), 0},
		"a directory":              {`{"pid":0,"dir":"DIR"}`, 0},
		"this is no process group": {`{"pid":1,"started":""}`, 0},
		"a mark that nobody has":   {`{"mark":"no such mark"}`, 0},
		"cut off":                  {`{"pid":`, 0},
		"empty":                    {"", 0},
	} {
		t.Run(name, func(t *testing.T) {
			notes, private := t.TempDir(), filepath.Join(t.TempDir(), "private")
			if err := errors.Join(os.Mkdir(private, 0o700), os.WriteFile(filepath.Join(private, "secret"), nil, 0o600)); err != nil {
				t.Fatal(err)
			}
			note := filepath.Join(notes, "1")
			if err := os.WriteFile(note, []byte(strings.ReplaceAll(c.note, "DIR", private)), 0o600); err != nil {
				t.Fatal(err)
			}
			err := Orphans(notes)
			var orphan *OrphanError
			if errors.As(err, &orphan) != (c.runs != 0) || orphan != nil && orphan.PID != c.runs || orphan == nil && err != nil {
				t.Errorf("%v, want process %d", err, c.runs)
			}
			if _, err := os.Stat(note); (err == nil) != (c.runs != 0) {
				t.Errorf("the note: %v", err)
			}
			if _, err := os.Stat(private); errors.Is(err, fs.ErrNotExist) != strings.Contains(c.note, "DIR") {
				t.Errorf("the directory: %v", err)
			}
		})
	}
}

func jsonOf(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestOrphanText: what people read of a command that still runs, here and on another host.
func TestOrphanText(t *testing.T) {
	o := &OrphanError{proc.ID{PID: 42}}
	for got, want := range map[string]string{
		o.Error():         "a command of a pull that was killed still runs: process group 42; wait for it, or end it with: kill -- -42",
		o.ClearOn("web1"): "wait for it, or end it on web1: kill -- -42",
	} {
		if got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

// TestNotesOutOfReach: notes that are not there are none; notes that cannot be read or removed are an error, and the
// next pull looks again.
func TestNotesOutOfReach(t *testing.T) {
	dir := t.TempDir()
	if err := Orphans(filepath.Join(dir, "none")); err != nil {
		t.Errorf("no notes: %v", err)
	}
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Orphans(file); !errors.Is(err, syscall.ENOTDIR) {
		t.Errorf("a file for notes: %v", err)
	}
	notes := filepath.Join(dir, "notes")
	if err := os.MkdirAll(filepath.Join(notes, "1", "full"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := Orphans(notes); !errors.Is(err, syscall.ENOTEMPTY) {
		t.Errorf("a note that cannot be removed: %v", err)
	}
	stays := t.TempDir()
	if err := os.WriteFile(filepath.Join(stays, "dir-x"), []byte(jsonOf(t, noted{Dir: stays + "/."})), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Orphans(stays); !errors.Is(err, syscall.EINVAL) { // of a path that ends in a dot nothing is removed
		t.Errorf("a directory that cannot be removed: %v", err)
	}
}

// TestNoteWhileItRuns: a command has a note, for the agent's user alone, as long as it runs: by its mark before its
// process is known. That it cannot be written keeps nothing from running.
func TestNoteWhileItRuns(t *testing.T) {
	notes := filepath.Join(t.TempDir(), "a", "commands")
	h := &Host{Root: "/", Notes: notes}
	forgets := h.recordProcess(os.Getpid())
	self, _ := proc.Read("self")
	note := filepath.Join(notes, strconv.Itoa(os.Getpid()))
	info, err := os.Stat(note)
	if err != nil || info.Mode() != 0o600 {
		t.Fatalf("%v %v", info, err)
	}
	data, err := os.ReadFile(note)
	if want := `{"pid":` + strconv.Itoa(os.Getpid()) + `,"started":"` + self.Started + `"}`; err != nil || string(data) != want {
		t.Errorf("the note is %s %v, want %s", data, err, want)
	}
	forgets()
	mark, forgets := h.noteStart()
	data, err = os.ReadFile(filepath.Join(notes, "command-"+mark))
	if want := `{"pid":0,"started":"","mark":"` + mark + `"}`; err != nil || string(data) != want {
		t.Errorf("before its process is known: %s %v, want %s", data, err, want)
	}
	forgets()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	script := `cd ` + notes + `; until test -e $$ && test ! -e command-$PULLET_COMMAND; do sleep 0.01; done; ls`
	out, err := h.Run(ctx, Command{Args: Shell(script)})
	if _, bad := strconv.Atoi(strings.TrimSpace(out.StdOut)); err != nil || bad != nil {
		t.Errorf("while it runs: notes %q, %v", out.StdOut, err)
	}
	if _, err := h.Run(ctx, Command{Args: Shell("true"), Dir: "/no such directory"}); err == nil {
		t.Error("it ran in a directory that is not there")
	}
	if left, err := os.ReadDir(notes); err != nil || len(left) > 0 {
		t.Errorf("when it ended: %v %v", left, err)
	}
	file := filepath.Join(t.TempDir(), "file")
	full := t.TempDir()
	if err := errors.Join(os.WriteFile(file, nil, 0o600), os.Mkdir(filepath.Join(full, "7"), 0o700)); err != nil {
		t.Fatal(err)
	}
	for _, at := range []string{"", file, file + "/below"} {
		h := &Host{Root: "/", Notes: at}
		if out, err := h.Run(context.Background(), Command{Args: Shell("echo ran")}); err != nil || out.StdOut != "ran\n" {
			t.Errorf("notes at %q: %+v %v", at, out, err)
		}
	}
	(&Host{Notes: full}).writeNote("7", noted{})() // a directory is in its place: it was not written, and stays
	if _, err := os.Stat(filepath.Join(full, "7")); err != nil {
		t.Errorf("what is no note of its own is gone: %v", err)
	}
}
