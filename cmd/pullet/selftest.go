package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/internal/agent"
	"github.com/pullet/pullet/internal/program"
	"github.com/pullet/pullet/state"
)

func selftestCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "selftest", GroupID: "node", Args: noArgs,
		Short: "Check that this pullet can work on this host",
		Long: "Selftest reads the configuration, the state directory, the journal and the fleet's record, and compiles\n" +
			"the version that runs here. It changes nothing. A pullet that finds its program replaced runs the new\n" +
			"program's selftest before that takes over; file.managed can do so before the file is replaced at all:\n" +
			"validate: '%s selftest'.\n" +
			"\n" +
			"EXIT STATUS\n" +
			"  0  this pullet can work here\n" +
			"  1  it cannot\n" +
			"  3  the fleet's record does not answer: nothing is known against it",
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			config, err := a.readConfig()
			if err != nil {
				return err
			}
			node, err := agent.New(config, build().Version, a.logger())
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, node.Close()) }()
			err = node.SelfTest(cmd.Context(), func(what string) { fmt.Fprintln(a.out, "read: "+what) })
			if away, ok := errors.AsType[*state.UnreachableError](err); ok && !away.Denied() {
				return &exit{agent.ExitWaiting, err}
			}
			if err == nil {
				_, err = fmt.Fprintf(a.out, "pullet %s can work on %s\n", build().Version, config.Node.Name)
			}
			return err
		},
	}
}

// ownProgram has a pull on a host see to its own program. What is applied below another directory is no host's own, nor
// is a pullet that somebody starts from elsewhere than it is installed.
func ownProgram(node *agent.Agent, root string, c agent.Config) error {
	if root != "/" && c.Agent.Takeover == 0 {
		return nil
	}
	installed, err := program.Open(c.Paths.State)
	if err != nil {
		return err
	}
	is := strings.HasPrefix(apply.OwnUnit(), "pullet") // what units start is what is installed
	if !is {
		is, err = installed.Stays()
	}
	if is {
		node.Program = installed
	}
	return err
}
