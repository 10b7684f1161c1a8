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

	"github.com/pullet/pullet/agent"
	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/program"
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
		RunE: func(cmd *cobra.Command, _ []string) error {
			config, err := a.readConfig()
			if err != nil {
				return err
			}
			return fallbackCmd{a, config}.watch(cmd.Context())
		},
	}
}

// fallbackCmd is pullet fallback on a host.
type fallbackCmd struct {
	*app
	config agent.Config
}

// watch guards the installed program. Of several at once only the first does.
func (a fallbackCmd) watch(ctx context.Context) (err error) {
	if _, err := os.Stat(a.config.Paths.State); err != nil {
		return fmt.Errorf("state directory: %w", err)
	}
	one := flock.New(filepath.Join(a.config.Paths.State, "fallback.lock"), flock.SetPermissions(0o600))
	if first, err := one.TryLock(); err != nil || !first {
		return err
	}
	defer func() { err = errors.Join(err, one.Unlock()) }()
	guard := program.Guard{
		Installed: program.At("", a.config.Paths.State),
		AtWork:    func() bool { return state.Pulling(a.config.Paths.State) },
		Away:      a.away, Version: a.upgrading, Restart: a.restart,
		Say: func(format string, args ...any) { fmt.Fprintf(a.err, format+"\n", args...) },
	}
	return guard.Watch(ctx)
}

// away is why no pull could be made now: the fleet's record does not answer this program either.
func (a fallbackCmd) away(ctx context.Context) error {
	if len(a.config.Etcd.Endpoints) == 0 {
		return nil
	}
	store, err := a.config.OpenStore(ctx)
	if err != nil {
		return err
	}
	return store.Close()
}

// upgrading is the version of the fleet that the host is being brought to.
func (a fallbackCmd) upgrading() string {
	local, err := a.config.ReadLocal()
	if err != nil { // the run says what is wrong with it
		return ""
	}
	return local.Upgrading
}

// agentUnit is the service that runs the program without an end.
const agentUnit = "pullet-agent.service"

// restart restarts the agent, unless somebody stopped it. Single pulls begin as the program that is installed then.
func (a fallbackCmd) restart(ctx context.Context) error {
	host := apply.Host{Root: "/"}
	if a.rootDir != "/" {
		return nil
	}
	if _, err := os.Stat("/run/systemd/system"); err != nil { // another init
		return nil
	}
	is, err := host.Run(ctx, apply.Command{Args: []string{"systemctl", "is-active", agentUnit}})
	if err != nil || strings.TrimSpace(is.StdOut) == "inactive" {
		return err
	}
	for _, what := range []string{"reset-failed", "restart"} {
		args := []string{"systemctl", "--no-block", what, agentUnit}
		out, err := host.Run(ctx, apply.Command{Args: args})
		if err != nil {
			return err
		}
		if out.ExitCode != 0 {
			return fmt.Errorf("%s: %s", strings.Join(args, " "), out.Failure())
		}
	}
	return nil
}
