package apply

import (
	"bytes"
	"errors"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/pullet/pullet/apply/proc"
)

// stopVerbs are the commands of systemctl after which a unit does not run as it ran before.
var stopVerbs = []string{"stop", "restart", "try-restart", "reload-or-restart", "condrestart"}

// errItself says that a command told systemd to stop pullet, and waited for that.
var errItself = errors.New("the command stopped pullet, and was ended")

// awaitsEnd reports that a command which runs now waits for pullet to end: no pull can wait for it in turn.
func (h *Host) awaitsEnd() bool {
	h.mu.Lock()
	running := slices.Clone(h.running)
	h.mu.Unlock()
	return slices.ContainsFunc(running, stopsPullet)
}

// stopsPullet reports that a process, or one that came of it, told systemd to stop pullet.
func stopsPullet(pid int) bool { return stopsUnit(pid, OwnUnit()) }

// stopsUnit is stopsPullet for a service; "" is none.
func stopsUnit(pid int, unit string) bool {
	for _, m := range proc.TreeOf(pid).Members() {
		if line, err := os.ReadFile("/proc/" + strconv.Itoa(m.PID) + "/cmdline"); err == nil && stops(line, unit) {
			return true
		}
	}
	return false
}

// stops reports a process that tells systemd to stop a unit, and waits for that. Its command line is as /proc shows it.
func stops(commandLine []byte, unit string) bool {
	var args []string
	for arg := range bytes.SplitSeq(bytes.TrimRight(commandLine, "\x00"), []byte{0}) {
		args = append(args, string(arg))
	}
	names := func(arg string) bool { return strings.TrimSuffix(arg, ".service")+".service" == unit }
	verb := func(arg string) bool { return slices.Contains(stopVerbs, arg) }
	if slices.Contains(args, "--no-block") {
		return false
	}
	return path.Base(args[0]) == "systemctl" && slices.ContainsFunc(args, verb) && slices.ContainsFunc(args[1:], names)
}

// OwnUnit is the service of systemd in which this process runs; "" where it runs in none.
func OwnUnit() string {
	groups, _ := os.ReadFile("/proc/self/cgroup") // without control groups there is no systemd
	return unitOf(string(groups))
}

// unitOf is the service in the control groups of a process, as /proc shows them.
func unitOf(groups string) string {
	for line := range strings.Lines(groups) {
		if name := path.Base(strings.TrimSpace(line)); strings.HasSuffix(name, ".service") {
			return name
		}
	}
	return ""
}

// runs notes a command's process while it runs.
func (h *Host) runs(pid int) (ended func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.running = append(h.running, pid)
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.running = slices.DeleteFunc(h.running, func(one int) bool { return one == pid })
	}
}
