package apply_test

import (
	"context"
	"testing"

	"github.com/pullet/pullet/apply"
)

// boots makes the host boot, whenever a boot is needed.
type boots struct {
	lab *lab
}

func (a *boots) Reboots()        {}
func (a *boots) Unchecked() bool { return true }
func (a *boots) Check(context.Context, *apply.Host) (apply.Change, error) {
	return apply.Change{Summary: "reboot"}, nil
}

func (a *boots) Apply(context.Context, *apply.Host, apply.Change) (apply.Output, error) {
	a.lab.ran = append(a.lab.ran, "boot")
	return apply.Output{Reboot: true}, nil
}

// TestReboot: the run ends for the boot and goes on behind it, once for a version, whatever happened to the catalog meanwhile.
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
			run := func(js jobs, boot string) *apply.Report {
				o := l.options()
				o.Host.Boot = boot
				r, err := l.program(js).Run(context.Background(), o)
				if err != nil {
					t.Fatal(err)
				}
				return r
			}
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
