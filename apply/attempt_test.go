package apply_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pullet/pullet/apply"
)

// scripted is an action whose calls do as they are told, one after the other; the last one is told again.
type scripted struct {
	Name   string `yaml:"name,required"`
	script *script
}

type script struct {
	checks, applies, reacts []func() (apply.Change, apply.Output, error)
	did                     string
}

func (s *script) next(what string, of *[]func() (apply.Change, apply.Output, error)) (apply.Change, apply.Output, error) {
	s.did += what
	if len(*of) == 0 {
		return apply.Change{Summary: "do it"}, apply.Output{}, nil
	}
	do := (*of)[0]
	if len(*of) > 1 {
		*of = (*of)[1:]
	}
	return do()
}

func (a *scripted) Check(context.Context, *apply.Host) (apply.Change, error) {
	c, _, err := a.script.next("c", &a.script.checks)
	return c, err
}

func (a *scripted) Apply(context.Context, *apply.Host, apply.Change) (apply.Output, error) {
	_, out, err := a.script.next("a", &a.script.applies)
	return out, err
}

func (a *scripted) Reaction() string { return "restart" }

func (a *scripted) React(context.Context, *apply.Host) (apply.Output, error) {
	_, out, err := a.script.next("r", &a.script.reacts)
	return out, err
}

func does(c apply.Change, o apply.Output, err error) func() (apply.Change, apply.Output, error) {
	return func() (apply.Change, apply.Output, error) { return c, o, err }
}

// TestAttempts: how often a step is compared, applied and reacts, by what its attempts return, and what becomes of it.
func TestAttempts(t *testing.T) {
	type calls = []func() (apply.Change, apply.Output, error)
	change := apply.Change{Summary: "do it", Diff: "+x\n"}
	todo, right := does(change, apply.Output{}, nil), does(apply.Change{State: "there"}, apply.Output{}, nil)
	blind := does(apply.Change{}, apply.Output{}, errors.New("cannot look"))
	bad, good := does(change, apply.Output{}, errors.New("broken")), does(change, apply.Output{State: "made"}, nil)
	late, lateBad := does(change, apply.Output{Late: true}, nil), does(change, apply.Output{Late: true}, errors.New("broken"))
	waits := func(within time.Duration) func() (apply.Change, apply.Output, error) {
		return does(change, apply.Output{}, &apply.PendingError{Reason: "not there", Every: time.Millisecond, Within: within})
	}
	const thrice, forever, watch = "runOptions: {retry: {interval: 1ms, limit: 3}}", "runOptions: {retry: {interval: 1ms}}", "watch: [w]"
	for name, c := range map[string]struct {
		options                 string
		checks, applies, reacts calls
		want                    string // outcome, state, summary, reason
		did                     string
	}{
		"it goes well":                        {"", calls{todo}, calls{good}, nil, "changed made, do it", "ca"},
		"it is right":                         {"", calls{right}, nil, nil, "ok there, ", "c"},
		"it only reads":                       {"", calls{does(apply.Change{Summary: "read", Same: true}, apply.Output{}, nil)}, calls{good}, nil, "ok made, read", "ca"},
		"nothing is different":                {"", calls{todo}, calls{does(change, apply.Output{Same: true}, nil)}, nil, "ok ok, do it", "ca"},
		"the rest comes later":                {"", calls{todo}, calls{does(change, apply.Output{Later: true}, nil)}, nil, "changed ok, do it, when the run has ended", "ca"},
		"it fails once":                       {thrice, calls{todo}, calls{bad, good}, nil, "changed made, do it", "caca"},
		"it fails as often as it may":         {thrice, calls{todo}, calls{bad}, nil, "failed failed, do it: broken (attempt 3)", "cacaca"},
		"it fails, and may not again":         {"", calls{todo}, calls{bad, good}, nil, "failed failed, do it: broken", "ca"},
		"it fails often, without a bound":     {forever, calls{todo}, calls{bad, bad, bad, bad, bad, good}, nil, "changed made, do it", "cacacacacaca"},
		"it got there all the same":           {thrice, calls{todo, right}, calls{bad}, nil, "changed there, do it", "cac"},
		"it cannot be looked at again":        {thrice, calls{todo, blind}, calls{bad, bad, good}, nil, "changed made, do it", "cacaca"},
		"it cannot be looked at":              {thrice, calls{blind}, nil, nil, "failed failed, : cannot look", "c"},
		"what it waits for comes":             {"", calls{todo}, calls{waits(time.Hour), waits(time.Hour), good}, nil, "changed made, do it", "caaa"},
		"what it waits for does not come":     {"", calls{todo}, calls{waits(0)}, nil, "pending pending, do it: not there", "ca"},
		"the same, and it may again":          {thrice, calls{todo}, calls{waits(0), good}, nil, "pending pending, do it: not there", "ca"},
		"it waits, and then it fails":         {"", calls{todo}, calls{waits(time.Hour), bad}, nil, "failed failed, do it: broken", "caa"},
		"it is right, and reacts":             {watch, calls{right}, nil, calls{good}, "changed made, restart (because a/w changed)", "cr"},
		"it changes, and need not react":      {watch, calls{todo}, calls{good}, nil, "changed made, do it", "ca"},
		"it changes, and reacts as well":      {watch, calls{todo}, calls{late}, calls{good}, "changed made, do it", "car"},
		"it changes, and the reaction fails":  {watch, calls{todo}, calls{late}, calls{bad}, "failed failed, do it: broken", "car"},
		"it fails, and does not react":        {watch, calls{todo}, calls{lateBad}, calls{good}, "failed failed, do it: broken", "ca"},
		"nothing changed, and it need not":    {"watch: [same]", calls{todo}, calls{late}, calls{good}, "changed ok, do it", "ca"},
		"the reaction fails once, of as many": {watch + ", " + thrice, calls{right}, nil, calls{bad, good}, "changed made, restart (because a/w changed)", "crcr"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			l.values["same"] = ""
			s := &script{checks: c.checks, applies: c.applies, reacts: c.reacts}
			l.more = []apply.Spec{{Name: "t.scripted", New: func() apply.Action { return &scripted{script: s} }}}
			more := strings.Join([]string{"{name: s, action: t.scripted, parameters: {name: s}", c.options}, ", ")
			got := step(t, l.run(one(puts("w"), puts("same"), strings.TrimSuffix(more, ", ")+"}")), "s")
			text := fmt.Sprintf("%s %s, %s", got.Outcome, got.Result.State, got.Summary)
			if got.Reason != "" {
				text += ": " + got.Reason
			}
			if text != c.want || s.did != c.did {
				t.Errorf("got  %s, did %s\nwant %s, did %s", text, s.did, c.want, c.did)
			}
		})
	}
}

// TestPlanAsksNothingBehindSteps: what follows an action is asked in a run alone, and there what an action lacks is for
// it to say.
func TestPlanAsksNothingBehindSteps(t *testing.T) {
	l := newLab(t)
	l.values["right"] = ""
	l.more = []apply.Spec{{Name: "t.needy", New: func() apply.Action { return &needy{} }}}
	js := one(thing("t.needy", "n"), puts("a", condition("success", "false")), puts("right", condition("continue", "false")))
	plan := l.program(js).Plan(t.Context(), l.options())
	l.want(plan, "n failed, a changed, right ok")
	if diff := step(t, plan, "a").Diff; diff != "+\n" {
		t.Errorf("the plan's diff: %q", diff)
	}
	l.want(l.run(js), "n changed, a failed, right failed")
}

// TestTakenOver: what a run that goes on reports of the steps that ended before it was cut off is what they reported
// then, but for the diff. So is what nobody needs to look at again.
func TestTakenOver(t *testing.T) {
	a := newAssets(t)
	s := &script{
		checks:  []func() (apply.Change, apply.Output, error){does(apply.Change{Summary: "remove it", Diff: "-secret\n", Lost: true}, apply.Output{}, nil)},
		applies: []func() (apply.Change, apply.Output, error){does(apply.Change{}, apply.Output{State: "gone", ExitCode: 3, StdOut: "o", StdErr: "e", Data: "d"}, nil)},
	}
	a.more = append(a.more, apply.Spec{Name: "t.scripted", New: func() apply.Action { return &scripted{script: s} }})
	js := one(
		puts("drifts"), thing("t.asset", "new"), thing("t.scripted", "lost"), thing("t.daemon", "reacts", "watch: [new]"), puts("skipped", when("false")),
		puts("last"),
	)
	a.at("v1", one(puts("drifts"), thing("t.daemon", "reacts")), nil)
	a.values["drifts"] = "by hand"
	first := a.killed("v2", js, "after reacts", map[string]string{"last": ""})
	s.did = ""
	again := a.at("v2", js, nil)
	if s.did != "" || !again.Resumed {
		t.Errorf("resumed %v, did %q", again.Resumed, s.did)
	}
	for _, name := range []string{"drifts", "new", "lost", "reacts"} {
		one, two := *step(t, first, name), *step(t, again, name)
		one.Began = two.Began
		if one.Diff, one.Seconds, two.Seconds = "", 0, 0; fmt.Sprintf("%+v", one) != fmt.Sprintf("%+v", two) {
			t.Errorf("%s\nfirst %+v\nagain %+v", name, one, two)
		}
	}
	if !step(t, again, "drifts").Drift || !step(t, again, "lost").Lost || !step(t, again, "reacts").Reacted || len(step(t, again, "new").Made) != 1 {
		t.Errorf("%s: what is to be taken over is not there", outcomes(again))
	}
	a.want(again, "drifts changed, new changed, lost changed, reacts changed, skipped skipped, last ok")
}
