package apply_test

import (
	"context"
	"testing"

	"github.com/pullet/pullet/apply"
)

// enabled is a service whose being enabled does not answer a change of its configuration: it has to restart as well,
// and cannot.
type enabled struct {
	Name string `yaml:"name,required"`
	lab  *lab
}

func (a *enabled) Check(context.Context, *apply.Host) (apply.Change, error) {
	if a.lab.values[a.Name] == "enabled" {
		return apply.Change{}, nil
	}
	return apply.Change{Summary: "enable"}, nil
}

func (a *enabled) Apply(context.Context, *apply.Host, apply.Change) (apply.Output, error) {
	a.lab.values[a.Name] = "enabled"
	return apply.Output{Late: true}, nil
}

// Reaction is what React does.
func (a *enabled) Reaction() string { return "restart" }

func (a *enabled) React(context.Context, *apply.Host) (apply.Output, error) {
	_, err := a.lab.apply("restart")
	return apply.Output{}, err
}

// TestLateReaction: that a step's own part is done does not make a success of a reaction that fails; the next run owes
// it.
func TestLateReaction(t *testing.T) {
	l := newLab(t)
	l.more = []apply.Spec{{Name: "t.service", New: func() apply.Action { return &enabled{lab: l} }}}
	js := one(puts("conf"), thing("t.service", "svc", "watch: [conf]", "runOptions: {retry: {interval: 1ms, limit: 3}}"))
	l.fails["restart"] = "it does not start"
	l.want(l.run(js), "conf changed, svc failed")
	l.wantRan("conf", "restart", "restart", "restart")
	delete(l.fails, "restart")
	l.want(l.run(js), "conf ok, svc changed")
	l.wantRan("restart")
	l.want(l.run(js), "conf ok, svc ok")
	l.wantRan()
}
