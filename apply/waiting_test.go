package apply_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/render"
)

// fleetLook is a look at a fleet that does not change.
type fleetLook struct {
	view    render.View
	err     error
	changed chan struct{} // closed: what was read changed
}

func (l *fleetLook) View(context.Context) (render.View, error) { return l.view, l.err }
func (l *fleetLook) Watches() []string                         { return []string{"service db"} }
func (l *fleetLook) Changed(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-l.changed:
	}
}

// timeUp is the context of a run whose time is up when a test says so.
type timeUp struct {
	context.Context
	end time.Time
	up  chan struct{} // closed: it is
}

func (c *timeUp) Deadline() (time.Time, bool) { return c.end, true }
func (c *timeUp) Done() <-chan struct{}       { return c.up }
func (c *timeUp) Err() error {
	select {
	case <-c.up:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

// TestAwaitedConditions: who watches the run learns of a condition that waits, and how its wait ended.
func TestAwaitedConditions(t *testing.T) {
	t.Parallel()
	const job = ", conditions: {when: {condition: \"macro('ready')\", retry: {interval: 1ms, limit: 3}}}"
	for name, c := range map[string]struct {
		job, kind, retry string
		makes            bool   // it comes true while it waits
		want             string // the step's outcome
		of               string
		attempts         int
		over             string
	}{
		"it comes true":              {"", "when", "interval: 1ms, limit: 0", true, "s changed", "when of a/s", 0, "true"},
		"it does not":                {"", "when", "interval: 1ms, limit: 3", false, "s pending", "when of a/s", 3, "false"},
		"what the step is to bring":  {"", "success", "interval: 1ms, limit: 3", false, "s failed", "success of a/s", 3, "false"},
		"what comes behind the step": {"", "continue", "interval: 1ms, limit: 0", true, "s changed", "continue of a/s", 0, "true"},
		"the condition of the job":   {job, "", "", false, "s pending", "when of job a", 3, "false"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			l.root = t.TempDir()
			l.macros = "ready: {t.ask: [{cmd: 'test -e ready && echo true || echo false'}]}\n"
			s := puts("s")
			if c.kind != "" {
				s = puts("s", condition(c.kind, "macro('ready')", "retry: {"+c.retry+"}"))
			}
			o, over := l.options(), ""
			var waits []apply.Awaited
			o.Await = func(a apply.Awaited) func(bool) {
				waits = append(waits, a)
				if c.makes {
					if err := os.WriteFile(filepath.Join(l.root, "ready"), nil, 0o600); err != nil {
						t.Error(err)
					}
				}
				return func(held bool) { over += fmt.Sprint(held) }
			}
			p := l.program(jobs{{"a " + c.job, list(s)}})
			r, err := p.Run(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			l.want(r, c.want)
			if len(waits) != 1 || over != c.over {
				t.Fatalf("%d waits, over %q", len(waits), over)
			}
			a := waits[0]
			until := time.Time{}
			if c.attempts > 0 {
				until = a.Since.Add(time.Duration(c.attempts-1) * time.Millisecond)
			}
			if a.Gate() != "condition "+c.of || a.Attempts != c.attempts || a.Every != time.Millisecond || !a.Until.Equal(until) || a.Text != "macro('ready')" || a.Pos.Line == 0 || len(a.Watches) > 0 {
				t.Errorf("%+v", a)
			}
			if at := r.Awaited(); (at != nil) != r.Pending() {
				t.Errorf("the report waits for %+v", at)
			}
			plan := p.Plan(t.Context(), o)
			if len(waits) != 1 || plan.Pending() != strings.Contains(c.want, "pending") {
				t.Errorf("a plan does not wait: %s, %d waits", outcomes(plan), len(waits))
			}
		})
	}
}

// TestConditionOfTheFleet: a condition that reads the fleet gets a new view at each attempt, says what it watches, and
// is asked again when that changed.
func TestConditionOfTheFleet(t *testing.T) {
	t.Parallel()
	db := func(n int) render.View {
		return render.View{Services: map[string][]render.Service{"db": make([]render.Service, n)}}
	}
	changed := make(chan struct{})
	close(changed)
	for name, c := range map[string]struct {
		looks       []*fleetLook
		want, why   string
		waits, asks int
	}{
		"it is there":              {[]*fleetLook{{view: db(1)}}, "s changed", "", 0, 1},
		"it comes":                 {[]*fleetLook{{view: db(0), changed: changed}, {view: db(1)}}, "s changed", "", 1, 2},
		"it does not come":         {[]*fleetLook{{view: db(0)}}, "s pending", "waiting for: len(services('db')) > 0", 1, 1},
		"the fleet is away":        {[]*fleetLook{{err: &apply.PendingError{Reason: "etcd is away"}}}, "s pending", "etcd is away", 0, 1},
		"the fleet cannot be read": {[]*fleetLook{{err: errors.New("no permission")}}, "s failed", "no permission", 0, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			o := l.options()
			asked := 0
			o.FleetReader = func() apply.FleetReader {
				asked++
				return c.looks[min(asked, len(c.looks))-1]
			}
			var waits []apply.Awaited
			ctx := &timeUp{t.Context(), time.Now().Add(time.Minute), make(chan struct{})}
			o.Await = func(a apply.Awaited) func(bool) {
				if waits = append(waits, a); c.want == "s pending" {
					close(ctx.up)
				}
				return func(bool) {}
			}
			r, err := l.program(one(puts("s", when("len(services('db')) > 0", "retry: {interval: 1h, limit: 2}")))).Run(ctx, o)
			if err != nil {
				t.Fatal(err)
			}
			l.want(r, c.want)
			if why := step(t, r, "s").Reason; !strings.Contains(why, c.why) || asked != c.asks || len(waits) != c.waits {
				t.Errorf("asked %d times, %d waits: %s", asked, len(waits), why)
			}
			for _, a := range waits {
				if len(a.Watches) != 1 || a.Watches[0] != "service db" || !a.Until.Equal(ctx.end) {
					t.Errorf("%+v, want an end at %s", a, ctx.end)
				}
			}
		})
	}
}

// TestConditionBehindAStepTimesOut: the step's own time ends a wait behind it as a failure.
func TestConditionBehindAStepTimesOut(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	r := l.run(one(cmds("s", condition("success", "false", "retry: {interval: 1h, limit: 0}"), "runOptions: {timeout: 2s}")))
	l.want(r, "s failed")
	if why := step(t, r, "s").Reason; !strings.Contains(why, "success: waiting for: false") {
		t.Error(why)
	}
}
