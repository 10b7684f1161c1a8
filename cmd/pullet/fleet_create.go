package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/pullet/pullet/internal/agent"
	"github.com/pullet/pullet/internal/datastore"
)

// fleetCreate are the flags of fleet create.
type fleetCreate struct {
	datastore.Config
	address, operator string
	noDoor            bool
}

func fleetCreateCommand(a *app) *cobra.Command {
	var o fleetCreate
	c := &cobra.Command{
		Use: "create", Args: noArgs,
		Short: "Make this host the one that keeps the fleet's datastore",
		Long: "Create makes a datastore on this host: an authority for certificates, an etcd with TLS that believes\n" +
			"it, and the first two certificates, for this host and for its operator. What this host knew of its\n" +
			"own fleet goes on there. The configuration needs its repositories before: hosts that join get them,\n" +
			"with the files that they name, such as a deploy key. pullet etcd serves the datastore.",
		RunE: func(cmd *cobra.Command, _ []string) error { return fleetCmd{a}.createFleet(cmd.Context(), o) },
	}
	f := c.Flags()
	f.StringVar(&o.address, "address", "", "the name or address at which other hosts reach this one (default: its name)")
	f.StringVar(
		&o.Client,
		"client",
		"",
		"HOST:PORT of the datastore (default: the address, port "+datastore.ClientPort+")",
	)
	f.StringVar(&o.Door, "door", "", "HOST:PORT at which hosts join (default: the address, port "+datastore.DoorPort+")")
	f.StringVar(&o.Peer, "peer", "", "HOST:PORT for further members (default: the address, port "+datastore.PeerPort+")")
	f.BoolVar(&o.noDoor, "no-door", false, "nobody joins over the network: fleet add lets hosts in over ssh")
	f.StringVar(
		&o.Dir, "dir", "", "where the datastore is kept (default: "+string(agent.DefaultDatastore)+" below --root)",
	)
	f.StringVar(&o.operator, "operator", "admin", "the name of the operator who has the first certificate")
	return c
}

// complete fills in the defaults.
func (o *fleetCreate) complete(c agent.Config) error {
	if o.address == "" {
		var err error
		if o.address, err = os.Hostname(); err != nil {
			return fmt.Errorf("this host has no name, say --address: %w", err)
		}
	}
	o.Client = cmp.Or(o.Client, net.JoinHostPort(o.address, datastore.ClientPort))
	if o.noDoor && o.Door != "" {
		return usage(errors.New("--door and --no-door exclude each other"))
	}
	o.Peer = cmp.Or(o.Peer, net.JoinHostPort(o.address, datastore.PeerPort))
	if !o.noDoor {
		o.Door = cmp.Or(o.Door, net.JoinHostPort(o.address, datastore.DoorPort))
	}
	o.Dir = cmp.Or(o.Dir, c.Datastore.Dir)
	return usage(o.Check())
}

func (a fleetCmd) createFleet(ctx context.Context, o fleetCreate) error {
	c, err := a.readConfig()
	if err != nil {
		return err
	}
	if err := o.complete(c); err != nil {
		return err
	}
	made, err := c.CreateFleet(ctx, o.Config, o.operator, time.Now())
	if err != nil {
		return err
	}
	fmt.Fprintf(a.out, "the fleet %s has a datastore in %s, for hosts at %s\n", c.Fleet, o.Dir, o.Endpoint())
	fmt.Fprintf(a.out, "its authority is %s: keep a copy of %s offline\n", made.Fingerprint, made.Authority)
	fmt.Fprintf(a.out, "serve it: systemctl enable --now pullet-etcd (or: pullet etcd)\n")
	how := "invite NAME"
	if o.Door == "" {
		how = "add user@host"
	}
	fmt.Fprintf(a.out, "let a host in: pullet fleet %s\n", how)
	return nil
}
