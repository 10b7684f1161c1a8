package agent

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/pullet/pullet/lock"
	"github.com/pullet/pullet/render"
	"github.com/pullet/pullet/state"
)

// request is the node's wish to change to a version, under the rules of that version.
func (p *pull) request(v *state.Version, node render.Node, fleet render.Fleet, inventory render.Inventory) lock.Request {
	members := map[string]string{}
	for name, n := range inventory {
		members[name] = n.Role()
	}
	return lock.Request{
		Presence: p.presence, Version: v, VersionRev: p.agreed, Run: p.out.Run,
		Group: state.GroupOf(node.Role()), Members: members, Depends: fleet.Rollout.RoleDependencies[node.Role()],
		Limit:       func(roster int) int { return fleet.Rollout.LimitFor(node.Role(), roster) },
		MaxFailures: fleet.Rollout.MaxFailures, Waiting: p.waiting(v),
	}
}

// waiting tells everybody why the node waits.
func (p *pull) waiting(v *state.Version) func(*lock.Wait) {
	said := ""
	return func(w *lock.Wait) {
		if w.Error() == said {
			return
		}
		said = w.Error()
		if p.Waiting != nil {
			p.Waiting(w)
		}
		st := p.status(v, w.Gate+": "+w.Reason)
		st.Clear = w.Clear
		ctx, cancel := afterwards(context.Background())
		defer cancel()
		if err := p.store.SetStatus(ctx, p.config.Node.Name, state.Rollout, state.Pending, st); err != nil {
			p.log.WithError(err).Warn("the reason to wait could not be recorded")
		}
	}
}

// gate takes a slot for the version. While the node is not admitted it keeps the version that it runs in force, and waits as long
// as it was told to. No slot and no error: it still waits, and the outcome says for what.
func (p *pull) gate(ctx context.Context, v *state.Version, program *compiled) (*lock.Slot, error) {
	req := p.request(v, program.catalog.Node, program.catalog.Fleet, program.catalog.Inventory)
	slot, wait, err := lock.Try(ctx, p.store, req)
	if slot != nil || err != nil && !errors.Is(err, lock.ErrSuperseded) {
		return slot, err
	}
	p.out.Version = v
	if wait != nil {
		wait.Since = time.Now()
		req.Waiting(wait)
		if err := p.keepRunning(ctx); err != nil {
			return nil, err
		}
		waiting, cancel := context.WithTimeout(ctx, p.Wait)
		defer cancel()
		slot, err = lock.Acquire(waiting, p.store, req)
		if err != nil && errors.Is(err, waiting.Err()) { // no time was left to ask again
			err = wait
		}
	}
	switch {
	case slot != nil:
		return slot, nil
	case errors.As(err, &wait):
		p.out.Wait = wait
	case errors.Is(err, lock.ErrSuperseded):
		p.out.Wait = &lock.Wait{Gate: "rollout of " + v.String(), Reason: err.Error(), Clear: "the next pull follows", Since: time.Now()}
	default:
		return nil, err
	}
	return nil, nil
}

// keepRunning corrects drift of the version that the node runs while it waits for a newer one. It leaves a node alone on which half
// of a newer version is, which would be turned back.
func (p *pull) keepRunning(ctx context.Context) error {
	running := p.local.Running
	if running == nil || p.halfway() {
		return nil
	}
	program, err := p.compile(ctx, running)
	if err != nil {
		p.out.Warnings = append(p.out.Warnings, err)
		return nil
	}
	report, err := p.run(ctx, running, program, nil)
	if err != nil {
		return err
	}
	return p.publish(ctx, running, report)
}

// firstLine is the head of a message that may have many, and what follows it where it is a heading.
func firstLine(err error) string {
	line, rest, more := strings.Cut(err.Error(), "\n")
	if more && strings.HasSuffix(line, ":") {
		var next string
		next, _, more = strings.Cut(rest, "\n")
		line += " " + next
	}
	if more {
		line += " ..."
	}
	return line
}
