package state

import (
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/pullet/pullet/internal/patience"
)

// TestRunLockOfAKilledRun: a run that meets the lock of a process which was just killed gets the lock when the kernel
// frees it, as a zombie and as one that is gone. Here a child of the process has the file a moment longer.
func TestRunLockOfAKilledRun(t *testing.T) {
	for name, reaped := range map[string]bool{"zombie": false, "gone": true} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			holder, child := lockedBy(t, dir)
			wantHeld(t, dir, holder.Process.Pid, "killed")
			must(t, holder.Process.Kill())
			patience.Until(t, "the holder is dead", func() bool { return reaped || dead(holder.Process.Pid) })
			if reaped {
				_ = holder.Wait() // it was killed
			}
			time.AfterFunc(100*time.Millisecond, func() { _ = child.Close() })
			mine, err := LockRun(dir, "mine")
			must(t, err)
			must(t, mine.Release())
		})
	}
}

// lockedBy is a process that holds the run lock, and what ends its child, which has the file open, too.
func lockedBy(t *testing.T, dir string) (holder *exec.Cmd, child *os.File) {
	t.Helper()
	file, err := os.OpenFile(filepath.Join(dir, "run.lock"), os.O_RDWR|os.O_CREATE, 0o600)
	must(t, err)
	in, child, err := os.Pipe()
	must(t, err, syscall.Flock(int(file.Fd()), syscall.LOCK_EX))
	holder = exec.Command("sh", "-c", "cat <&4 & exec sleep 60")
	holder.ExtraFiles = []*os.File{file, in}
	out, err := holder.StdoutPipe()
	must(t, err, holder.Start())
	t.Cleanup(func() {
		_ = holder.Process.Kill()
		_ = holder.Wait()
		_ = child.Close()
	})
	must(t, json.NewEncoder(file).Encode(LockedError{holder.Process.Pid, "killed", time.Now()}), file.Close(), in.Close())
	_, err = child.WriteString("x")
	must(t, err)
	_, err = io.ReadFull(out, make([]byte, 1)) // the child is at work
	must(t, err)
	return holder, child
}
