package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pullet/pullet/cmd/pullet/fleetnames"
	"github.com/pullet/pullet/internal/agent"
	"github.com/pullet/pullet/internal/safetext"
	"github.com/pullet/pullet/state"
)

// instance is one node's instance of a service.
type instance struct {
	Name string `json:"name"`
	Node string `json:"node"`
	state.Service
	State string `json:"state"` // announced, ready, lost
	Alive bool   `json:"alive"`

	unused bool // lists for other tools leave it out
}

func servicesCommand(a *app) *cobra.Command {
	var ready bool
	c := &cobra.Command{
		Use: "services [NAME]", GroupID: "fleet", Args: upToOne,
		Short: "Which nodes offer which services, announced or ready",
		Long: "Services lists what nodes publish. An instance is announced as soon as its address is known, ready\n" +
			"when its node was validated, and lost when its node does not answer. Lists for other tools leave\n" +
			"lost ones out, unless more than half of a service's instances are lost. -o hosts prints lines for\n" +
			"/etc/hosts, ADDRESS NODE SERVICE; -o hiera prints services::NAME::address with a list of the\n" +
			"addresses to use, and services::NAME::INTERFACE with those of an interface.",
		RunE: func(cmd *cobra.Command, args []string) error {
			var o *state.Overview
			err := a.onFleet(cmd, func(ctx context.Context, store *state.Store) (err error) {
				o, err = store.Views.Fleet(ctx, true)
				return err
			})
			var away *state.UnreachableError
			if errors.As(err, &away) {
				o, err = servicesCmd{a}.servicesSeen(away)
			}
			if err != nil {
				return err
			}
			return servicesCmd{a}.show(o, args, ready)
		},
	}
	c.Flags().BoolVar(&ready, "ready", false, "only those that are ready")
	return c
}

// servicesCmd is pullet services.
type servicesCmd struct{ *app }

// show prints the instances of the service that args name, or of all services.
func (a servicesCmd) show(o *state.Overview, args []string, ready bool) error {
	names := slices.Sorted(maps.Keys(o.Services))
	if len(args) == 1 && !slices.Contains(names, args[0]) {
		return fleetnames.Unknown("service", args[0], names, "pullet services")
	}
	if len(args) == 1 {
		names = args
	}
	list := instancesOf(o, names, ready)
	if a.output == "hosts" || a.output == "hiera" {
		list = a.used(list)
	}
	return a.printServices(list)
}

// servicesSeen are the services as this node saw them last, while the fleet's record is away. It says how old that is.
func (a servicesCmd) servicesSeen(away error) (*state.Overview, error) {
	config, err := a.readConfig()
	if err != nil {
		return nil, err
	}
	v, at, err := agent.CachedView(config.Paths.State)
	if err != nil || at.IsZero() {
		return nil, errors.Join(away, err)
	}
	a.warn("%v\npullet: warning: this is what the node saw %s ago, also of who answers", away, ago(at))
	o := &state.Overview{Services: map[string]map[string]state.Service{}, Alive: map[string]bool{}}
	for name, list := range v.Services {
		o.Services[name] = map[string]state.Service{}
		for _, s := range list {
			o.Alive[s.Node] = !s.Lost
			one := state.Service{Address: s.Address, Addresses: s.Addresses, Port: s.Port, Tags: s.Tags}
			if s.Ready {
				one.Ready = at
			}
			o.Services[name][s.Node] = one
		}
	}
	return o, nil
}

// instancesOf are the instances of services by name and node.
func instancesOf(o *state.Overview, names []string, ready bool) []instance {
	out := []instance{}
	for _, name := range names {
		away := state.Unanswering(o.Services[name], o.Alive)
		for _, node := range slices.Sorted(maps.Keys(o.Services[name])) {
			one := instance{
				Name:    name,
				Node:    node,
				Service: o.Services[name][node],
				State:   "announced",
				Alive:   o.Alive[node],
				unused:  away[node],
			}
			switch {
			case !one.Alive:
				one.State = lost
			case !one.Ready.IsZero():
				one.State = "ready"
			}
			if !ready || !one.Ready.IsZero() && !one.unused {
				out = append(out, one)
			}
		}
	}
	return out
}

// used are the instances that other tools are given. It says where some are among them that do not answer.
func (a servicesCmd) used(list []instance) []instance {
	var out []instance
	var doubtful []string
	for _, s := range list {
		if !s.unused {
			out = append(out, s)
		}
		if !s.unused && !s.Alive {
			doubtful = append(doubtful, s.Name+" on "+s.Node)
		}
	}
	if len(doubtful) > 0 {
		a.warn(
			"listed although it does not answer, as more than half of the service's nodes do not: %s",
			safetext.Some(doubtful, 5),
		)
	}
	return out
}

func (a servicesCmd) printServices(list []instance) error {
	switch a.output {
	case "hosts":
		for _, s := range list {
			if s.Address != "" {
				fmt.Fprintf(a.out, "%s %s %s\n", s.Address, s.Node, s.Name)
			}
		}
		return nil
	case "hiera":
		return printYAML(a.out, hiera(list))
	case "wide":
		return a.list(
			list,
			"SERVICE\tNODE\tADDRESS\tPORT\tSTATE\tNODE IS\tANNOUNCED\tREADY\tTAGS\tADDRESSES",
			func(w io.Writer) {
				for _, s := range list {
					fmt.Fprintf(
						w,
						"%s\t%s\t%s\t%d\t%s\t%s\t%s\t%s\t%s\t%s\n",
						s.Name,
						s.Node,
						orDash(s.Address),
						s.Port,
						s.State,
						life(s.Alive),
						age(w, s.Announced),
						age(w, s.Ready),
						orDash(strings.Join(s.Tags, ",")),
						orDash(interfaces(s.Addresses)),
					)
				}
			},
		)
	}
	return a.list(list, "SERVICE\tNODE\tADDRESS\tPORT\tSTATE\tNODE IS", func(w io.Writer) {
		for _, s := range list {
			fmt.Fprintf(
				w,
				"%s\t%s\t%s\t%d\t%s\t%s\n",
				s.Name,
				s.Node,
				orDash(s.Address),
				s.Port,
				s.State,
				life(s.Alive),
			)
		}
	})
}

func life(alive bool) string {
	if alive {
		return "alive"
	}
	return "not answering"
}

// hiera is the form that hiera looks up: services::NAME::INTERFACE with the addresses, and services::NAME::address with
// the one of each instance that is to be used.
func hiera(list []instance) map[string][]string {
	out := map[string][]string{}
	for _, s := range list {
		if s.Address != "" {
			key := "services::" + s.Name + "::address"
			out[key] = append(out[key], s.Address)
		}
		for name, value := range s.Addresses {
			key := "services::" + s.Name + "::" + name
			out[key] = append(out[key], addresses(value)...)
		}
	}
	return out
}

// addresses are those of an interface: one, or a list.
func addresses(value any) []string {
	list, ok := value.([]any)
	if !ok {
		return []string{fmt.Sprint(value)}
	}
	var out []string
	for _, one := range list {
		out = append(out, fmt.Sprint(one))
	}
	return out
}

func interfaces(byName map[string]any) string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		out = append(out, name+"="+strings.Join(addresses(byName[name]), ","))
	}
	return strings.Join(out, " ")
}
