package apply

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Orphan is a command that outlived the pull which started it: the pull was killed. Its process group still runs.
type Orphan struct {
	PID int `json:"pid"` // of the group's leader
	// of the leader, in the kernel's clock ticks: tells it from a later process of the same number
	Started string `json:"started"`
}

// OrphanError says that a command of a pull that was killed still runs: starting it once more would make two.
type OrphanError struct{ Orphan }

func (e *OrphanError) Error() string {
	return "a command of a pull that was killed still runs: " + e.What() + "; " + e.Clear()
}

// What names its process group. The command itself may hold a secret: ps shows it to who may see it.
func (o Orphan) What() string { return fmt.Sprintf("process group %d", o.PID) }

// Clear is how to get rid of it.
func (o Orphan) Clear() string { return fmt.Sprintf("wait for it, or end it with: kill -- -%d", o.PID) }

// ClearOn is Clear for whoever reads it on another host.
func (o Orphan) ClearOn(host string) string {
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
				n.Orphan, _ = marked(n.Mark)
			}
			if n.alive() {
				return &OrphanError{n.Orphan}
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

// alive reports that a process of the group, or of the session that the leader began, still runs. While they have a
// process, even one that nobody has waited for, no other process gets their number; once they have none, another may.
func (o Orphan) alive() bool {
	if o.PID <= 1 {
		return false
	}
	if leader, ok := readStat(strconv.Itoa(o.PID)); ok && leader.started != o.Started {
		return false
	}
	processes, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return true
	}
	return slices.ContainsFunc(processes, func(dir string) bool {
		p, ok := readStat(filepath.Base(dir))
		return ok && (p.group == strconv.Itoa(o.PID) || p.session == strconv.Itoa(o.PID)) && p.state != "Z" &&
			p.state != "X"
	})
}

// recordProcess remembers a command while it runs, and returns how to forget it. A note that cannot be written is no
// reason not to run.
func (h *Host) recordProcess(pid int) (forget func()) {
	leader, _ := readStat(strconv.Itoa(pid))
	return h.writeNote(strconv.Itoa(pid), noted{Orphan: Orphan{pid, leader.started}})
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

// stat is what /proc says of a process; see proc(5).
type stat struct{ state, parent, group, session, started string }

func readStat(pid string) (stat, bool) {
	data, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return stat{}, false
	}
	// The name in brackets may hold anything: the fields are counted behind it.
	fields := strings.Fields(string(data[strings.LastIndexByte(string(data), ')')+1:]))
	if len(fields) < 20 {
		return stat{}, false
	}
	return stat{fields[0], fields[1], fields[2], fields[3], fields[19]}, true
}
