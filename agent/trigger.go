package agent

import (
	"context"
	"fmt"
	"maps"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/event"
	"github.com/pullet/pullet/render"
	"github.com/pullet/pullet/state"
)

// triggers are those of the version that a host runs, with what judges them.
type triggers struct {
	dir     string
	node    string
	program *compiled
	host    *apply.Host
	store   *state.Store // nil: the view of the last pull stands
	log     *logrus.Entry
}

// judge judges some triggers, and returns the events that they raise. One that cannot be judged is said, and stays as
// it was.
func (t *triggers) judge(ctx context.Context, which func(*render.Trigger) bool) (out []state.Event, failed []error) {
	edges := event.ReadEdges(t.dir)
	before := maps.Clone(edges)
	for _, one := range t.program.catalog.Triggers {
		if !which(one) {
			continue
		}
		holds, err := t.program.Judge(ctx, apply.Options{Host: t.host, FleetReader: t.looks()}, one)
		if ctx.Err() != nil {
			break
		}
		if err != nil {
			failed = append(failed, fmt.Errorf("trigger %s (%s): %w", one.Name, one.Pos, err))
			continue
		}
		now, raises := edges[one.Name].Judge(holds, time.Now().UTC(), one.For)
		edges[one.Name] = now
		if raises {
			out = append(out, t.event(one))
		}
	}
	if maps.Equal(edges, before) {
		return out, failed
	}
	if err := edges.Save(t.dir); err != nil { // it would be raised again and again
		return nil, append(failed, err)
	}
	return out, failed
}

// event is what a trigger raises.
func (t *triggers) event(of *render.Trigger) state.Event {
	data, _ := withoutSecrets(of.Data.Value(), t.program.catalog.Secrets().Redact).(map[string]any)
	return state.Event{Name: of.Event, Hosts: []string{t.node}, Data: data}
}

// withoutSecrets is a value with a word in place of every secret.
func withoutSecrets(v any, redact func(string) string) any {
	switch v := v.(type) {
	case string:
		return redact(v)
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, value := range v {
			out[redact(key)] = withoutSecrets(value, redact)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, value := range v {
			out[i] = withoutSecrets(value, redact)
		}
		return out
	}
	return v
}

// looks are looks at the fleet as it is now; nil where nobody answers.
func (t *triggers) looks() func() apply.FleetReader {
	if t.store == nil {
		return nil
	}
	return func() apply.FleetReader { return &oneLook{store: t.store} }
}

// oneLook is a look at the fleet for a trigger, which is judged once.
type oneLook struct{ store *state.Store }

func (l *oneLook) View(ctx context.Context) (render.View, error) {
	v, err := fleetView(ctx, l.store)
	return v, l.store.Explain(err)
}

func (l *oneLook) Changed(ctx context.Context) { <-ctx.Done() }

func (l *oneLook) Watches() []string { return nil }

// judgeTriggers judges the triggers of the version that the host runs, at the end of a pull. The agent judges those
// with an interval of their own between pulls, too.
func (p happenings) judgeTriggers(ctx context.Context) []state.Event {
	p.agent.triggers = nil
	if p.program == nil || len(p.program.catalog.Triggers) == 0 || ctx.Err() != nil {
		return nil
	}
	t := &triggers{
		dir: p.config.Paths.State, node: p.config.Node.Name,
		program: p.program, host: p.agent.host(p.program.catalog.Version),
		store: p.store, log: p.log,
	}
	t.host.Fleet = p.compiler.fleet()
	p.agent.triggers = t
	out, failed := t.judge(ctx, func(*render.Trigger) bool { return true })
	p.out.warn(failed...)
	return out
}

// between judges the triggers with an interval of their own until ctx ends.
func (t *triggers) between(
	ctx context.Context, pulls time.Duration, raise func(context.Context, ...state.Event) error,
) {
	due := map[string]time.Time{}
	for {
		wait := pulls
		now := time.Now()
		for _, one := range t.program.catalog.Triggers {
			if one.Interval <= 0 || one.Interval >= pulls {
				continue
			}
			if due[one.Name].IsZero() {
				due[one.Name] = now.Add(one.Interval)
			}
			wait = min(wait, due[one.Name].Sub(now))
		}
		if wait == pulls || !rests(ctx, wait) {
			return
		}
		now = time.Now()
		events, failed := t.judge(ctx, func(one *render.Trigger) bool {
			is := !due[one.Name].IsZero() && !due[one.Name].After(now)
			if is {
				due[one.Name] = time.Time{}
			}
			return is
		})
		for _, err := range failed {
			t.log.WithError(err).Warn("a trigger cannot be judged")
		}
		if len(events) > 0 && ctx.Err() == nil {
			if err := raise(ctx, events...); err != nil {
				t.log.WithError(err).Warn("an event of a trigger is lost")
			}
		}
	}
}
