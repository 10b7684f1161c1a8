package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

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

func pendingCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "pending", GroupID: "node", Args: noArgs,
		Short: "Tell by the exit code whether another version waits for this node",
		Long: "Pending compares what runs on this node with the fleet's record. It looks at no repository. It\n" +
			"prints which repositories the last pull could not follow, and the newest commit where the fleet does\n" +
			"not take it.\n" +
			"\n" +
			"EXIT STATUS\n" +
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
			local, err := config.ReadLocal()
			if err != nil {
				return usage(err)
			}
			h, err := hear(
				cmd.Context(),
				config.Node.Name,
				func() (*state.Store, error) { return config.ReadStore(cmd.Context()) },
			)
			if err != nil {
				return usage(err)
			}
			return printPending(a, local, h)
		},
	}
}

// heard is what the fleet's record says of its version.
type heard struct {
	current *state.Version
	why     string       // why there is none, or it is not known
	wait    *lock.Wait   // for what the node waits before it runs it; nil where it did not say
	skipped *skippedHead // the newest commit, where the fleet does not take it
}

// hear reads it for a node.
func hear(ctx context.Context, node string, open func() (*state.Store, error)) (h heard, err error) {
	store, err := open()
	var away *state.UnreachableError
	if errors.As(err, &away) {
		return heard{why: err.Error()}, nil
	}
	if err != nil {
		return heard{}, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	v, _, err := store.Versions.Current(ctx)
	if err = store.Explain(err); errors.As(err, &away) {
		return heard{why: err.Error()}, nil
	}
	if bad, ok := errors.AsType[*state.BadRecordError](err); ok {
		return heard{why: bad.Error()}, nil
	}
	if v == nil || err != nil {
		return heard{why: "the fleet has no version yet"}, err
	}
	said, err := store.Statuses.Get(ctx, node, state.Rollout, state.Pending)
	if err != nil {
		return heard{}, err
	}
	h.current = v
	if said.Version == v.ID && said.Gate != "" {
		h.wait, _ = lock.WaitOf(said).Follow(ctx, store, v.ID) // what cannot be asked is printed as it is
	}
	one, held, err := store.Versions.Skipped(ctx, v)
	h.skipped = skippedOf(&state.Overview{Current: v, Held: held, Skipped: one})
	return h, err
}

// pendingView says whether the fleet has another version than the node.
type pendingView struct {
	Running  *state.Version           `json:"running"`
	Current  *state.Version           `json:"current"`
	Pending  bool                     `json:"pending"`
	ExitCode int                      `json:"exitCode"`
	Text     string                   `json:"text"`
	Waiting  *lock.Wait               `json:"waiting,omitempty"`
	Skipped  *skippedHead             `json:"skipped,omitempty"` // the newest commit that the fleet does not take
	Troubles map[string]state.Trouble `json:"troubles"`          // by repository
}

// printPending says what there is to do, and why the node may not hear of more.
func printPending(a *app, local state.Local, h heard) error {
	running, current, why := local.Running, h.current, h.why
	code, text := pendingUpdate, fmt.Sprintf("%s is available; the node runs %s", current, running)
	switch {
	case current == nil && running == nil:
		code, text = pendingNewAlone, why+"; this node never ran a version"
	case current == nil:
		code, text = pendingAway, fmt.Sprintf("%s; the node runs %s", why, running)
	case running.Same(current):
		code, text = pendingNone, fmt.Sprintf("up to date: %s", running)
	}
	done, err := a.structured(
		pendingView{running, current, code == pendingUpdate, code, text, inUTC(h.wait), h.skipped, local.Troubles},
	)
	if err != nil {
		return err
	}
	if !done {
		fmt.Fprintln(a.out, text)
		if h.wait != nil {
			fmt.Fprintf(a.out, "it waited at its last pull, %s: %v\n", during(a.out, h.wait.Since), h.wait)
		}
		h.skipped.print(a.out)
		for _, repo := range slices.Sorted(maps.Keys(local.Troubles)) {
			t := local.Troubles[repo]
			fmt.Fprintln(a.out, strings.TrimSuffix(fmt.Sprintf("%s (%s); %s", t.Why, during(a.out, t.Since), t.Clear), "; "))
		}
	}
	if code == pendingUpdate {
		return nil
	}
	return &exit{code, nil}
}
