package apply_test

import (
	"context"
	"testing"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/render"
)

// asksForBoot is a command after which the host shuts down.
type asksForBoot struct {
	command `yaml:",inline"`
}

func (a *asksForBoot) Verdict() (changed, failed *render.Expression) { return nil, nil }

// TestLeaving: the run ends behind a command that asks for a boot, and goes on behind it after the boot. The command is
// not run again.
func TestLeaving(t *testing.T) {
	for _, more := range []string{"", ", " + condition("success", "steps['boot'].Result == 'ok'"), ", runOptions: {idempotent: false}"} {
		l := newLab(t)
		l.more = []apply.Spec{{Name: "t.boot", New: func() apply.Action { return &asksForBoot{command{lab: l}} }}}
		js := one(cmds("before"), "{name: boot, action: t.boot, parameters: {name: boot}"+more+"}", cmds("behind"))
		in := func(boot string, leaving bool) *apply.Report {
			return l.booted(js, boot, func(o *apply.Options) {
				o.Host.Leaving = func(context.Context) bool { return leaving }
				o.Turn = false
			})
		}
		r := in("a", true)
		l.want(r, "before changed, boot pending")
		l.wantRan("before", "boot")
		if !r.Leaving || r.Reboot || !r.Pending() {
			t.Errorf("leaving %v, reboot %v: %s", r.Leaving, r.Reboot, r.Why())
		}
		r = in("a", true) // a pull before the host is down
		l.want(r, "before changed, boot pending")
		l.wantRan()
		l.want(in("b", false), "before changed, boot changed, behind changed")
		l.wantRan("behind")
		l.want(in("b", false), "before ok, boot ok, behind ok")
		l.wantRan()
	}
}

// TestLeavingFails: after the boot, what the step expects is asked.
func TestLeavingFails(t *testing.T) {
	l := newLab(t)
	l.more = []apply.Spec{{Name: "t.boot", New: func() apply.Action { return &asksForBoot{command{lab: l}} }}}
	js := one("{name: boot, action: t.boot, parameters: {name: boot}, "+condition("success", "false")+"}", cmds("behind", "require: boot"))
	leaving := func(o *apply.Options) { o.Host.Leaving = func(context.Context) bool { return true } }
	l.want(l.booted(js, "a", leaving), "boot pending")
	l.want(l.booted(js, "b", nil), "boot failed, behind unmet")
}

// TestStays: a command that asks for nothing is a command.
func TestStays(t *testing.T) {
	l := newLab(t)
	l.more = []apply.Spec{{Name: "t.boot", New: func() apply.Action { return &asksForBoot{command{lab: l}} }}}
	js := one("{name: boot, action: t.boot, parameters: {name: boot}}", cmds("behind"))
	stays := func(o *apply.Options) { o.Host.Leaving = func(context.Context) bool { return false } }
	l.want(l.booted(js, "a", stays), "boot changed, behind changed")
}
