// Package process runs programs that a test kills, freezes and starts again. Tests only.
package process

import (
	"os"
	"os/exec"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
)

// Process is a program that can be killed, frozen and started again. It ends with the test process, even if that is
// killed. The exported fields are set before the first Start.
type Process struct {
	Name string
	Args []string // the program and its arguments
	Env  []string // added to the environment of the test
	Log  string   // file to which stdout and stderr are appended

	// MustLive makes an end of the process an error of the test unless the test killed it.
	MustLive bool

	// Busy is held while a fault is injected into the process, so that faults do not overlap.
	Busy sync.Mutex

	cmd    *exec.Cmd
	killed *atomic.Bool
	done   chan struct{}
}

// Start starts the program. It reports errors with t.Error: faults start processes outside of the goroutine of the
// test.
func (p *Process) Start(t testing.TB) {
	t.Helper()
	out, err := os.OpenFile(p.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		t.Error(err)
		return
	}
	defer out.Close()
	p.cmd = exec.Command(p.Args[0], p.Args[1:]...)
	p.cmd.Env = append(os.Environ(), p.Env...)
	p.cmd.Stdout, p.cmd.Stderr = out, out
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	cmd, killed, done, started := p.cmd, &atomic.Bool{}, make(chan struct{}), make(chan error)
	go func() {
		// The kernel kills the child when the thread that started it ends, so this thread waits for the child.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err != nil {
			return
		}
		defer close(done)
		if err := cmd.Wait(); p.MustLive && !killed.Load() {
			t.Errorf("%s ended by itself: %v\n%s", p.Name, err, p.Output())
		}
	}()
	if err := <-started; err != nil {
		t.Error(err)
		return
	}
	p.killed, p.done = killed, done
}

// Output returns the last 4 KiB of the log.
func (p *Process) Output() string {
	text, err := os.ReadFile(p.Log)
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-4<<10):])
}

// PID returns the process ID of the last start.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Done returns a channel that is closed when the process ends. It is nil before the first start.
func (p *Process) Done() <-chan struct{} { return p.done }

// IsRunning reports whether the process was started and has not ended.
func (p *Process) IsRunning() bool {
	if p.done == nil {
		return false
	}
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// Failed reports whether the process was started and ended with an error, and whether the test killed it.
func (p *Process) Failed() (failed, killed bool) {
	if p.done == nil || p.IsRunning() {
		return false, false
	}
	return !p.cmd.ProcessState.Success(), p.killed.Load()
}

// Kill kills the process, and with descendants everything that it started, and waits for its end. A process that was
// never started has ended.
func (p *Process) Kill(descendants bool) {
	if p.done != nil {
		p.Freeze(descendants).Kill()
	}
}
