package apply_test

import (
	"context"
	"strings"
	"testing"

	"github.com/pullet/pullet/apply"
)

// boots makes the host boot, whenever a boot is needed.
type boots struct {
	lab  *lab
	hold <-chan struct{} // when it is not nil: until then it is at work
}

func (a *boots) Reboots()        {}
func (a *boots) Unchecked() bool { return true }
func (a *boots) Check(context.Context, *apply.Host) (apply.Change, error) {
	return apply.Change{Summary: "reboot"}, nil
}

func (a *boots) Apply(context.Context, *apply.Host, apply.Change) (apply.Output, error) {
	if a.hold != nil {
		<-a.hold
	}
	a.lab.note("boot")
	return apply.Output{Reboot: true}, nil
}

// TestReboot: the run ends for the boot and goes on behind it, once for a version, whatever happened to the catalog
// meanwhile.
func TestReboot(t *testing.T) {
	js := one(cmds("before"), "{name: boot, action: t.boot}", cmds("behind"))
	changed := one(cmds("before"), cmds("more"), "{name: boot, action: t.boot}", cmds("behind"))
	for _, c := range []struct {
		name, boot string
		then       jobs
		ran        []string
		outcomes   string
	}{
		{"it booted", "b", js, []string{"behind"}, "before changed, boot changed, behind changed"},
		{"it did not boot", "a", js, []string{"boot"}, "before changed, boot pending"},
		{"it booted, and the catalog is another", "b", changed, []string{"more", "behind"}, "before ok, more changed, boot ok, behind changed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newLab(t)
			l.more = []apply.Spec{{Name: "t.boot", New: func() apply.Action { return &boots{lab: l} }}}
			run := func(js jobs, boot string) *apply.Report { return l.booted(js, boot, nil) }
			r := run(js, "a")
			l.want(r, "before changed, boot pending")
			l.wantRan("before", "boot")
			if !r.Reboot || !r.Pending() || r.Failed() {
				t.Errorf("reboot %v, pending %v: %s", r.Reboot, r.Pending(), r.Why())
			}
			r = run(c.then, c.boot)
			l.want(r, c.outcomes)
			l.wantRan(c.ran...)
			if c.boot == "b" {
				if r := run(c.then, "c"); r.Reboot || r.Changed() > 0 {
					t.Errorf("the next run: %s", outcomes(r))
				}
			}
		})
	}
}

// booted is a run in a boot of the host.
func (l *lab) booted(js jobs, boot string, with func(*apply.Options)) *apply.Report {
	l.t.Helper()
	o := l.options()
	o.Host.Boot = boot
	if with != nil {
		with(&o)
	}
	r, err := l.program(js).Run(context.Background(), o)
	if err != nil {
		l.t.Fatalf("run: %v", err)
	}
	return r
}

// TestRebootVerdict: what the step expects is asked after the boot, once; the host does not boot again to find out.
func TestRebootVerdict(t *testing.T) {
	for expected, want := range map[string]string{"false": "boot failed, behind ", "true": "boot changed, behind "} {
		l := newLab(t)
		l.more = []apply.Spec{{Name: "t.boot", New: func() apply.Action { return &boots{lab: l} }}}
		js := one("{name: boot, action: t.boot, "+condition("success", expected)+"}", cmds("behind"))
		l.want(l.booted(js, "a", nil), "boot pending")
		l.wantRan("boot")
		l.want(l.booted(js, "b", nil), want+"changed")
		l.want(l.booted(js, "c", nil), strings.Replace(want, "changed", "ok", 1)+"ok")
		l.wantRan("behind")
	}
}

// TestRebootAlone: a boot is no validation.
func TestRebootAlone(t *testing.T) {
	l := newLab(t)
	l.more = []apply.Spec{{Name: "t.boot", New: func() apply.Action { return &boots{lab: l} }}}
	_, err := l.bind(jobs{{"a", list(puts("x"))}, {"check", list("{name: boot, action: t.boot}")}})
	if want := "jobs/check.yaml:2:24: t.boot changes the host: a validation only checks it"; err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

// TestRebootTurn: a host boots when it is its turn. Until then the report asks for it, and nothing stands on record as
// begun.
func TestRebootTurn(t *testing.T) {
	l := newLab(t)
	l.more = []apply.Spec{{Name: "t.boot", New: func() apply.Action { return &boots{lab: l} }}}
	js := jobs{{"a", list(puts("before"), "{name: boot, action: t.boot}", puts("behind"))}, {"check", list(cmds("v"))}}
	for _, boot := range []string{"a", "b"} { // one by another's hand is not the one that the step asks for
		r := l.booted(js, boot, func(o *apply.Options) { o.Turn = false })
		if got := step(t, r, "boot"); len(r.Steps) != 2 || !r.NeedsTurn || r.Reboot || !r.Pending() || got.Outcome != apply.Pending || got.Reason != "the host has to boot, and waits for its turn" {
			t.Errorf("needs turn %v, reboot %v: %s, %s", r.NeedsTurn, r.Reboot, outcomes(r), got.Reason)
		}
		if r.Resumed {
			t.Error("it goes on with a run that was over: what drifts meanwhile is not seen")
		}
	}
	l.wantRan("before")
	if r := l.booted(js, "b", nil); r.NeedsTurn || !r.Reboot {
		t.Errorf("its turn: needs turn %v, reboot %v: %s", r.NeedsTurn, r.Reboot, outcomes(r))
	}
	r := l.booted(js, "c", func(o *apply.Options) { o.Turn = false })
	l.want(r, "before ok, boot changed, behind changed, v ok")
	l.wantRan("boot", "behind", "v")
}

// TestRebootFailHard: a run that ends for a step that is failHard does not boot the host, whichever of the two came
// first.
func TestRebootFailHard(t *testing.T) {
	for _, first := range []string{"x", "boot"} {
		t.Run(first, func(t *testing.T) {
			l := newLab(t)
			l.fails["x"] = "broken"
			gate := make(chan struct{})
			spec := &boots{lab: l}
			if first == "x" {
				spec.hold = gate
			} else {
				l.onApply = func(string) { <-gate }
			}
			l.more = []apply.Spec{{Name: "t.boot", New: func() apply.Action { return spec }}}
			js := jobs{{"a", "runOptions: {ordering: justdoit}\n" + list("{name: boot, action: t.boot}", puts("x", "runOptions: {failHard: true}"))}}
			r := l.booted(js, "a", func(o *apply.Options) {
				o.Watch = func(s *apply.StepReport) {
					if s.Step == first {
						close(gate)
					}
				}
			})
			if r.Reboot || !r.Failed() || r.Stopped != "step a/x failed and is failHard" {
				t.Errorf("reboot %v, stopped %q: %s", r.Reboot, r.Stopped, outcomes(r))
			}
		})
	}
}

// TestUp: a boot lasts for some time, since this process runs in it.
func TestUp(t *testing.T) {
	if up := apply.Up(); up <= 0 {
		t.Errorf("up for %s", up)
	}
}
