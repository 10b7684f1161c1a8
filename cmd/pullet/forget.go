package main

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/pullet/pullet/cmd/pullet/fleetnames"
	"github.com/pullet/pullet/internal/agent"
	"github.com/pullet/pullet/state"
)

func forgetCommand(a *app) *cobra.Command {
	var job string
	c := &cobra.Command{
		Use: "forget [THING...]", GroupID: "node",
		Short: "Stop reporting what jobs left on this node; it stays on the host",
		Long: "Forget takes things off the list of what a job brought to this node and no job declares any longer.\n" +
			"They stay on the host, and no pull reports or removes them again. A THING is written as pull reports\n" +
			"it, such as 'file /etc/motd'; --job takes all that a job left. Without either, forget lists the\n" +
			"things. To remove what removed jobs left: pullet pull --prune-removed.",
		RunE: func(_ *cobra.Command, things []string) error {
			config, err := a.readConfig()
			if err != nil {
				return err
			}
			if job == "" && len(things) == 0 {
				return forgetCmd{a}.listLeftovers(config)
			}
			return forgetCmd{a}.forget(config, job, things)
		},
	}
	c.Flags().StringVar(&job, "job", "", "all that this job left")
	return c
}

// forgetCmd is pullet forget.
type forgetCmd struct{ *app }

func (a forgetCmd) listLeftovers(c agent.Config) error {
	all, err := agent.Leftovers(c)
	if err != nil {
		return err
	}
	return a.list(all, "THING\tJOB", func(w io.Writer) {
		for _, l := range all {
			fmt.Fprintf(w, "%s\t%s\n", l.Thing, l.Job)
		}
	})
}

// forget forgets all of the things, or none where one of them is not known.
func (a forgetCmd) forget(c agent.Config, job string, things []string) error {
	all, err := agent.Leftovers(c)
	if err != nil {
		return err
	}
	which := func(l agent.Leftover) bool { return job != "" && l.Job == job || slices.Contains(things, l.Thing) }
	if job != "" && !slices.ContainsFunc(all, func(l agent.Leftover) bool { return l.Job == job }) {
		return fmt.Errorf("job %s left nothing on this host; pullet forget lists what there is", job)
	}
	var names []string
	for _, l := range all {
		names = append(names, l.Thing)
	}
	for _, t := range things {
		if !slices.Contains(names, t) {
			return fmt.Errorf(
				"no job left %q on this host%s; pullet forget lists what there is",
				t,
				fleetnames.Suggestion(t, names),
			)
		}
	}
	forgotten, err := agent.Forget(c, which)
	if _, busy := errors.AsType[*state.LockedError](err); busy {
		return &exit{agent.ExitWaiting, err}
	}
	if err != nil {
		return err
	}
	for _, l := range forgotten {
		fmt.Fprintf(a.out, "forgotten: %s of job %s; it stays on the host\n", l.Thing, l.Job)
	}
	return nil
}
