package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pullet/pullet/internal/harness/process"
	"github.com/pullet/pullet/internal/patience"
	"github.com/pullet/pullet/internal/tier"
)

// until waits for a condition.
func (d *desk) until(what string, is func() bool) {
	d.Helper()
	patience.UntilWithin(d, 30*time.Second, what, is)
}

// living are the processes that a process started, and that live.
func living(pid int) []int {
	return slices.DeleteFunc(process.Children(pid), func(n int) bool { return !alive(n) })
}

// alive reports that a process runs.
func alive(pid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, state, _ := strings.Cut(string(text), ") ")
	return !strings.HasPrefix(state, "Z") && !strings.HasPrefix(state, "X")
}

// withDescendants are a process and all that it, and those, started.
func withDescendants(pid int) (out []int) {
	out = []int{pid}
	for _, c := range living(pid) {
		out = append(out, withDescendants(c)...)
	}
	return out
}

// child is the process that mounts and runs the editor, once there is one: Go starts another before its first, to try
// what the kernel can.
func (s *session) child() (pid int) {
	s.Helper()
	s.until("a child", func() bool {
		for _, c := range living(s.cmd.Process.Pid) {
			if line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", c)); strings.Contains(string(line), editorCommand) {
				pid = c
			}
		}
		return pid != 0
	})
	return pid
}

// dir is the editor's directory, seen from outside.
func (d *desk) dir() string {
	found, _ := filepath.Glob(d.tmp + "/pullet-edit-*")
	return strings.Join(found, "")
}

// waitingEditor is an editor that has saved the text in many files, has a process of its own, and waits for $out/go.
const waitingEditor = `
	for f in "$1" .db.yaml.swp "$TMPDIR/copy"; do { cat "$1" - <"$1"; echo saved; } >"$TMPDIR/new"; cp "$TMPDIR/new" "$f"; done
	sh -c 'while :; do read x <"$0/never"; done' "$out" &
	echo $$ >"$out/at"
	read x <"$out/go"`

// fifos makes what the waiting editor waits for.
func (d *desk) fifos() {
	d.Helper()
	for _, name := range []string{"go", "never"} {
		_ = os.Remove(filepath.Join(d.out, name))
		if err := unix.Mkfifo(filepath.Join(d.out, name), 0o600); err != nil {
			d.Fatal(err)
		}
		if err := os.Chown(filepath.Join(d.out, name), d.uid, -1); err != nil {
			d.Fatal(err)
		}
	}
	_ = os.Remove(d.out + "/at")
}

// editing waits until the waiting editor has saved its text.
func (s *session) editing() {
	s.Helper()
	s.until("the editor waits", func() bool { _, err := os.Stat(s.out + "/at"); return err == nil })
}

// letGo has the waiting editor end.
func (s *session) letGo() {
	s.Helper()
	if err := os.WriteFile(s.out+"/go", []byte("\n"), 0); err != nil {
		s.Fatal(err)
	}
}

// TestEditIsPrivate: while the editor runs, its directory is empty for everybody else.
func TestEditIsPrivate(t *testing.T) {
	asUsers(t, func(d *desk) {
		d.fifos()
		s := d.start(d.script(waitingEditor), d.canary)
		s.editing()
		seen, err := os.ReadDir(d.dir())
		if err != nil || len(seen) > 0 {
			d.Error(seen, err)
		}
		mounts, err := os.ReadFile("/proc/mounts")
		if err != nil || strings.Contains(string(mounts), d.dir()) {
			d.Errorf("%v: %s", err, mounts)
		}
		if os.Geteuid() == 0 {
			s.inside()
		}
		s.letGo()
		if got := s.end(); !strings.HasSuffix(got.Saved, "saved\n") {
			d.Error(got)
		}
		d.nothingLeft(0)
	})
}

// inside looks at the editor's file system as root can: it is what it is said to be, and the child's memory is hidden.
func (s *session) inside() {
	s.Helper()
	inside := fmt.Sprintf("/proc/%d", s.child())
	if text, err := os.ReadFile(inside + "/root" + s.dir() + "/db.yaml"); err != nil || !strings.Contains(string(text), s.canary) {
		s.Errorf("%q, %v", text, err)
	}
	mounts, err := os.ReadFile(inside + "/mounts")
	want := "pullet " + s.dir() + " tmpfs rw,nosuid,nodev,noexec,relatime,size=16384k,mode=700,noswap"
	if s.uid != 0 {
		want = "pullet " + s.dir() + " ramfs rw,nosuid,nodev,noexec,relatime,mode=700"
	}
	_, found, _ := strings.Cut(string(mounts), "pullet ")
	if err != nil || !strings.HasPrefix("pullet "+found, want) && !strings.Contains(found, "ramfs") { // before Linux 6.4
		s.Errorf("%v: %s", err, mounts)
	}
	var st unix.Stat_t
	if err := unix.Stat(inside+"/environ", &st); err != nil || st.Uid != 0 {
		s.Errorf("the memory of the child is shown to uid %d, %v", st.Uid, err)
	}
}

// moments are those at which processes are killed, each with what is to be seen then.
var moments = []struct {
	name    string
	reached func(s *session) bool
	later   bool // there is an editor
}{
	{"the child starts", func(s *session) bool { return s.dir() != "" && s.child() != 0 }, false},
	{"the child mounted", func(s *session) bool {
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/mountinfo", s.child()))
		return strings.Contains(string(text), s.dir())
	}, false},
	{"the text is written", func(s *session) bool {
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/root%s/db.yaml", s.child(), s.dir()))
		return len(text) > 0
	}, false},
	{"the editor saved", func(s *session) bool { s.editing(); return true }, true},
	{"the answer is not read", func(s *session) bool {
		s.editing()
		child := s.child()
		if err := s.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
			s.Fatal(err)
		}
		s.letGo()
		s.until("the editor ended", func() bool { return len(living(child)) <= 1 }) // the one in the background
		return true
	}, false},
}

// victims are the processes to kill: the parent, the child and the editor.
var victims = []string{"parent", "child", "editor", "parent child", "child parent", "parent editor", "editor child", "editor child parent"}

// TestEditKilled: whoever is killed, and when, nothing goes on and no text is left.
func TestEditKilled(t *testing.T) {
	asUsers(t, func(d *desk) {
		if os.Geteuid() != 0 {
			d.Skip("only root sees how far the child is")
		}
		for _, m := range moments {
			for _, who := range victims {
				if strings.Contains(who, "editor") && !m.later {
					continue
				}
				d.fifos()
				s := d.start(d.script(waitingEditor), strings.Repeat(d.canary+"\n", 10000)) // more than a pipe holds
				d.until(m.name, func() bool { return m.reached(s) })
				s.kill(who)
				d.nothingLeft(map[bool]int{true: 1}[strings.Contains(who, "parent")])
				if d.Failed() {
					d.Fatalf("%s: kill %s", m.name, who)
				}
			}
		}
	})
}

// kill kills processes, and waits until all are gone. A parent that lives says that nothing was changed.
func (s *session) kill(who string) {
	s.Helper()
	child := s.child()
	pids := map[string]int{"parent": s.cmd.Process.Pid, "child": child}
	if all := living(child); len(all) > 0 {
		pids["editor"] = all[0]
	}
	all := withDescendants(s.cmd.Process.Pid)
	for _, w := range strings.Fields(who) {
		if err := syscall.Kill(pids[w], syscall.SIGKILL); err != nil && err != syscall.ESRCH { // it died with another
			s.Errorf("%s: %v", w, err)
		}
	}
	if strings.Contains(who, "parent") {
		// One that is killed after another may have ended before.
		if err := s.cmd.Wait(); strings.HasPrefix(who, "parent") && (err == nil || s.cmd.ProcessState.Exited()) {
			s.Errorf("the parent was not killed: %v", err)
		}
		s.answer.Close()
	} else {
		_ = s.cmd.Process.Signal(syscall.SIGCONT)
		if got := s.end(); !strings.HasSuffix(got.Failed, "nothing was changed") || strings.Contains(got.Failed, s.canary) {
			s.Error(got)
		}
	}
	s.until("all are gone", func() bool { return !slices.ContainsFunc(all, alive) })
}

// TestEditorIsInterrupted: an interrupt at the terminal, which all of its processes get, is the editor's.
func TestEditorIsInterrupted(t *testing.T) {
	asUsers(t, func(d *desk) {
		got := d.edit(`trap 'echo interrupted >>"$1"' INT; trap 'echo quit >>"$1"' QUIT; for s in INT INT INT QUIT; do kill -$s 0; done`, d.canary+"\n")
		if got.Saved != d.canary+"\n"+strings.Repeat("interrupted\n", 3)+"quit\n" {
			d.Error(got)
		}
		if got := d.edit(`kill -INT $$`, d.canary); got.Failed != "the editor failed (exit 130): nothing was changed" {
			d.Error(got)
		}
	})
}

// TestEditIsEnded: pullet ends its editor when it is told to end.
func TestEditIsEnded(t *testing.T) {
	asUsers(t, func(d *desk) {
		d.fifos()
		s := d.start(d.script(waitingEditor), d.canary)
		s.editing()
		all := withDescendants(s.cmd.Process.Pid)[1:]
		if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
			d.Fatal(err)
		}
		if got := s.end(); !strings.HasPrefix(got.Failed, "the editor was ended: ") || !strings.HasSuffix(got.Failed, ": nothing was changed") {
			d.Error(got)
		}
		d.until("all are gone", func() bool { return !slices.ContainsFunc(all, alive) })
		d.nothingLeft(0)
	})
}

// TestVimWritesNowhereElse: not even when its user has it keep everything in one directory.
func TestVimWritesNowhereElse(t *testing.T) {
	tier.Program(t, "vim", "vim") // which keeps a history
	asUsers(t, func(d *desk) {
		settings := fmt.Sprintf("set nocompatible undofile backup writebackup swapfile\nset undodir=%[1]s backupdir=%[1]s directory=%[1]s\n"+
			"set viminfo='100,<50,s10 viminfofile=%[1]s/viminfo\nautocmd VimEnter * call Edit()\n"+
			"function! Edit()\n normal yyp\n call writefile([swapname('%%'), &backup, &undofile, &viminfo], '%[2]s/vim')\n wq\nendfunction\n", d.home, d.out)
		if err := os.WriteFile(d.home+"/.vimrc", []byte(settings), 0o644); err != nil {
			d.Fatal(err)
		}
		for _, editor := range []string{"vim -T dumb", "vi -T dumb --not-a-term", "editor -T dumb"} {
			path, err := exec.LookPath(strings.Fields(editor)[0])
			if version, _ := exec.Command(path, "--version").Output(); err != nil || !strings.Contains(string(version), "+viminfo") {
				continue
			}
			if got := d.start(editor, d.canary+"\n").end(); got.Saved != d.canary+"\n"+d.canary+"\n" {
				d.Error(editor, got)
			}
			if saw := d.saw("vim"); saw != "\n0\n0\n\n" {
				d.Errorf("%s: %q", editor, saw)
			}
			if left, err := os.ReadDir(d.home); err != nil || len(left) != 1 {
				d.Errorf("%s: %v, %v", editor, left, err)
			}
			d.nothingLeft(0)
		}
	})
}
