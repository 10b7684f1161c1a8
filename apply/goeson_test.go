package apply_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/pullet/pullet/apply"
)

// TestGoesOnAtTheGate: a step that changed the host and did not get through its gate has changed it in the run that
// goes on, once, whatever its own condition says then. A run of another version knows it no more; what watches it
// reacts.
func TestGoesOnAtTheGate(t *testing.T) {
	t.Parallel()
	away, waits := errors.New("etcd is away"), &apply.PendingError{Reason: "waiting for n2"}
	for name, c := range map[string]struct {
		options, method string
		err             error
		action          string // of the step
		version         string // of the run that goes on
		first, then     string
		ran             []string
	}{
		"at a barrier": {
			"sync: true", "Await", waits, "t.put", "v1",
			"before changed, s pending, asks pending, svc pending", "before ok, s changed, asks changed, svc changed", []string{"asks", "svc!"},
		},
		"a command": {
			"sync: true", "Await", waits, "t.cmd", "v1",
			"before changed, s pending, asks pending, svc pending", "before ok, s changed, asks changed, svc changed", []string{"asks", "svc!"},
		},
		"with its place": {
			"serialize: {count: 1}", "End", waits, "t.put", "v1",
			"before changed, s pending, asks pending, svc pending", "before ok, s changed, asks changed, svc changed", []string{"asks", "svc!"},
		},
		"the place is not taken back": {
			"serialize: {count: 1}", "End", away, "t.put", "v1",
			"before changed, s failed, asks skipped, svc unmet", "before ok, s changed, asks changed, svc changed", []string{"asks", "svc!"},
		},
		"another version": {
			"sync: true", "Await", waits, "t.put", "v2",
			"before changed, s pending, asks pending, svc pending", "before ok, s skipped, asks skipped, svc changed", []string{"svc!"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			l.more = []apply.Spec{{Name: "t.daemon", New: func() apply.Action { return &daemon{put{lab: l}} }}}
			l.values["svc"] = ""
			js := one(
				puts("before"),
				thing(c.action, "s", when("steps['before'].Changed"), "runOptions: {"+c.options+"}"),
				cmds("asks", when("steps['s'].Changed")),
				thing("t.daemon", "svc", "watch: [s]"),
			)
			gates := gatebook{says: map[string]error{c.method: c.err}, holds: holds{ask: func(context.Context) error { return nil }}}
			run := func() *apply.Report {
				o := l.options()
				o.Gates = &gates
				r, err := l.program(js).Run(t.Context(), o)
				if err != nil {
					t.Fatal(err)
				}
				return r
			}
			l.want(run(), c.first)
			l.wantRan("before", "s")
			gates.says, l.version = nil, c.version
			l.want(run(), c.then)
			l.wantRan(c.ran...)
			if again := run(); again.Changed() > 0 || again.Resumed {
				t.Errorf("the next run: %s, resumed %v", outcomes(again), again.Resumed)
			}
		})
	}
}

// TestGoesOnWithItsCondition: a step whose condition after it came true in a later run has changed the host in that run
// alone.
func TestGoesOnWithItsCondition(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.root = t.TempDir()
	l.macros = "ready: {t.ask: [{cmd: 'test -e ready && echo true || echo false'}]}\n"
	js := one(puts("s", condition("success", "macro('ready')", "retry: {interval: 1ms, limit: 0}")), cmds("asks", when("steps['s'].Changed")))
	o := l.options()
	o.Rest = func(context.Context, func(context.Context)) error { return context.DeadlineExceeded }
	r, err := l.program(js).Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	l.want(r, "s pending, asks pending")
	if err := os.WriteFile(filepath.Join(l.root, "ready"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	l.want(l.run(js), "s changed, asks changed")
	l.want(l.run(js), "s ok, asks skipped")
}
