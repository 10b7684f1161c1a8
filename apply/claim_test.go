package apply_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/render"
)

// chosen are the gates of a node that was chosen for every targeted step.
type chosen struct {
	holds
	record apply.Record // that the fleet has of the step
	begin  func(attempt string)
}

func (c *chosen) Chosen(context.Context, apply.GatedStep) (bool, string, error) { return true, "", nil }

func (c *chosen) Record(context.Context, apply.GatedStep) (apply.Record, error) { return c.record, nil }

func (c *chosen) Begin(_ context.Context, _ apply.GatedStep, attempt string) error {
	c.record = apply.Record{Attempt: attempt}
	c.begin(attempt)
	return nil
}

func (c *chosen) Publish(context.Context, apply.GatedStep, string, render.StepResult, string) error {
	return nil
}

// TestClaimBeforeTheStep: what a run that takes a step for others leaves when it is killed between the fleet's record
// and the step. The claim is on disk by then: the next run knows that the step did not begin, and takes it. Killed
// within the step, nobody knows what came of it.
func TestClaimBeforeTheStep(t *testing.T) {
	l := newLab(t)
	js := one(cmds("s", "runOptions: {target: {limit: 1}, idempotent: false}"))
	left := map[string]string{}
	takes := func(at string) {
		left[at] = filepath.Join(t.TempDir(), "left")
		if err := os.CopyFS(left[at], os.DirFS(l.dir)); err != nil {
			t.Fatal(err)
		}
	}
	held := holds{ask: func(context.Context) error { return nil }}
	gates := &chosen{holds: held, begin: func(string) { takes("before the step") }}
	l.onApply = func(string) { takes("within the step") }
	l.runWith(gates, js)
	l.wantRan("s")
	for at, want := range map[string]string{"before the step": "s changed", "within the step": "s failed"} {
		next := newLabIn(t, left[at])
		next.runs = l.runs
		r := next.runWith(&chosen{holds: held, record: gates.record, begin: func(string) {}}, js)
		next.want(r, want)
		if ran := len(next.ran) > 0; ran != (want == "s changed") {
			t.Errorf("%s: it ran %q", at, next.ran)
		}
	}
}

// runWith runs jobs under gates.
func (l *lab) runWith(gates apply.Gates, js jobs) *apply.Report {
	l.t.Helper()
	o := l.options()
	o.Gates = gates
	r, err := l.program(js).Run(context.Background(), o)
	if err != nil {
		l.t.Fatalf("run: %v", err)
	}
	return r
}
