package apply

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pullet/pullet/apply/proc"
)

// errReboot is why a run ends that goes on after a boot.
var errReboot = errors.New("the host boots, and the run goes on behind this step")

// errTurn is why a run ends that would make the host boot when it is not its turn.
var errTurn = errors.New("the host has to boot, and waits for its turn")

// errResult is why a step waits that would change the host without its turn.
var errResult = errors.New("a result that it reads is new: the host changes when it is its turn")

// Boot identifies the boot of this machine. A container or a namespace that starts anew has booted too: the kernel's
// boot_id alone would not tell.
func Boot() string {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "unknown"
	}
	init, _ := proc.Read("1")
	return strings.TrimSpace(string(id)) + "/" + init.Started
}

// Up is how long this boot lasts, suspended times included; see Boot.
func Up() time.Duration {
	var now unix.Timespec
	init, ok := proc.Read("1")
	ticks, err := strconv.ParseInt(init.Started, 10, 64)
	if !ok || err != nil || unix.ClockGettime(unix.CLOCK_BOOTTIME, &now) != nil { // every Linux since 2.6.39 has them
		return 0
	}
	return time.Duration(now.Nano()) - time.Duration(ticks)*time.Second/ticksPerSecond
}

// ticksPerSecond is in what /proc counts: USER_HZ, which is 100 on every architecture that Go runs on.
const ticksPerSecond = 100

// Reboot makes the machine boot. It returns when that was asked for, some moments before everything ends.
func (h *Host) Reboot(ctx context.Context) error {
	for _, command := range [][]string{{"systemctl", "reboot"}, {"reboot"}} {
		out, err := h.Run(ctx, Command{Args: command})
		if err == nil && out.ExitCode == 0 {
			return nil
		}
		if err == nil {
			err = errors.New(out.Failure())
		}
		if command[0] == "reboot" {
			return fmt.Errorf("the host cannot be made to boot: %w", err)
		}
	}
	return nil
}
