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

	"github.com/pullet/pullet/internal/agent"
	"github.com/pullet/pullet/internal/safetext"
	"github.com/pullet/pullet/state"
)

// runOptions are the flags of run.
type runOptions struct {
	target  string
	stages  []string
	max     string
	reason  string
	fails   int
	timeout time.Duration
	expires time.Duration
	wait    bool
	waits   time.Duration
	cancel  string
}

func runCommand(a *app) *cobra.Command {
	var o runOptions
	c := &cobra.Command{
		Use: "run --target T [--max N] [--stage T]... [--wait] -- COMMAND [ARG...]", GroupID: "fleet",
		DisableFlagsInUseLine: true,
		Short:                 "Run a command on several nodes, so many at a time",
		Long: "Run has every node of the target that answers run a command, once, at its next pull or at once where\n" +
			"its agent runs. Nodes take turns as in a rollout: role after role in the order of roleDependencies,\n" +
			"canaries first, and of each as many at a time as rollingRules allow. They obey pauses and switches,\n" +
			"and stop when it failed somewhere (--max-failures). --max says another number; --stage another\n" +
			"order: the nodes of each stage are through before the next begin, and the rest of the target comes\n" +
			"last. A node runs it only where agent.allowRun of its own configuration is true or lists the operator who\n" +
			"gives it, whose certificate (etcd.operator) signs it. A single argument is a line for the shell. Without\n" +
			"a command it shows what was given lately.",
		RunE: func(cmd *cobra.Command, args []string) error {
			if before := cmd.ArgsLenAtDash(); len(args) > 0 && before != 0 {
				return misplaced(o.target, args, before)
			}
			return a.onFleet(cmd, func(ctx context.Context, store *state.Store) error {
				switch {
				case o.cancel != "":
					return runCmd{a}.cancelCommand(ctx, store, o.cancel)
				case len(args) == 0 && o.target == "":
					return runCmd{a}.showCommands(ctx, store)
				}
				return a.withNode(func(ctx context.Context, node *agent.Agent, store *state.Store) error {
					return runCmd{a}.give(ctx, node, store, o, args)
				})(ctx, store)
			})
		},
	}
	f := c.Flags()
	f.StringVar(&o.target, "target", "", "which nodes: role=web, web*, '*'")
	f.StringArrayVar(
		&o.stages,
		"stage",
		nil,
		"nodes that are through before others begin; may be repeated (default: role after role, as in a rollout)",
	)
	f.StringVar(
		&o.max,
		"max",
		"",
		"nodes at a time, or a share of all of them: 2, 25% (default: the rolling rules of the repository)",
	)
	f.IntVar(&o.fails, "max-failures", 0, "failures that stop nobody")
	durationVar(f, &o.timeout, "timeout", 10*time.Minute, "of the command on a node")
	durationVar(f, &o.expires, "expires", time.Hour, "no node begins later than this")
	f.StringVar(&o.reason, "reason", "", "why, for the record")
	f.BoolVar(&o.wait, "wait", false, "wait for all, and exit 1 when it failed somewhere")
	durationVar(f, &o.waits,
		"wait-timeout",
		0,
		"with --wait: how long (default: until no node can run it any more, after --expires and --timeout)",
	)
	f.StringVar(&o.cancel, "cancel", "", "take a command back: no further node begins with it")
	return c
}

// runCmd is pullet run.
type runCmd struct{ *app }

// give gives a command, says what else is under way, and waits for its end where that was asked for.
func (a runCmd) give(ctx context.Context, node *agent.Agent, store *state.Store, o runOptions, args []string) error {
	if err := o.check(args); err != nil {
		return err
	}
	c, err := a.command(ctx, node, store, o, args)
	if err != nil {
		return err
	}
	config, err := a.readConfig()
	if err == nil {
		err = config.SignCommand(c)
	}
	if err != nil {
		return err
	}
	if err := store.Commands.Forget(ctx, time.Now()); err != nil {
		return err
	}
	var away *state.UnreachableError
	if err := store.Explain(store.Commands.Give(ctx, *c)); errors.As(err, &away) {
		return fmt.Errorf("%w; whether it was given is not known: look at pullet run", err)
	} else if err != nil {
		return err
	}
	fmt.Fprintf(a.out, "command %s given to %s, %s\n", c.ID, count(len(slices.Concat(c.Stages...)), "node"), atATime(c))
	for _, n := range c.LeftOut {
		fmt.Fprintf(a.out, "left out: %s does not answer\n", n)
	}
	all, gone, err := store.Commands.List(ctx)
	if err != nil {
		return err
	}
	for _, other := range all {
		if other.ID != c.ID && other.Open && !other.Halted() && other.Stage(gone) < len(other.Stages) {
			fmt.Fprintf(
				a.out,
				"under way besides: command %s of %s: %s\n",
				other.ID,
				other.By,
				shorten(strings.Join(other.Args, " "), 60),
			)
		}
	}
	if !o.wait {
		return nil
	}
	if o.waits == 0 {
		o.waits = o.expires + o.timeout + endsLate
	}
	return a.awaitCommand(ctx, store, c.ID, o.waits)
}

// endsLate is how much later than its own time a command may be recorded as ended.
const endsLate = time.Minute

// awaitCommand shows results as they come, until all are there, nobody goes on, or the time to wait is up.
func (a runCmd) awaitCommand(ctx context.Context, store *state.Store, id string, most time.Duration) error {
	shown, timer := map[string]bool{}, time.NewTimer(most)
	defer timer.Stop()
	for {
		c, gone, err := store.Commands.Get(ctx, id)
		if err != nil {
			return err
		}
		if c == nil {
			return fmt.Errorf("command %s is gone", id)
		}
		for _, node := range slices.Sorted(maps.Keys(c.Results)) {
			if r := c.Results[node]; r.Over() && !shown[node] {
				shown[node] = true
				a.printResult(r)
			}
		}
		over := c.Stage(gone) == len(c.Stages)
		if over || (c.Halted() || !c.Open) && !c.Runs() {
			return endOf(*c, over)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf(
				"command %s goes on without being waited for: pullet run shows it, pullet run --cancel %s takes it back",
				id,
				id,
			)
		case <-timer.C:
			return &exit{
				agent.ExitWaiting,
				fmt.Errorf(
					"not finished in %s: %s; it goes on: pullet run shows it, pullet run --cancel %s takes it back",
					most,
					unfinished(*c),
					id,
				),
			}
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// unfinished names the nodes that are not through with a command.
func unfinished(c state.CommandStatus) string {
	var running, waiting []string
	for _, node := range slices.Concat(c.Stages...) {
		switch r, begun := c.Results[node]; {
		case !begun:
			waiting = append(waiting, node)
		case !r.Over():
			running = append(running, node+" (for "+ago(r.Started)+")")
		}
	}
	var parts []string
	if len(running) > 0 {
		parts = append(parts, "it runs on "+safetext.Some(running, 10))
	}
	if len(waiting) > 0 {
		parts = append(parts, "not begun on "+safetext.Some(waiting, 10))
	}
	return strings.Join(parts, ", ")
}

// cancelCommand takes a command back.
func (a runCmd) cancelCommand(ctx context.Context, store *state.Store, id string) error {
	taken, err := store.Commands.Cancel(ctx, id)
	if err == nil && !taken {
		err = fmt.Errorf("there is no command %s that nodes may still begin with: see pullet run", id)
	}
	if err == nil {
		fmt.Fprintf(a.out, "command %s is taken back: no further node begins with it\n", id)
	}
	return err
}

// endOf is what the command line says when nothing more comes.
func endOf(c state.CommandStatus, over bool) error {
	n := len(slices.Concat(c.Stages...))
	failed := 0
	for _, r := range c.Results {
		if r.State != state.Ran {
			failed++
		}
	}
	switch {
	case !over && c.Halted():
		return fmt.Errorf(
			"it failed on %d of %d nodes, and no other begins with it (--max-failures %d)",
			failed,
			n,
			c.MaxFailures,
		)
	case !over:
		return fmt.Errorf("only %d of %d nodes ran it before it expired", len(c.Results), n)
	case failed > 0:
		return fmt.Errorf("it did not succeed on %d of %d nodes", failed, n)
	}
	return nil
}

func (a runCmd) printResult(r state.CommandResult) {
	head := r.Node + ": " + r.State
	if r.Signer != "" {
		head += ", signed by " + r.Signer
	}
	if r.Reason != "" {
		head += ": " + r.Reason
	}
	fmt.Fprintln(a.out, head)
	for line := range strings.Lines(r.Output) {
		fmt.Fprintf(a.out, "  %s\n", strings.TrimRight(line, "\n"))
	}
}

// commandView is a command with its results; a duration is in seconds.
type commandView struct {
	state.CommandStatus
	Timeout float64 `json:"timeout"`
}

func viewOfCommands(all []state.CommandStatus) []commandView {
	out := []commandView{}
	for _, c := range all {
		out = append(out, commandView{c, c.Timeout.Seconds()})
	}
	return out
}

// showCommands lists what was given lately.
func (a runCmd) showCommands(ctx context.Context, store *state.Store) error {
	all, gone, err := store.Commands.List(ctx)
	if err != nil {
		return err
	}
	if done, err := a.structured(viewOfCommands(all)); done || err != nil {
		return err
	}
	t := columns(a.out)
	fmt.Fprintln(t, "COMMAND\tBY\tSTAGE\tRUNNING\tOK\tNOT OK\tWAITING\tLINE")
	for _, c := range all {
		counts := map[string]int{}
		for _, r := range c.Results {
			counts[r.State]++
		}
		stage := fmt.Sprintf("%d of %d", min(c.Stage(gone)+1, len(c.Stages)), len(c.Stages))
		left := len(slices.Concat(c.Stages...)) - len(c.Results)
		waits, over := left, ""
		switch {
		case c.Stage(gone) == len(c.Stages):
			waits = 0 // who is left was given up
		case c.Halted():
			over = "stopped: it failed"
		case !c.Open:
			over = "over"
		}
		if over != "" { // nobody else begins with it
			if stage, waits = over, 0; left > 0 {
				stage += fmt.Sprintf(", %d never ran it", left)
			}
		}
		bad := counts[state.Failed] + counts[state.Refused] + counts[state.Unknown]
		fmt.Fprintf(
			t,
			"%s\t%s\t%s\t%d\t%d\t%d\t%d\t%s\n",
			c.ID,
			c.By,
			stage,
			counts[state.Running],
			counts[state.Ran],
			bad,
			waits,
			strings.Join(c.Args, " "),
		)
	}
	if a.output == "wide" {
		for _, c := range all {
			fmt.Fprintf(t, "\n%s\n", c.ID)
			if err := t.Flush(); err != nil {
				return err
			}
			for _, node := range slices.Sorted(maps.Keys(c.Results)) {
				a.printResult(c.Results[node])
			}
		}
	}
	return t.Flush()
}
