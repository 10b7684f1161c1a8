package process

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
)

// Frozen is a process that was stopped, with the descendants that were stopped with it.
type Frozen struct {
	process     *os.Process
	killed      *atomic.Bool
	done        <-chan struct{}
	descendants []int
}

// Freeze stops the process until it is thawed or killed, and with descendants also everything that it started.
func (p *Process) Freeze(descendants bool) Frozen {
	f := Frozen{process: p.cmd.Process, killed: p.killed, done: p.done}
	if p.cmd.Process.Signal(syscall.SIGSTOP) != nil || !descendants { // after its end another process may have its ID
		return f
	}
	f.descendants = Children(p.PID()) // a stopped process starts no child, and forgets no child that ends
	for i := 0; i < len(f.descendants); i++ {
		_ = syscall.Kill(f.descendants[i], syscall.SIGSTOP)
		f.descendants = append(f.descendants, Children(f.descendants[i])...)
	}
	return f
}

// Descendants returns the process IDs of the frozen descendants.
func (f Frozen) Descendants() []int { return f.descendants }

// Thaw lets the process and its descendants continue.
func (f Frozen) Thaw() { f.signal(syscall.SIGCONT) }

// Kill kills the process and its frozen descendants, and waits for the end of the process.
func (f Frozen) Kill() {
	f.killed.Store(true)
	f.signal(syscall.SIGKILL)
	<-f.done
}

func (f Frozen) signal(s syscall.Signal) {
	for _, pid := range f.descendants {
		_ = syscall.Kill(pid, s) // it may have ended
	}
	_ = f.process.Signal(s)
}

// Children returns the process IDs of the children of a process that have not ended.
func Children(pid int) (out []int) {
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, list := range lists {
		text, _ := os.ReadFile(list) // the thread may have ended
		for _, one := range strings.Fields(string(text)) {
			if n, err := strconv.Atoi(one); err == nil {
				out = append(out, n)
			}
		}
	}
	return out
}

// CopyDir replaces the directory to with a copy of from, as a backup of a stopped process does. If from is missing, to
// is empty.
func CopyDir(from, to string) error {
	if err := os.RemoveAll(to); err != nil {
		return err
	}
	if _, err := os.Stat(from); os.IsNotExist(err) {
		return os.MkdirAll(to, 0o700)
	}
	if out, err := exec.Command("cp", "-a", from, to).CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}
