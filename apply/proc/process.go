// Package proc looks at the processes of this host through /proc: see proc(5). It finds what came of a command, also
// after the command's first process has ended.
package proc

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Process is what the kernel says of one process. Its fields are texts as /proc has them.
type Process struct {
	State   string // one letter: R, S, Z, ...
	Parent  string
	Group   string
	Session string
	Started string // in the kernel's clock ticks since the boot
}

// Read returns what /proc says of a process. Its name there is a number or "self". It returns false for one that is
// gone.
func Read(name string) (Process, bool) {
	data, err := os.ReadFile("/proc/" + name + "/stat")
	if err != nil {
		return Process{}, false
	}
	// The name in brackets may hold anything: the fields are counted behind it.
	fields := strings.Fields(string(data[strings.LastIndexByte(string(data), ')')+1:]))
	if len(fields) < 20 {
		return Process{}, false
	}
	return Process{fields[0], fields[1], fields[2], fields[3], fields[19]}, true
}

// Ended reports a process that runs no more, and that nobody has waited for.
func (p Process) Ended() bool { return p.State == "Z" || p.State == "X" }

// ID names one process for good.
type ID struct {
	PID     int    `json:"pid"`
	Started string `json:"started"` // tells it from a later process of the same number; see Process
}

// IDOf returns the ID of a process that runs.
func IDOf(pid int) ID {
	p, _ := Read(strconv.Itoa(pid))
	return ID{pid, p.Started}
}

// GroupRuns reports that a process of the group, or of the session, that this process leads or led still runs. While
// they have a process, even one that nobody has waited for, no other process gets their number; once they have none,
// another may.
func (id ID) GroupRuns() bool {
	if id.PID <= 1 {
		return false
	}
	number := strconv.Itoa(id.PID)
	if leader, ok := Read(number); ok && leader.Started != id.Started {
		return false
	}
	processes, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return true
	}
	return slices.ContainsFunc(processes, func(dir string) bool {
		p, ok := Read(filepath.Base(dir))
		return ok && (p.Group == number || p.Session == number) && !p.Ended()
	})
}
