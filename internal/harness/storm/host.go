package storm

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/pullet/pullet/internal/harness/link"
	"github.com/pullet/pullet/internal/harness/process"
)

// host is one host with its own state directory, root, and links to etcd. It runs the agent, or single pulls one after
// another, as cron does.
type host struct {
	*process.Process
	notes      *notes
	link       *link.Link
	node, role string
	home       string
	cron       bool
	oldState   string // a copy of its state directory, or ""
	smallDisk  bool   // its state directory is on a small disk
}

// hostLog is the name of the file with the output of pullet in the directory of a host.
const hostLog = "pullet.log"

// cronLoop pulls again and again, each time in a new process. $0 is the directory of the host, and $1 is pullet.
const cronLoop = `while :; do "$1" pull --wait 5s --config "$0/pullet.yaml" --root "$0/root"; sleep 1; done`

// state returns the state directory.
func (h *host) state() string { return filepath.Join(h.home, "state") }

// up starts the agent or the loop of pulls.
func (h *host) up() { h.Start(h.notes.t) }

// down ends everything on the host as a power failure does, with the commands of steps.
func (h *host) down() {
	frozen := h.Freeze(true)
	h.notes.gone(frozen.Descendants())
	frozen.Kill()
}

// killPullet kills pullet and leaves the commands of its steps running. It returns a function that starts pullet again.
func (h *host) killPullet() (restart func()) {
	if !h.cron {
		h.Kill(false)
		return h.up
	}
	for _, pull := range process.Children(h.PID()) {
		_ = syscall.Kill(pull, syscall.SIGKILL) // the loop starts the next one
	}
	return func() {}
}

// killSteps kills the commands of steps and leaves pullet running: a host fault, as if the host ran out of memory. It
// reports whether there were any.
func (h *host) killSteps() bool {
	pullets := []int{h.PID()}
	if h.cron {
		pullets = process.Children(pullets[0])
	}
	var found []int
	for _, p := range pullets {
		found = append(found, process.Children(p)...)
	}
	for i := 0; i < len(found); i++ {
		_ = syscall.Kill(found[i], syscall.SIGSTOP)
		found = append(found, process.Children(found[i])...)
	}
	if len(found) > 0 {
		h.notes.say("sick %s", h.node)
	}
	h.notes.gone(found)
	for _, pid := range found {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	return len(found) > 0
}

// emptyState removes the contents of the state directory.
func (h *host) emptyState() error {
	entries, err := os.ReadDir(h.state())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		err = errors.Join(err, os.RemoveAll(filepath.Join(h.state(), e.Name())))
	}
	return err
}

// mountSmallDisk mounts a small disk at the state directory, with enough space for a fetch, which keeps some free.
func (h *host) mountSmallDisk(t testing.TB) error {
	if err := os.MkdirAll(h.state(), 0o700); err != nil {
		return err
	}
	if err := syscall.Mount("tmpfs", h.state(), "tmpfs", 0, "size=192m,mode=700"); err != nil {
		return err
	}
	h.smallDisk = true
	t.Cleanup(func() {
		for range 50 { // killed processes may still end
			if syscall.Unmount(h.state(), 0) == nil {
				return
			}
			time.Sleep(100 * time.Millisecond)
		}
		t.Errorf("%s is still mounted", h.state())
	})
	return nil
}

// fillDisk fills a small disk until free is called.
func (h *host) fillDisk() (free func() error, err error) {
	path := filepath.Join(h.state(), "filler")
	f, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	for block := make([]byte, 64<<10); err == nil; {
		_, err = f.Write(block)
	}
	if !errors.Is(err, syscall.ENOSPC) {
		return nil, err
	}
	return func() error { return os.Remove(path) }, nil
}
