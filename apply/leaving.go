package apply

import (
	"context"
	"errors"
	"os"
	"strings"
	"time"

	"github.com/godbus/dbus/v5"
)

// errLeaving is why a run ends behind a command that asked for a boot, such as reboot.
var errLeaving = errors.New("the host shuts down, and the run goes on behind this step after the boot")

// askTime is how long logind may take to answer.
const askTime = 2 * time.Second

// Leaving reports that a shutdown of this machine is pending or scheduled: a command such as reboot returns before
// anything ends.
func Leaving(ctx context.Context) bool {
	if _, err := os.Stat("/run/systemd/system"); err != nil { // another init
		return false
	}
	if _, err := os.Stat("/run/systemd/shutdown/scheduled"); err == nil {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	bus, err := dbus.ConnectSystemBus(dbus.WithContext(ctx))
	if err != nil { // it ends early in a shutdown, and many containers have none
		return stopping(ctx)
	}
	defer bus.Close()
	preparing, err := bus.Object("org.freedesktop.login1", "/org/freedesktop/login1").
		GetProperty("org.freedesktop.login1.Manager.PreparingForShutdown")
	if yes, ok := preparing.Value().(bool); err == nil && ok && yes {
		return true
	}
	is, err := bus.Object("org.freedesktop.systemd1", "/org/freedesktop/systemd1").
		GetProperty("org.freedesktop.systemd1.Manager.SystemState")
	if err != nil {
		return stopping(ctx)
	}
	return is.Value() == "stopping"
}

// stopping asks systemd without the bus. It knows of a shutdown once logind let it begin.
func stopping(ctx context.Context) bool {
	h := Host{Root: "/"}
	out, err := h.Run(ctx, Command{Args: []string{"systemctl", "is-system-running"}})
	return err == nil && strings.TrimSpace(out.StdOut) == "stopping"
}

// leaves reports that the step's command asked for a boot. The run ends behind it, as behind a step that makes the host
// boot: the step counts as done once the host booted.
func (g *gating) leaves(ctx context.Context) bool {
	leaving := g.s.x.options.Host.Leaving
	if _, command := g.s.step.act.(OutcomeRules); !command || leaving == nil || g.s.step.job.Validation || !leaving(ctx) {
		return false
	}
	line := *g.s.r
	line.Diff = ""
	line.Result.Result, line.Result.Changed = "ok", line.Outcome == Changed
	if line.Result.State == "" {
		line.Result.State = "booted"
	}
	onDisk := g.s.record(line)
	g.s.x.mu.Lock()
	err := g.s.x.options.Journal.StartBoot(g.s.step.ID(), g.s.x.options.Host.Boot, g.s.entry.key(), onDisk)
	g.s.x.mu.Unlock()
	if err != nil {
		g.s.failRun(err)
		return true
	}
	g.s.boots(errLeaving, &g.s.x.report.Leaving)
	return true
}

// stillLeaving reports a command that asked for a boot which has not come yet: to run it again would ask for another
// one.
func (g *gating) stillLeaving(ctx context.Context) bool {
	leaving := g.s.x.options.Host.Leaving
	if _, itself := g.s.step.act.(Rebooter); itself || leaving == nil || !leaving(ctx) {
		return false
	}
	g.s.boots(errLeaving, &g.s.x.report.Leaving)
	return true
}
