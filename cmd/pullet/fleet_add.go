package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pullet/pullet/internal/authority"
	"github.com/pullet/pullet/internal/datastore"
	"github.com/pullet/pullet/state"
)

// added are the flags of fleet add.
type added struct {
	invite
	name, ssh, pullet string
	again             bool
}

func fleetAddCommand(a *app) *cobra.Command {
	var o added
	c := &cobra.Command{
		Use: "add USER@HOST", Args: arguments(cobra.ExactArgs(1)),
		Short: "Let a host in over ssh, without a door on the network",
		Long: "Add runs pullet join on the new host over ssh, with the ssh of this host and its settings, and carries\n" +
			"the request and the answer. It runs as root on the host that keeps the datastore. The new host needs\n" +
			"pullet, and a user who is root or may use sudo without a password.",
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.steers(cmd, func(ctx context.Context, store *state.Store) error {
				return fleetCmd{a}.add(ctx, store, args[0], o)
			})
		},
	}
	o.flags(c)
	f := c.Flags()
	f.StringVar(&o.name, "name", "", "the name of the node (default: the host behind the @)")
	f.StringVar(&o.ssh, "ssh", "ssh", "the program, with its options: 'ssh -p 2222'")
	f.StringVar(&o.pullet, "command", "pullet", "the pullet of the new host")
	f.BoolVar(&o.again, "again", false, "although the host is in a fleet already")
	return c
}

// remote is the command line that ssh runs on the new host.
func (o *added) remote(destination string) string {
	line := o.pullet + " join --stdio"
	if o.again {
		line += " --again"
	}
	if user, _, given := strings.Cut(destination, "@"); given && user != "root" {
		line = "sudo -n " + line
	}
	return line
}

func (a fleetCmd) add(ctx context.Context, store *state.Store, destination string, o added) error {
	c, err := a.readConfig()
	if err != nil {
		return err
	}
	if !c.Datastore.Set() {
		return errors.New("this host keeps no datastore: run fleet add on the host that does, or use pullet fleet invite")
	}
	if strings.HasPrefix(destination, "-") {
		return usage(fmt.Errorf("%q is not USER@HOST", destination))
	}
	if _, host, given := strings.Cut(destination, "@"); o.name == "" && given {
		o.name = host
	} else if o.name == "" {
		o.name = destination
	}
	program := append(strings.Fields(o.ssh), destination, o.remote(destination))
	ctx, end := context.WithCancel(ctx)
	defer end()
	ssh := exec.CommandContext(ctx, program[0], program[1:]...)
	ssh.Stderr, ssh.WaitDelay = a.err, endTime
	asks, err := ssh.StdoutPipe()
	if err != nil {
		return err
	}
	answers, err := ssh.StdinPipe()
	if err != nil {
		return err
	}
	if err := ssh.Start(); err != nil {
		return fmt.Errorf("ssh: %w", err)
	}
	late := time.AfterFunc(askTime, end)
	from := bufio.NewReaderSize(asks, maxAsked)
	err = errors.Join(a.answer(ctx, store, c.Datastore, o, from, answers), answers.Close()) // the host waits for the end
	late.Stop()
	if err == nil {
		_, err = io.Copy(a.out, from) // what it prints behind that
	} else { // a host that goes on all the same is left
		time.AfterFunc(endTime, end)
	}
	if ended := ssh.Wait(); ended != nil {
		return errors.Join(err, fmt.Errorf("%s on %s: %w", o.remote(destination), destination, ended))
	}
	return err
}

const (
	maxAsked = 64 << 10        // bytes that a new host may ask
	askTime  = 5 * time.Minute // until it asks: somebody may have to type a password
	endTime  = 2 * time.Second // for a host that cannot join to say why, and to end
)

// answer answers the request of the new host: it carries that to the door, and the answer back.
func (a fleetCmd) answer(
	ctx context.Context, store *state.Store, d datastore.Config, o added, asks *bufio.Reader, answers io.Writer,
) error {
	line, err := asks.ReadSlice('\n')
	if err != nil {
		return fmt.Errorf("the host asked nothing: %w", err)
	}
	asked, err := authority.ReadAsked(line)
	if err != nil {
		return err
	}
	if asked.Token, err = o.record(ctx, store, o.name, a.operator()); err != nil {
		return err
	}
	answer, err := authority.AskInside(ctx, d.DoorSocket(), asked)
	if err != nil {
		return err
	}
	return json.NewEncoder(answers).Encode(answer)
}
