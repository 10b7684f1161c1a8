package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/spf13/cobra"

	"github.com/pullet/pullet/cmd/pullet/fleetnames"
	"github.com/pullet/pullet/internal/agent"
	"github.com/pullet/pullet/internal/safetext"
	"github.com/pullet/pullet/state"
)

func waitCommand(a *app) *cobra.Command {
	var timeout time.Duration
	c := &cobra.Command{
		Use: "wait [VERSION]", GroupID: "fleet", Args: upToOne,
		Short: "Wait until every node runs the version",
		Long: "Wait ends when every node of the fleet, and every one that the rollout expects, runs the fleet's version. " +
			"With VERSION that must be it:\n" +
			"a release, a commit, or the revision that rollout start was given.\n" +
			"If no node has taken up the commit yet, and VERSION is its whole ID, wait waits for that first.\n" +
			strings.Replace(waitExits, "with --wait: not", "not", 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.onFleet(cmd, func(ctx context.Context, store *state.Store) error {
				ctx, cancel, err := within(ctx, timeout)
				if err != nil {
					return err
				}
				defer cancel()
				v, err := waitCmd{a}.awaited(ctx, store, args)
				if err != nil {
					return err
				}
				return waitCmd{a}.await(ctx, store, v, false)
			})
		},
	}
	durationVar(c.Flags(), &timeout, "timeout", 0, "how long (default: any time); 1ms only looks")
	return c
}

// waitCmd is pullet wait.
type waitCmd struct{ *app }

// within limits how long a wait takes. A timeout of 0 is no limit.
func within(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc, error) {
	if timeout < 0 {
		return nil, nil, usage(fmt.Errorf("%s: how long to wait is a time from 0 on", timeout))
	}
	if timeout == 0 {
		return ctx, func() {}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	return ctx, cancel, nil
}

// awaited returns the version to wait for. If the fleet does not know a commit, it waits until a node takes the commit
// up: a job that waits after a push is often faster than the next pull. Only the whole ID of a commit is waited for,
// because a name or a short ID may be a typing error.
func (a waitCmd) awaited(ctx context.Context, store *state.Store, args []string) (*state.Version, error) {
	said := ""
	for look := context.WithoutCancel(ctx); ; {
		o, err := store.Views.Fleet(look, false)
		if err = store.Explain(err); said != "" && isAway(err) {
			if said, err = outlast(ctx, a.err, said, err); err != nil {
				return nil, err
			}
			continue
		}
		if err != nil {
			return nil, err
		}
		v, err := byName(look, store, o, args)
		if _, is := errors.AsType[fleetnames.UnknownError](err); !is && !errors.Is(err, state.ErrNoVersion) ||
			len(args) == 0 || !plumbing.IsHash(args[0]) {
			return v, err
		}
		line := "no node has taken up " + args[0] + " yet"
		if o.Current != nil {
			line += "; the fleet's version is " + o.Current.String()
		}
		if line != said {
			fmt.Fprintln(a.err, line)
			said = line
		}
		if !store.Bells.Await(ctx, store.Bells.Key(), o.Revision, lookEvery) {
			return nil, &exit{agent.ExitWaiting, errors.New("not finished: " + line + "; see pullet status")}
		}
	}
}

// byName returns the fleet's version, which has to be the one with this name, if there is one.
func byName(ctx context.Context, store *state.Store, o *state.Overview, args []string) (*state.Version, error) {
	if o.Current == nil {
		return nil, o.NoVersion()
	}
	if len(args) == 0 {
		return o.Current, nil
	}
	if slices.Equal(args, o.Current.Asked) { // a branch is elsewhere by now, maybe
		return o.Current, nil
	}
	v, err := knownVersion(ctx, store, o, args[0])
	if err != nil {
		return nil, fmt.Errorf("%w; to wait for %s, which the fleet moves to: pullet wait", err, o.Current)
	}
	if !v.Same(o.Current) {
		return nil, fmt.Errorf("%s is not the fleet's version, which is %s: nothing moves to it", &v, o.Current)
	}
	return o.Current, nil
}

// lookEvery is how often a rollout is looked at while nobody rings.
const lookEvery = 2 * time.Second

// await follows a rollout to its end, or to that of ctx.
func (a waitCmd) await(ctx context.Context, store *state.Store, v *state.Version, retry bool) error {
	said, told := "", time.Now()
	for {
		// A look is finished also when the time just ran out: its answer is what is reported.
		o, err := store.Views.Fleet(context.WithoutCancel(ctx), false)
		if err = store.Explain(err); isAway(err) {
			if said, err = outlast(ctx, a.err, said, err); err != nil {
				return err
			}
			continue
		}
		if err != nil {
			return err
		}
		fleet := viewOf(o)
		line := fmt.Sprintf("%s: %s", v, fleet.counts())
		if o.Current == nil || o.Current.Rollout() != v.Rollout() {
			return &exit{agent.ExitWaiting, fmt.Errorf("superseded: the fleet moved on to %s", o.Current)}
		}
		if fleet.finished() {
			return a.printEnd(v, fleet)
		}
		if stays, err := a.afterHalt(ctx, store, o, fleet, retry); stays || err != nil {
			return err
		}
		if line != said || time.Since(told) > tellEvery {
			fmt.Fprintln(a.err, line)
			said, told = line, time.Now()
		}
		if !store.Bells.Await(ctx, store.Bells.Key(), o.Revision, lookEvery) {
			if err := store.Views.Idles(context.WithoutCancel(ctx), o); err != nil {
				return err
			}
			viewOf(o).printBehind(a.err)
			return &exit{agent.ExitWaiting, errors.New("not finished: " + line + "; see pullet status")}
		}
	}
}

// isAway reports that etcd does not answer now; one that refuses who asks does.
func isAway(err error) bool {
	away, ok := errors.AsType[*state.UnreachableError](err)
	return ok && !away.Denied()
}

// outage stands for the line that outlast printed: its words may differ at each look of one outage, as the kernel's
// reason does.
const outage = "etcd is away"

// outlast waits a while for etcd to answer again, and says once for each outage why it waits: said is outage then. The
// rollout goes on meanwhile, or waits as well.
func outlast(ctx context.Context, w io.Writer, said string, away error) (string, error) {
	if said != outage {
		fmt.Fprintln(w, away)
	}
	select {
	case <-ctx.Done():
		return "", &exit{agent.ExitWaiting, fmt.Errorf("not finished: %w", away)}
	case <-time.After(lookEvery):
		return outage, nil
	}
}

// afterHalt ends the wait at a halt, or opens groups again whose failed nodes have succeeded since.
func (a waitCmd) afterHalt(
	ctx context.Context,
	store *state.Store,
	o *state.Overview,
	fleet *fleetStatus,
	retry bool,
) (ends bool, err error) {
	if len(fleet.Halted) == 0 {
		return false, nil
	}
	if !retry {
		fleet.printHalted(a.err)
		return true, &exit{agent.ExitError, fmt.Errorf("the rollout of %s is halted", o.Current)}
	}
	for _, h := range fleet.Halted {
		if h.Node == "" || len(h.Failed) > 0 { // by hand or by its deadline, or not fixed yet
			continue
		}
		opened, err := store.Rollouts.Resume(ctx, a.operator(), h.Group)
		var moved *state.MovedError
		if err != nil && !errors.As(err, &moved) {
			return true, err
		}
		for _, g := range opened {
			fmt.Fprintf(a.err, "lifted: %s, %s; %s succeeded since\n", g.Scope(), haltedText(g), g.Node)
		}
	}
	return false, nil
}

// finished reports that every node runs the fleet's version.
func (v *fleetStatus) finished() bool {
	for _, n := range v.Nodes {
		if !n.through {
			return false
		}
	}
	return len(v.Nodes) > 0
}

// printBehind says who does not run the fleet's version, why, and what to do about it.
func (v *fleetStatus) printBehind(w io.Writer) {
	var lines []string
	for _, n := range v.exceptions() {
		if !n.through {
			lines = append(lines, n.Node+" is "+n.State+reasonSuffix(n.why(w, wholeReason)))
		}
	}
	if more := len(lines) - mostExceptions; more > 0 {
		lines = append(
			lines[:mostExceptions],
			fmt.Sprintf("and %d more: pullet nodes --state failed,lost,missing,upgrading", more),
		)
	}
	for _, line := range lines {
		fmt.Fprintln(w, line)
	}
	v.printWaits(w)
	v.printPending(w)
}

// printPending names the nodes whose next pull goes on, those with the same reason in one line.
func (v *fleetStatus) printPending(w io.Writer) {
	var reasons []string
	nodes := map[string][]string{}
	for _, n := range v.Nodes {
		if n.State != pending || n.through {
			continue
		}
		reason := reasonSuffix(n.why(w, wholeReason))
		if nodes[reason] == nil {
			reasons = append(reasons, reason)
		}
		nodes[reason] = append(nodes[reason], n.Node)
	}
	for _, reason := range reasons {
		if of := nodes[reason]; len(of) == 1 {
			fmt.Fprintf(w, "%s is pending%s\n", of[0], reason)
		} else {
			fmt.Fprintf(w, "%s: pending%s\n", safetext.Some(of, 10), reason)
		}
	}
}

// finished is a rollout that came to its end, with its nodes by their states.
type finished struct {
	Version *state.Version `json:"version"`
	Counts  map[string]int `json:"counts"`
}

func (a waitCmd) printEnd(v *state.Version, fleet *fleetStatus) error {
	if done, err := a.structured(finished{v, fleet.Counts}); done || err != nil {
		return err
	}
	_, err := fmt.Fprintf(a.out, "finished: %s run %s\n", count(len(fleet.Nodes), "node"), withCommit(v))
	return err
}
