package apply

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"github.com/pullet/pullet/apply/proc"
)

// OrphanError says that a command of a pull that was killed still runs: starting it once more would make two.
type OrphanError struct{ proc.ID }

func (o *OrphanError) Error() string {
	return "a command of a pull that was killed still runs: " + o.What() + "; " + o.Clear()
}

// What names its process group. The command itself may hold a secret: ps shows it to who may see it.
func (o *OrphanError) What() string { return fmt.Sprintf("process group %d", o.PID) }

// Clear is how to get rid of it.
func (o *OrphanError) Clear() string {
	return fmt.Sprintf("wait for it, or end it with: kill -- -%d", o.PID)
}

// ClearOn is Clear for whoever reads it on another host.
func (o *OrphanError) ClearOn(host string) string {
	return fmt.Sprintf("wait for it, or end it on %s: kill -- -%d", host, o.PID)
}

// Orphans reports the commands noted in a directory that still run, as an *OrphanError for the first, and forgets the
// others. What they were given to read in private is removed when none runs any more: their notes, which are numbers,
// sort before it.
func Orphans(dir string) error {
	files, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, f := range files {
		path := filepath.Join(dir, f.Name())
		var n noted
		data, err := os.ReadFile(path)
		if err == nil && json.Unmarshal(data, &n) == nil {
			if n.Mark != "" {
				n.ID, _ = proc.SessionWith(markVariable, n.Mark)
			}
			if n.GroupRuns() {
				return &OrphanError{n.ID}
			}
		}
		var left error
		if n.Dir != "" {
			left = os.RemoveAll(n.Dir)
		}
		if err := errors.Join(left, os.Remove(path)); err != nil {
			return err
		}
	}
	return nil
}

// recordProcess remembers a command while it runs, and returns how to forget it. A note that cannot be written is no
// reason not to run.
func (h *Host) recordProcess(pid int) (forget func()) {
	return h.writeNote(strconv.Itoa(pid), noted{ID: proc.IDOf(pid)})
}

func (h *Host) writeNote(name string, n noted) (forget func()) {
	if os.MkdirAll(h.Notes, 0o700) != nil { // also where there is no directory for notes
		return func() {}
	}
	path := filepath.Join(h.Notes, name)
	// Encoding cannot fail: numbers and texts.
	data, _ := json.Marshal(n)
	if os.WriteFile(path, data, 0o600) != nil {
		return func() {}
	}
	return func() { _ = os.Remove(path) } // a note of a process that is gone is dropped by the next pull
}
