package agent

import (
	"context"
	"errors"
	"time"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/internal/event"
	"github.com/pullet/pullet/internal/safetext"
	"github.com/pullet/pullet/state"
)

// raise keeps events on the disk of this host and tells the fleet of them. Where the fleet's record does not answer, a
// later pull tells it. It may be used by several goroutines.
func (a *Agent) raise(ctx context.Context, events ...state.Event) error {
	if err := a.keep(ctx, events...); err != nil {
		return err
	}
	store := a.connection.store()
	if store == nil {
		return nil
	}
	if _, err := a.spool().Tell(ctx, store); err != nil {
		a.logger.WithError(store.Explain(err)).Debug("events are kept on this host until etcd answers")
	}
	return nil
}

// keep keeps events on the disk of this host, with what all of its events have.
func (a *Agent) keep(ctx context.Context, events ...state.Event) error {
	for i := range events {
		e := &events[i]
		e.By = a.config.Node.Name
		if e.ID == "" {
			e.ID = event.NewID()
		}
		if e.Time.IsZero() {
			e.Time = time.Now().UTC()
		}
	}
	return a.spool().Raise(ctx, a.connection.store(), events...)
}

// emits keeps the events of steps, caused by a chain of runs of reactions. The fleet is told of them at once.
func (a *Agent) emits(chain []state.Cause) func(context.Context, apply.EmittedEvent) error {
	return func(ctx context.Context, e apply.EmittedEvent) error {
		return a.raise(ctx, state.Event{Name: e.Name, Hosts: e.Hosts, Data: e.Data, Dedupe: e.Dedupe, Chain: chain})
	}
}

func (a *Agent) spool() event.Spool {
	return event.Spool{Dir: a.config.Paths.State, By: a.config.Node.Name}
}

// happenings are the events of one pull.
type happenings struct{ *pull }

// tell raises what the pull has to tell, and has the reactor's work done where no agent does it.
func (p happenings) tell(ctx context.Context) {
	p.keepEvents(ctx)
	p.judgeTriggers(ctx)
	ctx, cancel := afterwards(ctx)
	defer cancel()
	if p.store == nil {
		return
	}
	left, err := p.agent.spool().Tell(ctx, p.store)
	if err == nil && !p.loop && p.agent.answering.needsReactor(ctx) {
		err = answerer{p.agent}.reactor(p.store).Once(ctx)
	}
	if err = p.store.Explain(err); err != nil {
		p.log.WithError(err).Debug("events wait for a later pull")
	} else if left > 0 {
		p.log.Debugf("%d events wait for the reactor", left)
	}
}

// keepEvents keeps the events of this pull, and of what the host is about to run out of.
func (p happenings) keepEvents(ctx context.Context) {
	ctx, cancel := afterwards(ctx)
	defer cancel()
	var err error
	if events := p.ofRuns(); len(events) > 0 {
		err = p.agent.keep(ctx, events...)
	}
	if err = errors.Join(err, p.nearEnds(ctx, time.Now().UTC())); err != nil {
		p.out.warn(err)
	}
}

// ofRuns are the events of this pull: what its runs did, and that they failed.
func (p happenings) ofRuns() (out []state.Event) {
	if r := p.out.Report; r != nil {
		out = append(out, p.runEvents(r, nil)...)
	}
	for _, r := range p.out.Reactions {
		out = append(out, p.runEvents(r.Report, r.Chain)...)
	}
	return out
}

// The names of the events that pullet raises by itself. That a run changed something, or ended, is raised only where a
// reaction or a sink wants it: each host has that at each new version, and at each pull.
const (
	stepFailed = "pullet/step/failed"
	runFailed  = "pullet/run/failed"
	runChanged = "pullet/run/changed"
	runDone    = "pullet/run/completed"
	driftFound = "pullet/drift/corrected"
)

// maxFailures is how many failed steps of a run are told.
const maxFailures = 20

// runEvents are the events of a run, caused by a chain of reactions.
func (p happenings) runEvents(r *apply.Report, chain []state.Cause) (out []state.Event) {
	add := func(name string, data map[string]any) {
		data["run"], data["version"] = r.Run, r.Version
		if r.Reaction != "" {
			data["reaction"] = r.Reaction
		}
		out = append(out, state.Event{Name: name, Hosts: []string{p.config.Node.Name}, Data: data, Chain: chain})
	}
	for _, s := range r.Steps {
		if s.Outcome == apply.Failed && len(out) < maxFailures {
			add(stepFailed, map[string]any{
				"job": s.Job, "step": s.Step, "action": s.Action, "reason": shortly(s.Reason), "fault": string(s.Fault),
			})
		}
	}
	switch {
	case r.Failed():
		add(runFailed, map[string]any{"reason": shortly(r.Why())})
	case r.Pending():
		return out
	case r.Changed() > 0 && !p.out.Upgrade && chain == nil:
		add(driftFound, map[string]any{"changed": r.Changed()})
	case r.Changed() > 0 && p.agent.answering.hears(runChanged):
		add(runChanged, map[string]any{"changed": r.Changed()})
	}
	if p.agent.answering.hears(runDone) {
		add(runDone, map[string]any{"changed": r.Changed(), "failed": r.Failed()})
	}
	return out
}

// shortly is a text that fits into the data of an event.
func shortly(text string) string { return safetext.Line(text, 500) }
