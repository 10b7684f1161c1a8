package agent

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/lock"
	"github.com/pullet/pullet/render"
	"github.com/pullet/pullet/state"
)

// commands runs what operators gave this node to run: each once, in its stage, so many nodes at a time.
func (p *pull) commands(ctx context.Context, cat *render.Catalog) error {
	if p.store == nil {
		return nil
	}
	all, gone, err := p.store.PendingCommands(ctx)
	if err != nil {
		return err
	}
	for _, c := range all {
		own, stage := c.Results[p.config.Node.Name], c.Stage(gone)
		if own.State == state.Running && own.Instance != p.out.Run {
			own.State, own.Ended = state.Unknown, time.Now().UTC()
			own.Reason = "the agent ended while it ran: look at the host; it is not run again"
			if err := p.store.AbandonCommand(ctx, c.ID, own, stage); err != nil {
				return err
			}
			continue
		}
		mine := stage < len(c.Stages) && slices.Contains(c.Stages[stage], p.config.Node.Name)
		if own.State != "" || !mine || c.Halted() || !c.Open {
			continue
		}
		if err := p.command(ctx, c, stage, cat); err != nil {
			return fmt.Errorf("command %s: %w", c.ID, err)
		}
	}
	return nil
}

// command takes its turn and runs one command. Where there is no turn to be had now, the next pull asks again.
func (p *pull) command(ctx context.Context, c state.CommandStatus, stage int, cat *render.Catalog) error {
	result := state.CommandResult{Node: p.config.Node.Name, State: state.Running, Instance: p.out.Run, Started: time.Now().UTC()}
	if !p.config.Agent.AllowRun {
		result.State, result.Ended, result.Reason = state.Refused, result.Started, "agent.allowRun is not set in "+p.config.file
		return p.store.EndCommand(ctx, c.ID, result, stage)
	}
	req, err := p.request(&state.Version{ID: c.ID}, cat)
	if err != nil {
		return err
	}
	req.Waiting = func(w *lock.Wait) { p.log.Info(w.Error()) }
	turn := lock.NewCommandTurn(p.store, req, c.Command)
	if wait, err := p.admit(ctx, turn, nil); wait != nil || err != nil {
		return err
	}
	defer func() {
		ctx, cancel := afterwards(ctx)
		defer cancel()
		if err := turn.Release(ctx); err != nil {
			p.log.WithError(err).Warn("the place of a command could not be given back")
		}
	}()
	if over, err := p.commandOver(ctx, c.ID); over || err != nil { // it failed elsewhere while this node waited
		return err
	}
	if err := p.store.BeginCommand(ctx, c.ID, result); err != nil {
		return err
	}
	p.log.WithField("command", c.ID).Infof("running for %s: %q", c.By, c.Args)
	p.runCommand(ctx, c.Command, &result)
	ctx, cancel := afterwards(ctx)
	defer cancel()
	return p.store.EndCommand(ctx, c.ID, result, stage)
}

// commandOver reports a command with which no further node begins.
func (p *pull) commandOver(ctx context.Context, id string) (bool, error) {
	c, _, err := p.store.Command(ctx, id)
	return err == nil && (c == nil || c.Halted() || !c.Open), err
}

// shownOutput is how much of the end of a command's output is kept in the fleet's record.
const shownOutput = 16 << 10

func (p *pull) runCommand(ctx context.Context, c state.Command, result *state.CommandResult) {
	args := c.Args
	if len(args) == 1 {
		args = apply.Shell(args[0])
	}
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	out, err := p.host(c.ID).Run(ctx, apply.Command{Args: args})
	result.State, result.ExitCode, result.Ended = state.Ran, out.ExitCode, time.Now().UTC()
	result.Output = out.StdOut + out.StdErr
	if over := len(result.Output) - shownOutput; over > 0 {
		result.Output = "..." + result.Output[over:]
	}
	switch {
	case err != nil:
		result.State, result.Reason = state.Failed, err.Error()
	case out.ExitCode != 0:
		result.State, result.Reason = state.Failed, fmt.Sprintf("exit code %d: %s", out.ExitCode, apply.LastLines(out))
	}
}
