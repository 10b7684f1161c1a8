package apply

import (
	"context"
	"errors"
	"fmt"

	"github.com/pullet/pullet/apply/hostfile"
)

// What the steps of groups change is durable before anything depends on it that a power loss does not take back. The
// order on disk is:
//
//	the lines of the journal that say that the steps start, and their new files: harden
//	the names of the files, the steps' ends in the journal
//	all of these names: settle
//	a step of another kind starts, other nodes learn of it, the run ends
//
// A file is whole at any moment: its content is on disk before its name is. A step whose end was not settled is
// compared with the host again by the run that goes on, and steps that watch it react.

// harden makes durable what the steps of a group are about to put in place.
func (x *execution) harden(ctx context.Context, g *group) error {
	if g.empty() {
		return nil
	}
	x.mu.Lock()
	err := x.options.Journal.Sync()
	x.mu.Unlock()
	if err != nil {
		return err
	}
	return x.write(ctx, func() error { return hostfile.SyncAll(g.files) })
}

// makeDurable makes durable what the steps of groups changed that have ended.
func (x *execution) makeDurable(ctx context.Context) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.unsettled != nil || x.unsynced.Empty() {
		return x.unsettled
	}
	if err := x.write(ctx, x.unsynced.Sync); err != nil {
		x.unsettled = fmt.Errorf("what the run changed may not survive a power loss: %w", err)
		return x.unsettled
	}
	return x.options.Journal.Settled()
}

// write makes files durable, which may hang as any action may.
func (x *execution) write(ctx context.Context, do func() error) error {
	all := &boundStep{id: "durable files"}
	_, err := bounded(ctx, x.options.Host, all, "write", func() (struct{}, error) { return struct{}{}, do() })
	return err
}

// changed notes what the step changed, to be settled.
func (m *member) changed() error {
	if m.new.New == nil {
		return m.s.x.unsynced.AddAttributes(m.at)
	}
	return m.s.x.unsynced.AddName(m.at)
}

// found notes what stands at the paths of a step that was cut off and has nothing left to do: the run that was cut off
// made it, and may not have made it durable.
func (e *entry) found(ctx context.Context) error {
	for _, what := range e.s.step.manages() {
		if what.Path == "" {
			continue
		}
		_, err := bounded(ctx, e.s.x.options.Host, e.s.step, "check", func() (struct{}, error) {
			at, err := e.s.x.options.Host.Entry(what.Path)
			if err != nil {
				return struct{}{}, err
			}
			defer at.Close()
			err = e.s.x.unsynced.AddName(at)
			if bad := e.s.x.unsynced.AddAttributes(at); err == nil && !hostfile.NotThere(bad) {
				err = bad
			}
			return struct{}{}, err
		})
		if err != nil && !errors.Is(err, context.Canceled) && !hostfile.NotThere(err) {
			return err
		}
	}
	return nil
}

// settled makes durable what a step may count on that other nodes learn of.
func (e *entry) settled(ctx context.Context) {
	if !e.s.step.tells() || e.s.x.plan {
		return
	}
	if err := e.s.x.makeDurable(ctx); err != nil {
		e.s.r.fail(err)
	}
}

// confirm lets the end stand that a step had before the run was cut off: the host is as the step left it.
func (e *entry) confirm() {
	e.takeOver()
	if e.s.mates.group != nil { // else the next run that goes on looks again
		e.write(true)
	}
}

// tells reports a step whose end other nodes learn of.
func (s *boundStep) tells() bool {
	o := s.Options
	return o.Sync || o.Serialize != nil || o.Target != nil || o.FailAfterAllTargetsRan
}
