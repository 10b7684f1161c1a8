package apply

import (
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/pullet/pullet/apply/proc"
	"github.com/pullet/pullet/internal/patience"
)

// TestStops: the command lines that tell systemd to stop a unit, in the forms that people and package scripts use.
func TestStops(t *testing.T) {
	for line, want := range map[string]bool{
		"systemctl restart pullet-agent":                       true,
		"/usr/bin/systemctl --quiet stop pullet-agent.service": true,
		"systemctl try-restart nginx pullet-agent":             true,
		"systemctl restart nginx":                              false,
		"systemctl status pullet-agent":                        false,
		"systemctl reload pullet-agent":                        false,
		"systemctl --no-block stop pullet-agent":               false, // it waits for nothing
		"sh -c systemctl restart pullet-agent":                 false, // its child is the one that waits
		"systemctl condrestart pullet-agent":                   true,
		"systemctl reload-or-restart pullet-agent":             true,
		"systemctl restart pullet-agent.service.d":             false,
		"systemctl restart pullet-agent2":                      false,
		"":                                                     false,
	} {
		if got := stops([]byte(strings.ReplaceAll(line, " ", "\x00")+"\x00"), "pullet-agent.service"); got != want {
			t.Errorf("%q: %v, want %v", line, got, want)
		}
	}
}

// TestStopsUnit: the process that tells systemd to stop a service is found, also as a child of the command. Without a
// service nothing stops it.
func TestStopsUnit(t *testing.T) {
	const args = `exec -a systemctl sh -c 'sleep 60; :' sh restart x.service`
	for name, script := range map[string]string{"itself": args, "its child": "(" + args + ") & wait"} {
		cmd := exec.Command("bash", "-c", script)
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		all := proc.TreeOf(cmd.Process.Pid)
		t.Cleanup(func() { all.Signal(syscall.SIGKILL); _ = cmd.Wait() })
		soon(t, name+" stops x", func() bool { return stopsUnit(cmd.Process.Pid, "x.service") })
		if stopsUnit(cmd.Process.Pid, "y.service") || stopsUnit(cmd.Process.Pid, "") {
			t.Errorf("%s stops another service, or none", name)
		}
	}
}

// soon waits until something holds.
func soon(t *testing.T, what string, holds func() bool) {
	t.Helper()
	patience.Until(t, what, holds)
}

// TestUnitOf: the service of a process, from its control groups of either version.
func TestUnitOf(t *testing.T) {
	for groups, want := range map[string]string{
		"0::/system.slice/pullet-agent.service\n":                                   "pullet-agent.service",
		"12:pids:/system.slice/a.service\n1:name=systemd:/system.slice/b.service\n": "a.service",
		"2:cpu:/\n1:name=systemd:/system.slice/b.service\n":                         "b.service",
		"0::/system.slice/a.service/below\n":                                        "",
		"0::/user.slice/user-0.slice/session-1.scope\n":                             "",
		"0::/\n": "",
		"":       "",
	} {
		if got := unitOf(groups); got != want {
			t.Errorf("%q: %q, want %q", groups, got, want)
		}
	}
}

// TestRunningCommands: a command is known from its start to its end, whichever ends first.
func TestRunningCommands(t *testing.T) {
	var h Host
	one, two, three := h.runs(1<<22+1), h.runs(1<<22+2), h.runs(1<<22+3)
	two()
	if want := []int{1<<22 + 1, 1<<22 + 3}; !slices.Equal(h.running, want) {
		t.Errorf("running %v, want %v", h.running, want)
	}
	if one(); h.awaitsEnd() {
		t.Error("a process that is not there stops pullet")
	}
	if three(); len(h.running) > 0 {
		t.Errorf("running %v, want none", h.running)
	}
}
