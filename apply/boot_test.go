package apply

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pullet/pullet/apply/proc"
)

// TestAskForABoot: systemd is asked first, and reboot where that does not work. What the last one says is the error.
func TestAskForABoot(t *testing.T) {
	const fails, works = "echo no bus >&2; exit 1", "exit 0"
	for name, c := range map[string]struct{ systemctl, reboot, ran, want string }{
		"systemd does it":          {works, works, "systemctl reboot;", ""},
		"systemd refuses":          {fails, works, "systemctl reboot;reboot ;", ""},
		"no systemd":               {"", works, "reboot ;", ""},
		"both refuse":              {fails, fails, "systemctl reboot;reboot ;", "the host cannot be made to boot: exit code 1: no bus"},
		"systemd refuses, no more": {fails, "", "systemctl reboot;", "the host cannot be made to boot: cannot start reboot: there is no such program on this host (PATH is BIN)"},
		"neither is there":         {"", "", "", "the host cannot be made to boot: cannot start reboot: there is no such program on this host (PATH is BIN)"},
	} {
		t.Run(name, func(t *testing.T) {
			bin := t.TempDir()
			for program, does := range map[string]string{"systemctl": c.systemctl, "reboot": c.reboot} {
				text := "#!/bin/sh\necho -n \"" + program + " $*;\" >> " + bin + "/ran\n" + does + "\n"
				if does == "" {
					continue
				}
				if err := os.WriteFile(filepath.Join(bin, program), []byte(text), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			h := &Host{Root: "/", Env: map[string]string{"PATH": bin}}
			got := ""
			if err := h.Reboot(context.Background()); err != nil {
				got = err.Error()
			}
			if want := strings.ReplaceAll(c.want, "BIN", bin); got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
			if ran, _ := os.ReadFile(filepath.Join(bin, "ran")); string(ran) != c.ran {
				t.Errorf("ran %q, want %q", ran, c.ran)
			}
		})
	}
}

// TestBootIsNamed: a boot is the kernel's, and that of the first process here; it does not change while this process
// runs.
func TestBootIsNamed(t *testing.T) {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		t.Fatal(err)
	}
	first, ok := proc.Read("1")
	want := strings.TrimSpace(string(id)) + "/" + first.Started
	if got := Boot(); !ok || got != want || got != Boot() || strings.ContainsAny(got, " \n") {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestUpSinceTheFirstProcess: the boot lasts since the first process started, by the clock that goes on while the
// machine sleeps.
func TestUpSinceTheFirstProcess(t *testing.T) {
	clock := func() time.Duration {
		var now unix.Timespec
		if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &now); err != nil {
			t.Fatal(err)
		}
		return time.Duration(now.Nano())
	}
	first, _ := proc.Read("1")
	started, err := time.ParseDuration(first.Started + "0ms") // in hundredths of a second
	if err != nil {
		t.Fatal(err)
	}
	before := clock()
	up := Up()
	if after := clock(); up < before-started || up > after-started {
		t.Errorf("up for %v, want %v to %v", up, before-started, after-started)
	}
}
