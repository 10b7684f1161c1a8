package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/gofrs/flock"
	"github.com/spf13/cobra"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/internal/agent"
	"github.com/pullet/pullet/internal/program"
	"github.com/pullet/pullet/state"
)

func fallbackCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "fallback", GroupID: "node", Args: noArgs,
		Short: "Put the old pullet back when a new one makes no pull in time",
		Long: "Fallback is what pullet-fallback.service runs when the installed pullet changes, from the copy of the\n" +
			"last pullet that made a pull here (program/pullet in the state directory). It waits until the new one\n" +
			"made a pull. When none comes in time (agent.takeover), it installs its own program again and restarts\n" +
			"pullet-agent.service where that runs. Without systemd cron starts it: docs/node.md.",
		RunE: func(cmd *cobra.Command, _ []string) error { return fallbackCmd{a}.watch(cmd.Context()) },
	}
}

// fallbackCmd is pullet fallback on a host.
type fallbackCmd struct{ *app }

// state is the state directory: that of the configuration, or, where this program cannot read it, the one that it is
// kept in.
func (a fallbackCmd) state() (string, error) {
	config, err := a.readConfig()
	if err == nil {
		return config.Paths.State, nil
	}
	self, unknown := os.Executable()
	if dir := filepath.Dir(self); unknown == nil && filepath.Base(dir) == "program" {
		return filepath.Dir(dir), nil
	}
	return "", err
}

// watch guards the installed program. Only one guard runs at a time.
func (a fallbackCmd) watch(ctx context.Context) (err error) {
	dir, err := a.state()
	if err != nil {
		return err
	}
	if _, err := os.Stat(dir); err != nil {
		return fmt.Errorf("state directory: %w", err)
	}
	one := flock.New(filepath.Join(dir, "fallback.lock"), flock.SetPermissions(0o600))
	if first, err := one.TryLock(); err != nil || !first {
		return err
	}
	defer func() { err = errors.Join(err, one.Unlock()) }()
	guard := program.Guard{
		Installed: program.Kept(dir),
		AtWork:    func() bool { return state.Pulling(dir) },
		Away:      a.away, Version: a.upgrading, Restart: a.restart,
		Say: func(format string, args ...any) { fmt.Fprintf(a.err, format+"\n", args...) },
	}
	return guard.Watch(ctx)
}

// away is why no pull could be made now, whatever the program: nothing starts one, or what it needs does not answer
// this program either.
func (a fallbackCmd) away(ctx context.Context) error {
	config, err := a.readConfig()
	if err != nil {
		return fmt.Errorf("this pullet cannot read the configuration: %w", err)
	}
	if err := a.starts(ctx); err != nil {
		return err
	}
	local, err := config.ReadLocal()
	if err != nil {
		return err
	}
	if len(config.Etcd.Endpoints) > 0 {
		store, err := config.OpenStore(ctx)
		if err == nil {
			err = errors.Join(agent.Nameless(ctx, config, local, store), store.Close())
		}
		if err != nil {
			return err
		}
	}
	for _, f := range doctorCmd(a).repositories(ctx, config) {
		if f.State == bad {
			return fmt.Errorf("%s: %s", f.Check, f.What)
		}
	}
	return nil
}

// The units that pull.
const (
	agentUnit = "pullet-agent.service"
	pullUnit  = "pullet.service"
	timerUnit = "pullet.timer"
)

// starts is why nothing starts pulls here; nil where something does, or nobody can say.
func (a fallbackCmd) starts(ctx context.Context) error {
	if !a.systemd() || enabledUnit(a.rootDir) == "" { // cron does, or nobody
		return nil
	}
	for _, unit := range []string{agentUnit, timerUnit} {
		if is, err := a.is(ctx, unit); err != nil || is != "inactive" {
			return err
		}
	}
	return errors.New("neither " + agentUnit + " nor " + timerUnit + " runs")
}

// upgrading is the version of the fleet that the host is being brought to.
func (a fallbackCmd) upgrading() string {
	config, err := a.readConfig()
	if err != nil {
		return ""
	}
	local, err := config.ReadLocal()
	if err != nil { // the run says what is wrong with it
		return ""
	}
	return local.Upgrading
}

// restart has the program that was put back run: it restarts the agent, unless somebody stopped it, and ends a single
// pull that hangs, so that the timer starts the next.
func (a fallbackCmd) restart(ctx context.Context) error {
	if !a.systemd() {
		return nil
	}
	if is, err := a.is(ctx, pullUnit); err != nil || is == "activating" {
		return errors.Join(err, a.systemctl(ctx, "stop", pullUnit))
	}
	if is, err := a.is(ctx, agentUnit); err != nil || is == "inactive" {
		return err
	}
	return errors.Join(a.systemctl(ctx, "reset-failed", agentUnit), a.systemctl(ctx, "restart", agentUnit))
}

// systemd reports that it runs the services of this host.
func (a fallbackCmd) systemd() bool { return a.rootDir == "/" && booted(a.rootDir) }

// is is the state of a unit.
func (a fallbackCmd) is(ctx context.Context, unit string) (string, error) {
	out, err := a.host().Run(ctx, apply.Command{Args: []string{"systemctl", "is-active", unit}})
	return strings.TrimSpace(out.StdOut), err
}

func (a fallbackCmd) systemctl(ctx context.Context, what, unit string) error {
	args := []string{"systemctl", "--no-block", what, unit}
	out, err := a.host().Run(ctx, apply.Command{Args: args})
	if err == nil && out.ExitCode != 0 {
		err = fmt.Errorf("%s: %s", strings.Join(args, " "), out.Failure())
	}
	return err
}

func (a fallbackCmd) host() *apply.Host { return &apply.Host{Root: a.rootDir} }
