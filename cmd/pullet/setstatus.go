package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pullet/pullet/cmd/pullet/fleetnames"
	"github.com/pullet/pullet/state"
)

func setStatusCommand(a *app) *cobra.Command {
	var node, reason string
	c := &cobra.Command{
		Use: "set-status CATEGORY STATE", GroupID: "fleet",
		Args:  arguments(cobra.ExactArgs(2)),
		Short: "Record a node's state, for tools such as cloud-init",
		Long: "Set-status moves a node to a state of a category, out of every other: provisioned, configured or\n" +
			"validated; running, success, failed or pending. Pulls say configured and validated themselves, each\n" +
			"time anew. Only provisioned may name a machine that never pulled: nodes --missing lists those that\n" +
			"do not come.",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkStatus(args[0], args[1]); err != nil {
				return err
			}
			return a.steers(cmd, func(ctx context.Context, store *state.Store) error {
				return steerCmd{a}.setStatus(ctx, store, args[0], args[1], node, reason)
			})
		},
	}
	c.Flags().StringVar(&node, "node", "", "the node (default: this one)")
	c.Flags().StringVar(&reason, "reason", "", "why")
	return c
}

// checkStatus refuses what is no category or state, and what only pulls may say.
func checkStatus(category, value string) error {
	if category == state.Rollout {
		return usage(
			fmt.Errorf("the category rollout is what pullet itself records: to halt, run: pullet rollout fail"),
		)
	}
	said := slices.DeleteFunc(state.Categories(), func(c string) bool { return c == state.Rollout })
	if err := knownWord("category", category, said); err != nil {
		return err
	}
	return knownWord("state", value, []string{state.Running, state.Success, state.Failed, state.Pending})
}

// statusSet is a state that a node was moved to.
type statusSet struct {
	Node     string `json:"node"`
	Category string `json:"category"`
	State    string `json:"state"`
	Before   string `json:"before"`
	Reason   string `json:"reason"`
}

func (a steerCmd) setStatus(ctx context.Context, store *state.Store, category, value, node, reason string) error {
	config, err := a.readConfig()
	if err != nil {
		return err
	}
	if node == "" {
		node = config.Node.Name
	}
	o, err := store.Views.Fleet(ctx, false)
	if err != nil {
		return err
	}
	_, known := o.Nodes[node]
	if !known && category != state.Provisioned {
		return fleetnames.Unknown("node", node, fleetnames.Nodes(o), "pullet nodes")
	}
	if strings.ContainsAny(node, "/ \t\n") {
		return usage(fmt.Errorf("--node %q: a name has no slash and no blanks", node))
	}
	st := state.Status{Version: o.Running[node], Reason: reason, Time: time.Now().UTC()}
	if err := store.Statuses.Change(ctx, node, category, value, st, o.Revision); err != nil {
		return err
	}
	before := o.Statuses[node][category].State
	if done, err := a.structured(statusSet{node, category, value, before, reason}); done || err != nil {
		return err
	}
	if before != "" {
		before = " (before: " + before + ")"
	}
	_, err = fmt.Fprintf(a.out, "%s: %s is %s%s\n", node, category, value, before)
	return err
}
