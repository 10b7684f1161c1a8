package proc

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/pullet/pullet/internal/patience"
)

// sleeper starts a program that leads a session and sleeps, and returns how to end it. A shell leaves the sleep behind
// as a child when it is ended alone.
func sleeper(t *testing.T, args ...string) (pid int, stop func()) {
	t.Helper()
	cmd := exec.Command(args[0], args[1:]...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	pid = cmd.Process.Pid
	t.Cleanup(func() { _ = syscall.Kill(-pid, syscall.SIGKILL) })
	stop = func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }
	t.Cleanup(stop)
	return pid, stop
}

// TestSessionOutlivesItsLeader: a command whose first process has ended runs as long as another process of its session
// does, also in a group of its own. One that ended and that nobody has waited for runs no more.
func TestSessionOutlivesItsLeader(t *testing.T) {
	for name, script := range map[string]string{
		"a child of its group":   "sleep 60 & echo; wait",
		"a child in a new group": "set -m; sleep 60 & echo; wait", // what a shell does for its jobs
	} {
		t.Run(name, func(t *testing.T) {
			cmd := exec.Command("bash", "-c", script)
			cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			if _, err := out.Read(make([]byte, 1)); err != nil { // the child is there
				t.Fatal(err)
			}
			pid := cmd.Process.Pid
			all := TreeOf(pid)
			t.Cleanup(func() { all.Signal(syscall.SIGKILL) })
			leader, _ := Read(strconv.Itoa(pid))
			o := ID{pid, leader.Started}
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
			if !o.GroupRuns() {
				t.Error("its child runs, and it counts as ended")
			}
			all.Signal(syscall.SIGKILL)
			patience.Until(t, "it counts as ended when all of it was killed", func() bool { return !o.GroupRuns() })
		})
	}
	cmd := exec.Command("true")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Wait() }()
	var p Process
	patience.Until(t, "it ends", func() (ended bool) {
		p, ended = Read(strconv.Itoa(cmd.Process.Pid))
		return ended && p.State == "Z"
	})
	if o := (ID{cmd.Process.Pid, p.Started}); o.GroupRuns() {
		t.Error("it has ended, and counts as running")
	}
}

// TestWhatProcSays: the fields of a process are found whatever its name is; a process that is gone has none.
func TestWhatProcSays(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a) Z 1 (b")
	if err := os.Symlink("/bin/sleep", path); err != nil {
		t.Fatal(err)
	}
	pid, stop := sleeper(t, path, "60")
	executedAs(t, pid)
	got, ok := Read(strconv.Itoa(pid))
	if me := strconv.Itoa(pid); !ok || got.State == "Z" || got.Parent != strconv.Itoa(os.Getpid()) || got.Group != me || got.Session != me {
		t.Errorf("%+v %v", got, ok)
	}
	if ticks, err := strconv.ParseInt(got.Started, 10, 64); err != nil || ticks <= 0 {
		t.Errorf("started %q", got.Started)
	}
	stop()
	if got, ok := Read(strconv.Itoa(pid)); ok {
		t.Errorf("it is gone: %+v", got)
	}
}

// executedAs waits until a process runs its own program.
func executedAs(t *testing.T, pid int) {
	t.Helper()
	patience.Until(t, "the program runs", func() bool {
		line, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
		return err == nil && strings.Contains(string(line), "60")
	})
}
