package apply

import (
	"testing"

	"github.com/pullet/pullet/render"
)

// reportOf is a report of steps that ended, a and so on by their names, in order.
func reportOf(version string, steps ...StepReport) *Report {
	r := &Report{Version: version, Counts: map[Outcome]int{}}
	for i := range steps {
		steps[i].Job = "j"
		if steps[i].Step == "" {
			steps[i].Step = string(rune('a' + i))
		}
		r.add(&steps[i])
	}
	return r
}

// TestVerdictOfARun: what a run counts as, from what became of its steps.
func TestVerdictOfARun(t *testing.T) {
	failed, unmet, pending := StepReport{Outcome: Failed}, StepReport{Outcome: Unmet}, StepReport{Outcome: Pending}
	ok, changed := StepReport{Outcome: OK}, StepReport{Outcome: Changed}
	check := func(o Outcome) StepReport { return StepReport{Outcome: o, Validation: true} }
	type verdict struct {
		failed, onlyValidations, pending, late, waits bool
		changed                                       int
	}
	for name, c := range map[string]struct {
		steps   []StepReport
		late    int
		stopped string
		want    verdict
	}{
		"nothing":                          {nil, 0, "", verdict{}},
		"all well":                         {[]StepReport{ok, changed, changed}, 0, "", verdict{changed: 2}},
		"one failed":                       {[]StepReport{changed, failed}, 0, "", verdict{failed: true, changed: 1}},
		"one is unmet":                     {[]StepReport{unmet}, 0, "", verdict{failed: true}},
		"one waits":                        {[]StepReport{pending}, 0, "", verdict{pending: true}},
		"one waits for other nodes":        {[]StepReport{ok, {Outcome: Pending, Held: true}}, 0, "", verdict{pending: true, waits: true}},
		"one waits, and one failed":        {[]StepReport{pending, failed}, 0, "", verdict{failed: true}},
		"stopped":                          {[]StepReport{ok}, 0, "told to", verdict{pending: true}},
		"stopped, and one failed":          {[]StepReport{failed}, 0, "told to", verdict{failed: true}},
		"a validation failed":              {[]StepReport{changed, check(Failed)}, 0, "", verdict{failed: true, onlyValidations: true, changed: 1}},
		"a validation is unmet":            {[]StepReport{check(Unmet)}, 0, "", verdict{failed: true, onlyValidations: true}},
		"a validation and a step failed":   {[]StepReport{failed, check(Failed)}, 0, "", verdict{failed: true}},
		"a validation failed, a step not":  {[]StepReport{unmet, check(Failed)}, 0, "", verdict{failed: true}},
		"all that failed stops nobody":     {[]StepReport{failed, failed}, 2, "", verdict{failed: true, late: true}},
		"some of what failed stops nobody": {[]StepReport{failed, failed}, 1, "", verdict{failed: true}},
	} {
		r := reportOf("v", c.steps...)
		r.late, r.Stopped = c.late, c.stopped
		got := verdict{r.Failed(), r.OnlyValidationsFailed(), r.Pending(), r.Late(), r.Waits(), r.Changed()}
		if got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

// TestRepeats: a run repeats the last one when it failed in the same way, changed nothing, and is of the same version.
// What went well does not count.
func TestRepeats(t *testing.T) {
	failed := func(reason string) StepReport { return StepReport{Step: "x", Outcome: Failed, Reason: reason} }
	ok, unmet := StepReport{Outcome: OK}, StepReport{Step: "x", Outcome: Unmet, Reason: "no"}
	broken := func(errs ...string) *Report {
		r := reportOf("v")
		r.Errors = errs
		return r
	}
	for name, c := range map[string]struct {
		this, last *Report
		want       bool
	}{
		"the same failure":               {reportOf("v", failed("no")), reportOf("v", failed("no")), true},
		"another step was right already": {reportOf("v", failed("no"), ok), reportOf("v", failed("no")), true},
		"another reason":                 {reportOf("v", failed("no")), reportOf("v", failed("never")), false},
		"another outcome":                {reportOf("v", failed("no")), reportOf("v", unmet), false},
		"another item": {
			reportOf("v", StepReport{Step: "x", Item: "1", Outcome: Failed}), reportOf("v", StepReport{Step: "x", Item: "2", Outcome: Failed}), false,
		},
		"one more failed":      {reportOf("v", failed("no"), failed("no")), reportOf("v", failed("no")), false},
		"another version":      {reportOf("v", failed("no")), reportOf("w", failed("no")), false},
		"something changed":    {reportOf("v", failed("no"), StepReport{Outcome: Changed}), reportOf("v", failed("no"), StepReport{Outcome: Changed}), false},
		"both went well":       {reportOf("v", ok), reportOf("v", ok), false},
		"it waits as before":   {reportOf("v", StepReport{Outcome: Pending}), reportOf("v", StepReport{Outcome: Pending}), false},
		"the same mistake":     {broken("a.yaml:1: no"), broken("a.yaml:1: no"), true},
		"another mistake":      {broken("a.yaml:1: no"), broken("a.yaml:2: no"), false},
		"the mistake is fixed": {broken(), broken("a.yaml:1: no"), false},
	} {
		if got := c.this.Repeats(c.last); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestWhyOfARun: a run says in a line what failed, else what is unmet, else what waits, else why it stopped. Whether an
// operator has to say what became of a step is told by the first failure.
func TestWhyOfARun(t *testing.T) {
	at := render.Position{File: "jobs/j.yaml", Line: 2, Col: 3}
	one := func(name string, o Outcome, reason string) StepReport {
		return StepReport{Step: name, Outcome: o, Reason: reason, Pos: at}
	}
	settle := one("s", Failed, "lost")
	settle.Unsettled, settle.Item = "j/t", "eu"
	host := one("h", Failed, "full")
	host.Fault = HostFault
	for _, c := range []struct {
		stopped        string
		steps          []StepReport
		why, unsettled string
	}{
		{"", nil, "", ""},
		{"told to", []StepReport{one("a", OK, "fine")}, "told to", ""},
		{"told to", []StepReport{one("p", Pending, "later")}, "j/p (jobs/j.yaml:2:3): later", ""},
		{"", []StepReport{one("p", Pending, "later"), one("u", Unmet, "no")}, "j/u (jobs/j.yaml:2:3): no", ""},
		{"", []StepReport{one("u", Unmet, "no"), one("f", Failed, "bad"), one("g", Failed, "worse")}, "j/f (jobs/j.yaml:2:3): bad", ""},
		{"", []StepReport{host}, "host fault: j/h (jobs/j.yaml:2:3): full", ""},
		{"", []StepReport{one("u", Unmet, "no"), settle}, "j/s eu (jobs/j.yaml:2:3): lost", "j/t"},
		{"", []StepReport{one("f", Failed, "bad"), settle}, "j/f (jobs/j.yaml:2:3): bad", ""},
	} {
		r := reportOf("v", c.steps...)
		r.Stopped = c.stopped
		if r.Why() != c.why || r.Unsettled() != c.unsettled {
			t.Errorf("%q, unsettled %q; want %q, %q", r.Why(), r.Unsettled(), c.why, c.unsettled)
		}
	}
}
