package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/pullet/pullet/internal/authority"
	"github.com/pullet/pullet/internal/safetext"
	"github.com/pullet/pullet/state"
)

// invite are the flags of fleet invite and fleet add.
type invite struct {
	lasts            time.Duration
	labels           map[string]string
	operator, viewer bool
}

// maxInvitation is how long an invitation may be valid: a token that lies around is a key.
const maxInvitation = 7 * 24 * time.Hour

func fleetInviteCommand(a *app) *cobra.Command {
	var o invite
	c := &cobra.Command{
		Use: "invite NAME", Args: arguments(cobra.ExactArgs(1)),
		Short: "Print the line with which a host or a person joins",
		Long: "Invite prints a line for the new host: it has a token that is valid once, for that name and for an\n" +
			"hour, and the fingerprint of the fleet's authority, so that the host knows whom it asks. Keep the\n" +
			"line secret until it was used. A host that was reinstalled is invited again: the certificates that\n" +
			"it had before count no more. With --operator or --viewer the name is that of a person.",
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.steers(cmd, func(ctx context.Context, store *state.Store) error {
				return fleetCmd{a}.invite(ctx, store, args[0], o)
			})
		},
	}
	o.flags(c)
	c.Flags().BoolVar(&o.operator, "operator", false, "a person who may steer the fleet")
	c.Flags().BoolVar(&o.viewer, "viewer", false, "a person or a program that may read the fleet's record")
	return c
}

func (o *invite) flags(c *cobra.Command) {
	durationVar(c.Flags(), &o.lasts, "for", time.Hour, "how long the invitation is valid, at most 168h")
	c.Flags().StringToStringVar(&o.labels, "label", nil, "label of the new host: role=web; may be repeated")
}

// kind is what the new one will be.
func (o *invite) kind() authority.Kind {
	switch {
	case o.operator:
		return authority.Operator
	case o.viewer:
		return authority.Viewer
	}
	return authority.Node
}

func (o *invite) check() error {
	switch {
	case o.operator && o.viewer:
		return usage(errors.New("--operator and --viewer exclude each other"))
	case len(o.labels) > 0 && o.kind() != authority.Node:
		return usage(errors.New("--label is for hosts: people have no labels"))
	case o.lasts < time.Minute || o.lasts > maxInvitation:
		return usage(fmt.Errorf("--for %s: write a time from 1m to %s", o.lasts, maxInvitation))
	}
	return usage(safetext.Labels(o.labels))
}

// record puts an invitation on record and returns its token.
func (o *invite) record(ctx context.Context, store *state.Store, name, by string) (token string, err error) {
	if err := o.check(); err != nil {
		return "", err
	}
	i, token, err := authority.Invite(name, o.kind(), by, time.Now().Add(o.lasts).UTC())
	if err != nil {
		return "", usage(err)
	}
	have, _, err := store.Identities.Issued(ctx, name)
	if err != nil {
		return "", err
	}
	if have.Kind != "" && have.Kind != o.kind() {
		return "", usage(fmt.Errorf("%s is a name in the fleet already, of kind %s: choose another one", name, have.Kind))
	}
	return token, store.Identities.Invite(ctx, state.Invitation{Invitation: i, Labels: o.labels})
}

func (a fleetCmd) invite(ctx context.Context, store *state.Store, name string, o invite) error {
	_, fleet, err := store.Identities.Issued(ctx, name)
	if err != nil {
		return err
	}
	if err := o.check(); err != nil {
		return err
	}
	fingerprint, err := a.believed(fleet)
	if err != nil {
		return err
	}
	if fleet.Door == "" {
		return errors.New("the datastore has no door on the network (datastore.door): use pullet fleet add user@host")
	}
	token, err := o.record(ctx, store, name, a.operator())
	if err != nil {
		return err
	}
	fmt.Fprintf(a.err, "valid for %s, once:\n", o.lasts)
	fmt.Fprintf(a.out, "pullet join %s --authority %s --token %s\n", fleet.Door, fingerprint, token)
	return nil
}

// believed is the fingerprint of the authority that signed the datastore's certificate, where this host believes it,
// too: whoever writes etcd could name another one.
func (a fleetCmd) believed(fleet state.Authority) (string, error) {
	c, err := a.readConfig()
	if err != nil {
		return "", err
	}
	own, err := c.Believed()
	if err != nil {
		return "", err
	}
	if fleet.Server == "" {
		return "", errors.New("this fleet has no authority of its own: pullet fleet create makes a datastore with one")
	}
	if !slices.Contains(own, fleet.Server) {
		return "", fmt.Errorf(
			"the record names the authority %s, which this host does not believe: it believes %v",
			fleet.Server,
			own,
		)
	}
	return fleet.Server, nil
}
