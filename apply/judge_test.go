package apply_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/internal/tier"
	"github.com/pullet/pullet/render"
)

// withTrigger is a program with a trigger of this expression, and a macro m that prints what the file "said" holds.
func withTrigger(t *testing.T, expression string) (*library, *apply.Program, *render.Trigger) {
	l := withMacro(t, "m: {t.ask: [{cmd: 'cat $PULLET_ROOT/said'}]}\nslow: {t.ask: [{cmd: 'sleep 60'}]}\n", puts("s"))
	l.root = t.TempDir()
	l.file("base/events.yaml", "events: {triggers: {'*': [{name: up}]}}\n")
	l.file("events/up.yaml", "up: {expression: \""+expression+"\"}\n")
	p, cat, err := apply.Compile(render.Open(render.Layer{Name: "main", FS: l.files}), l.in, l.specs())
	if err != nil {
		t.Fatal(err)
	}
	return l, p, cat.Triggers[0]
}

// TestJudge: a trigger is judged afresh each time, on what its macros read of the host and on the fleet as it is then.
func TestJudge(t *testing.T) {
	t.Parallel()
	l, p, trigger := withTrigger(t, "macros['m']() == 'yes' and len(services('db')) > 0")
	db := func(n int) render.View {
		return render.View{Services: map[string][]render.Service{"db": make([]render.Service, n)}}
	}
	for _, c := range []struct {
		said string
		look *fleetLook
		want bool
		bad  string
	}{
		{"yes", &fleetLook{view: db(1)}, true, ""},
		{"no", &fleetLook{view: db(1)}, false, ""},
		{"yes", &fleetLook{view: db(0)}, false, ""},
		{"yes", &fleetLook{err: errors.New("no permission")}, false, "no permission"},
		{"", &fleetLook{view: db(1)}, false, `macro "m": exit code 1: cat: `},
		{"yes", &fleetLook{view: db(1)}, true, ""},
	} {
		said := filepath.Join(l.root, "said")
		if err := os.WriteFile(said, []byte(c.said+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if c.said == "" {
			if err := os.Remove(said); err != nil {
				t.Fatal(err)
			}
		}
		o := l.options()
		o.FleetReader = func() apply.FleetReader { return c.look }
		got, err := p.Judge(t.Context(), o, trigger)
		if got != c.want || (err == nil) != (c.bad == "") || err != nil && !strings.Contains(err.Error(), c.bad) {
			t.Errorf("%+v: %v %v", c, got, err)
		}
	}
}

// TestJudgeForEver: a program is judged at every interval for as long as its version stays: no judgement takes of the
// work that the next one may do.
func TestJudgeForEver(t *testing.T) {
	t.Parallel()
	l, p, trigger := withTrigger(t, "all(1..100000, # > 0)")
	for i := range 60 { // more than a catalog may cost in all
		if yes, err := p.Judge(t.Context(), l.options(), trigger); !yes || err != nil {
			t.Fatalf("judgement %d: %v %v", i, yes, err)
		}
	}
}

// TestJudgeSlowly: a macro may take longer than an expression may compute; whoever asked can end it.
func TestJudgeSlowly(t *testing.T) {
	t.Parallel()
	l, p, trigger := withTrigger(t, "macros['slow']() != true")
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	begun := time.Now()
	if yes, err := p.Judge(ctx, l.options(), trigger); yes || !errors.Is(err, context.DeadlineExceeded) || time.Since(begun) > 30*time.Second {
		t.Errorf("%v %v after %s", yes, err, time.Since(begun))
	}
}

// TestJudgeLongMacro: what commands take does not count as the expression's time.
func TestJudgeLongMacro(t *testing.T) {
	tier.Long(t, "a macro runs for 11 s")
	t.Parallel()
	l := withMacro(t, "m: {t.ask: [{cmd: 'sleep 11; echo true'}]}\n", puts("s"))
	l.root = t.TempDir()
	l.file("base/events.yaml", "events: {triggers: {'*': [{name: up}]}}\n")
	l.file("events/up.yaml", "up: {expression: \"macros['m']() != true\"}\n")
	p, cat, err := apply.Compile(render.Open(render.Layer{Name: "main", FS: l.files}), l.in, l.specs())
	if err != nil {
		t.Fatal(err)
	}
	if yes, err := p.Judge(t.Context(), l.options(), cat.Triggers[0]); yes || err != nil {
		t.Errorf("%v %v", yes, err)
	}
}
