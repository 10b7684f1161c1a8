package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/pullet/pullet/internal/safetext"
	"github.com/pullet/pullet/state"
)

func fleetRolesCommand(a *app) *cobra.Command {
	o := invite{lasts: maxInvitation}
	var fleet string
	c := &cobra.Command{
		Use: "roles NAME", Args: arguments(cobra.ExactArgs(1)),
		Short: "Print the roles of somebody for an etcd of your own",
		Long: "Roles prints what a datastore of pullet does by itself: a user of etcd, and roles with which a host\n" +
			"writes its own records and nobody else's. It asks nobody and changes nothing.",
		RunE: func(_ *cobra.Command, args []string) error {
			if err := o.check(); err != nil {
				return err
			}
			for what, name := range map[string]string{"name": args[0], "fleet": fleet} {
				if !safetext.Name(name) {
					return usage(fmt.Errorf("the %s %q: use letters, digits, dots, dashes and underscores", what, name))
				}
			}
			fleetCmd{a}.roles(args[0], state.RolesOf(o.kind(), fleet, args[0]))
			return nil
		},
	}
	f := c.Flags()
	f.StringVar(&fleet, "fleet", "default", "the fleet, as fleet in its configuration")
	f.BoolVar(&o.operator, "operator", false, "a person who may steer the fleet")
	f.BoolVar(&o.viewer, "viewer", false, "a person or a program that may read the fleet's record")
	return c
}

// roles prints the lines for a user with its roles. Lines about what is there already fail, and change nothing.
func (a fleetCmd) roles(name string, roles []state.Role) {
	fmt.Fprintf(a.out, "etcdctl user add %s --no-password\n", name)
	for _, r := range roles {
		fmt.Fprintf(a.out, "etcdctl role add %s\n", r.Name)
		for _, p := range r.Permissions() {
			fmt.Fprintf(a.out, "etcdctl role grant-permission %s %s '%s'", r.Name, p.Word(), p.From)
			if p.End != "" {
				fmt.Fprintf(a.out, " '%s'", p.End)
			}
			fmt.Fprintln(a.out)
		}
		fmt.Fprintf(a.out, "etcdctl user grant-role %s %s\n", name, r.Name)
	}
}
