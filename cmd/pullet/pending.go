package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pullet/pullet/lock"
	"github.com/pullet/pullet/state"
)

// The exit codes of pending. Scripts that prepare a first node rely on them.
const (
	pendingUpdate   = 0
	pendingNone     = 1
	pendingAway     = 2
	pendingNewAlone = 3
)

func (a *app) pendingCommand() *cobra.Command {
	return &cobra.Command{
		Use: "pending", GroupID: "node", Args: noArgs,
		Short: "Tell by the exit code whether another version waits for this node",
		Long: "Pending compares what runs on this node with the fleet's record. It looks at no repository, and\n" +
			"says which ones the last pull could not follow.\n" +
			"\nEXIT STATUS\n" +
			"  0   an update is available\n" +
			"  1   the node is up to date\n" +
			"  2   etcd is unreachable or has no version, and the node runs one\n" +
			"  3   etcd is unreachable or has no version, and the node never ran one\n" +
			"  64  the command line, the configuration or the node's own record is wrong",
		RunE: func(cmd *cobra.Command, _ []string) error {
			config, err := a.readConfig()
			if err != nil {
				return usage(err)
			}
			local, err := state.LoadLocal(config.Paths.State)
			if err != nil {
				return usage(err)
			}
			current, wait, why, err := currentVersion(cmd.Context(), config.Node.Name, func() (*state.Store, error) { return config.OpenStore(cmd.Context()) })
			if err != nil {
				return usage(err)
			}
			return a.printPending(local, current, wait, why)
		},
	}
}

// currentVersion is the fleet's, or nil and why it is not known; and for what the node waits before it runs it, nil where it did not say.
func currentVersion(ctx context.Context, node string, open func() (*state.Store, error)) (v *state.Version, wait *lock.Wait, why string, err error) {
	store, err := open()
	var away *state.UnreachableError
	if errors.As(err, &away) {
		return nil, nil, err.Error(), nil
	}
	if err != nil {
		return nil, nil, "", err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	v, _, err = store.Current(ctx)
	if err = store.Explain(err); errors.As(err, &away) {
		return nil, nil, err.Error(), nil
	}
	if bad, ok := errors.AsType[*state.BadRecordError](err); ok {
		return nil, nil, bad.Error(), nil
	}
	if v == nil {
		return nil, nil, "the fleet has no version yet", err
	}
	said, err := store.StatusOf(ctx, node, state.Rollout, state.Pending)
	if err == nil && said.Version == v.ID && said.Gate != "" {
		wait = lock.WaitOf(said).Follow(ctx, store, v.ID)
	}
	return v, wait, "", err
}

// pendingView says whether the fleet has another version than the node.
type pendingView struct {
	Running  *state.Version           `json:"running"`
	Current  *state.Version           `json:"current"`
	Pending  bool                     `json:"pending"`
	ExitCode int                      `json:"exitCode"`
	Text     string                   `json:"text"`
	Waiting  *lock.Wait               `json:"waiting,omitempty"`
	Troubles map[string]state.Trouble `json:"troubles"` // by repository
}

// printPending says what there is to do, and why the node may not hear of more.
func (a *app) printPending(local state.Local, current *state.Version, wait *lock.Wait, why string) error {
	running := local.Running
	code, text := pendingUpdate, fmt.Sprintf("%s is available; the node runs %s", current, running)
	switch {
	case current == nil && running == nil:
		code, text = pendingNewAlone, why+"; this node never ran a version"
	case current == nil:
		code, text = pendingAway, fmt.Sprintf("%s; the node runs %s", why, running)
	case running.Same(current):
		code, text = pendingNone, fmt.Sprintf("up to date: %s", running)
	}
	done, err := a.structured(pendingView{running, current, code == pendingUpdate, code, text, inUTC(wait), local.Troubles})
	if err != nil {
		return err
	}
	if !done {
		fmt.Fprintln(a.out, text)
		if wait != nil {
			fmt.Fprintf(a.out, "it waited at its last pull, since %s: %v\n", wait.Since.Local().Format(time.TimeOnly), wait)
		}
		for _, repo := range slices.Sorted(maps.Keys(local.Troubles)) {
			t := local.Troubles[repo]
			fmt.Fprintln(a.out, strings.TrimSuffix(fmt.Sprintf("%s (for %s); %s", t.Why, ago(t.Since), t.Clear), "; "))
		}
	}
	if code == pendingUpdate {
		return nil
	}
	return &exit{code, nil}
}
