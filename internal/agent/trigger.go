package agent

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/internal/event"
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

// raising keeps an event on the disk of this host.
type raising func(context.Context, ...state.Event) error

// judge judges some triggers, and raises their events. One that cannot be judged is said, and stays as it was. An event
// is kept before it is noted that it was raised: a host that is killed in between raises it again.
func (t *triggers) judge(ctx context.Context, which func(*render.Trigger) bool, raise raising) (failed []error) {
	edges := event.ReadEdges(t.file())
	before := maps.Clone(edges)
	maps.DeleteFunc(edges, func(name string, _ event.Edge) bool { // of triggers that the version does not have any more
		return !slices.ContainsFunc(t.program.catalog.Triggers, func(one *render.Trigger) bool { return one.Name == name })
	})
	for _, one := range t.program.catalog.Triggers {
		if !which(one) {
			continue
		}
		holds, err := t.program.Judge(ctx, apply.Options{Host: t.host, FleetReader: t.looks()}, one)
		if ctx.Err() != nil {
			break
		}
		now, raises := edges[one.Name].Judge(holds, time.Now().UTC(), one.For)
		if err == nil && raises {
			err = raise(ctx, t.event(one))
		}
		if err != nil {
			failed = append(failed, fmt.Errorf("trigger %s (%s): %w", one.Name, one.Pos, err))
			continue
		}
		edges[one.Name] = now
	}
	if !maps.Equal(edges, before) {
		if err := edges.Save(t.file()); err != nil {
			failed = append(failed, err)
		}
	}
	return failed
}

func (t *triggers) file() string { return filepath.Join(t.dir, "triggers.json") }

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

// judgeTriggers judges the triggers of the version that the pull works on, at its end. The agent judges those with an
// interval of their own between pulls, too.
func (p happenings) judgeTriggers(ctx context.Context) {
	p.agent.triggers = nil
	if p.program == nil || ctx.Err() != nil {
		return
	}
	t := &triggers{
		dir: p.config.Paths.State, node: p.config.Node.Name,
		program: p.program, host: p.agent.host(p.program.catalog.Version),
		store: p.store, log: p.log,
	}
	t.host.Fleet = p.compiler.fleet()
	p.out.warn(t.judge(ctx, func(*render.Trigger) bool { return true }, p.agent.keep)...)
	if len(p.program.catalog.Triggers) > 0 {
		p.agent.triggers = t
	}
}

// between judges the triggers with an interval of their own until ctx ends.
func (t *triggers) between(ctx context.Context, pulls time.Duration, raise raising) {
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
		if wait == pulls || !state.Pause(ctx, wait) {
			return
		}
		now = time.Now()
		failed := t.judge(ctx, func(one *render.Trigger) bool {
			is := !due[one.Name].IsZero() && !due[one.Name].After(now)
			if is {
				due[one.Name] = time.Time{}
			}
			return is
		}, raise)
		for _, err := range failed {
			t.log.WithError(err).Warn("a trigger cannot be judged, or its event not be kept")
		}
	}
}
