package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/lock"
	"github.com/pullet/pullet/render"
	"github.com/pullet/pullet/state"
)

// commands runs what operators gave this node to run: each once, in its stage, so many nodes at a time. What goes wrong
// there is told, and keeps the node from nothing else.
func (o *orders) commands(ctx context.Context, cat *render.Catalog) {
	if o.store == nil {
		return
	}
	asked := time.Now()
	all, err := o.store.Commands.For(ctx, o.config.Node.Name, o.ordered)
	if err != nil {
		o.troubled(ctx, fmt.Errorf("the commands of operators: %w", o.store.Explain(err)), asked)
	}
	for _, c := range all {
		asked := time.Now()
		if err := o.command(ctx, c, cat); err != nil {
			if !o.troubled(ctx, fmt.Errorf("command %s: %w", c.ID, o.store.Explain(err)), asked) {
				return
			}
		}
	}
}

// troubled files what went wrong with commands, and reports that others may do better. While the fleet's record is
// away, or where a signal stopped the pull, nothing is wrong with any: the next pull goes on.
func (o *orders) troubled(ctx context.Context, err error, asked time.Time) bool {
	var away *state.UnreachableError
	switch {
	case ctx.Err() != nil:
		return false
	case !errors.As(err, &away):
		o.out.fail(err)
		return true
	case !o.loop || !o.away.begins(err, asked):
		o.out.warn(err)
	}
	return false
}

// command does what there is to do about one command now.
func (o *orders) command(ctx context.Context, c state.PendingCommand, cat *render.Catalog) error {
	own := c.Own
	if own.State == state.Running && own.Instance != o.out.Run {
		own.State, own.Ended = state.Unknown, time.Now().UTC()
		own.Reason = "the agent ended while it ran: look at the host; it is not run again"
		return o.store.Commands.Abandon(ctx, c.ID, own, c.Stage)
	}
	mine := c.Stage < len(c.Stages) && slices.Contains(c.Stages[c.Stage], o.config.Node.Name)
	if own.State != "" || !mine || c.Halted || !c.Open {
		return nil
	}
	return o.turnAndRun(ctx, c, cat)
}

// turnAndRun takes the node's turn and runs one command. Where there is no turn to be had now, the next pull asks
// again.
func (o *orders) turnAndRun(ctx context.Context, c state.PendingCommand, cat *render.Catalog) error {
	result := state.CommandResult{
		Node:     o.config.Node.Name,
		State:    state.Running,
		Instance: o.out.Run,
		Started:  time.Now().UTC(),
	}
	if refused, err := o.refuses(ctx, c, &result); refused || err != nil {
		return err
	}
	req := o.turns.requestUnder(cat.Fleet.Rollout, &state.Version{ID: c.ID}, cat)
	req.Waiting = func(w *lock.Wait) {
		o.waits.notes(w)
		o.log.Info(w.Error())
	}
	turn := lock.NewCommandTurn(o.store, req, c)
	if wait, err := o.turns.admit(ctx, turn, o.waits.standBy, nil); wait != nil ||
		err != nil { // the next pull asks again
		return err
	}
	defer func() {
		ctx, cancel := afterwards(ctx)
		defer cancel()
		if err := turn.Release(ctx); err != nil {
			o.log.WithError(err).Warn("the place of a command could not be given back")
		}
	}()
	if refused, err := o.refuses(ctx, c, &result); refused || err != nil { // its time may be over: the turn came late
		return err
	}
	if begun, err := o.store.Commands.Begin(ctx, c.Command, result); !begun ||
		err != nil { // false: it failed elsewhere while this node waited
		return err
	}
	if err := o.remember(c.Command, &result); err == nil {
		o.log.WithField("command", c.ID).Infof("running for %s: %q", asker(c.Command, result), c.Args)
		o.runCommand(ctx, c.Command, &result)
	}
	ctx, cancel := afterwards(ctx)
	defer cancel()
	return o.store.Commands.End(ctx, c.ID, result, c.Stage)
}

// shownOutput is how much of the end of a command's output is kept in the fleet's record.
const shownOutput = 16 << 10

func (o *orders) runCommand(ctx context.Context, c state.Command, result *state.CommandResult) {
	args := c.Args
	if len(args) == 1 {
		args = apply.Shell(args[0])
	}
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	h := o.host(c.ID)
	ctx, finished := h.Finishing(ctx)
	defer finished()
	out, err := h.Run(ctx, apply.Command{Args: args})
	result.State, result.ExitCode, result.Ended = state.Ran, out.ExitCode, time.Now().UTC()
	result.Output = out.StdOut + out.StdErr
	if over := len(result.Output) - shownOutput; over > 0 {
		result.Output = "..." + result.Output[over:]
	}
	switch {
	case err != nil:
		result.State, result.Reason = state.Failed, err.Error()
	case out.ExitCode != 0:
		result.State, result.Reason = state.Failed, out.Failure()
	}
}
