package apply_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/render"
)

// gatebook writes down what a run asks of its gates. What they answer is in says, by the name of the method.
type gatebook struct {
	holds
	says   map[string]error
	others string // take the targeted steps; "" is this node
	record apply.Record
	open   bool // the barrier, on arrival
	asked  []string
}

func (g *gatebook) note(words ...string) error {
	g.asked = append(g.asked, strings.TrimSpace(strings.Join(words, " ")))
	return g.says[words[0]]
}

func (g *gatebook) Chosen(context.Context, apply.GatedStep) (bool, string, error) {
	return g.others == "", g.others, g.note("Chosen")
}

func (g *gatebook) Record(context.Context, apply.GatedStep) (apply.Record, error) {
	return g.record, g.note("Record")
}

func (g *gatebook) Begin(context.Context, apply.GatedStep, string) error { return g.note("Begin") }

func (g *gatebook) Publish(_ context.Context, _ apply.GatedStep, _ string, r render.StepResult, reason string) error {
	return g.note("Publish", r.Result, reason)
}

func (g *gatebook) Result(context.Context, apply.GatedStep) (render.StepResult, error) {
	return render.StepResult{Result: "ok", StdOut: "of another"}, g.note("Result")
}

func (g *gatebook) Serialize(context.Context, apply.GatedStep) (apply.EndSerial, error) {
	return func(_ context.Context, how apply.Outcome, _ apply.Fault, why string) error {
		return g.note("End", string(how), why)
	}, g.note("Serialize")
}

func (g *gatebook) Arrive(_ context.Context, _ apply.GatedStep, how string, _ apply.Fault) (bool, error) {
	return g.open, g.note("Arrive", how)
}

func (g *gatebook) Await(context.Context, apply.GatedStep) error { return g.note("Await") }

// TestGates: what a run asks of its gates for one step, in order, and what it makes of their answers.
func TestGates(t *testing.T) {
	t.Parallel()
	away, waits := errors.New("etcd is away"), &apply.PendingError{Reason: "waiting for n2"}
	on := func(method string, err error) map[string]error { return map[string]error{method: err} }
	done := apply.Record{Attempt: "1", Of: "1", Fresh: true, Result: render.StepResult{Result: "ok"}}
	const target, serial, barrier = "target: {limit: 1}", "serialize: {count: 1}", "sync: true"
	for name, c := range map[string]struct {
		options string
		fails   bool // the step's action
		gates   gatebook
		want    string // the outcome and its reason
		ran     bool
		asked   string
	}{
		"chosen":                          {target, false, gatebook{}, "changed", true, "Chosen, Record, Begin, Publish ok"},
		"chosen, and it fails":            {target, true, gatebook{}, "failed broken", true, "Chosen, Record, Begin, Publish failed broken"},
		"another is chosen":               {target, false, gatebook{others: "n2"}, "skipped n2 takes it", false, "Chosen"},
		"nobody knows who is chosen":      {target, false, gatebook{says: on("Chosen", away)}, "failed etcd is away", false, "Chosen"},
		"nobody is chosen yet":            {target, false, gatebook{says: on("Chosen", waits)}, "pending waiting for n2", false, "Chosen"},
		"no record can be read":           {target, false, gatebook{says: on("Record", away)}, "failed etcd is away", false, "Chosen, Record"},
		"it ran already":                  {target, false, gatebook{record: done}, "ok", false, "Chosen, Record"},
		"its start cannot be recorded":    {target, false, gatebook{says: on("Begin", away)}, "failed etcd is away", false, "Chosen, Record, Begin, Publish failed etcd is away"},
		"its result cannot be published":  {target, false, gatebook{says: on("Publish", away)}, "failed etcd is away", true, "Chosen, Record, Begin, Publish ok"},
		"its turn":                        {serial, false, gatebook{}, "changed", true, "Serialize, End changed"},
		"its turn, and it fails":          {serial, true, gatebook{}, "failed broken", true, "Serialize, End failed broken"},
		"not its turn":                    {serial, false, gatebook{says: on("Serialize", waits)}, "pending waiting for n2", false, "Serialize"},
		"the turn cannot be taken":        {serial, false, gatebook{says: on("Serialize", away)}, "failed etcd is away", false, "Serialize"},
		"the turn cannot be given back":   {serial, false, gatebook{says: on("End", away)}, "failed etcd is away", true, "Serialize, End changed"},
		"a failure, and the same":         {serial, true, gatebook{says: on("End", away)}, "failed broken", true, "Serialize, End failed broken"},
		"a barrier":                       {barrier, false, gatebook{}, "changed", true, "Arrive done, Await"},
		"a barrier that is open":          {barrier, false, gatebook{open: true}, "changed", true, "Arrive done"},
		"a failure does not wait":         {barrier, true, gatebook{}, "failed broken", true, "Arrive failed"},
		"others are not there":            {barrier, false, gatebook{says: on("Await", waits)}, "pending changed here; waiting for n2", true, "Arrive done, Await"},
		"the arrival cannot be told":      {barrier, false, gatebook{says: on("Arrive", away)}, "failed etcd is away", true, "Arrive done"},
		"a failure cannot be told":        {barrier, true, gatebook{says: on("Arrive", away)}, "failed broken", true, "Arrive failed"},
		"a failure that stops nobody":     {"failAfterAllTargetsRan: true", true, gatebook{}, "failed broken", true, "Arrive failed"},
		"a success that waits for nobody": {"failAfterAllTargetsRan: true", false, gatebook{}, "changed", true, "Arrive done"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			if c.fails {
				l.fails["s"] = "broken"
			}
			o := l.options()
			c.gates.ask = func(context.Context) error { return nil }
			o.Gates = &c.gates
			r, err := l.program(one(cmds("s", "runOptions: {"+c.options+"}"))).Run(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			s := r.Steps[0]
			if got := strings.TrimSpace(string(s.Outcome) + " " + s.Reason); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
			if got := strings.Join(c.gates.asked, ", "); got != c.asked || slices.Contains(l.ran, "s") != c.ran {
				t.Errorf("asked %s\nwant  %s\nran %v", got, c.asked, l.ran)
			}
		})
	}
}

// TestReadsATarget: who reads the result of a targeted step gets that of this node, when it was chosen, or that of
// another; a failure here is one for all who read it.
func TestReadsATarget(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fails  string
		others string
		want   string
		why    string
		value  string
	}{
		"here":            {"", "", "t changed, b changed", "", "out of t"},
		"on another node": {"", "n2", "t skipped, b changed", "", "of another"},
		"it failed":       {"broken", "", "t failed, b failed", "it reads the result of a/t, which failed here: broken", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			if c.fails != "" {
				l.fails["t"] = c.fails
			}
			o := l.options()
			o.Gates = &gatebook{holds: holds{ask: func(context.Context) error { return nil }}, others: c.others}
			b := "{name: b, action: t.put, parameters: {name: b, value: \"{{ (step `t`).StdOut }}\"}, " + when("steps['t'].Result == 'ok'") + "}"
			r, err := l.program(one(cmds("t", "runOptions: {target: {limit: 1}}"), b)).Run(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			l.want(r, c.want)
			if why := step(t, r, "b").Reason; why != c.why || l.values["b"] != c.value {
				t.Errorf("why %q, value %q", why, l.values["b"])
			}
		})
	}
}

// TestOwnResultWithoutEtcd: what the node took for all reads the same while etcd is away as before. Where several take
// the step, what the others returned is not known then, and who reads it waits.
func TestOwnResultWithoutEtcd(t *testing.T) {
	t.Parallel()
	for limit, want := range map[string]string{"1": "t ok, b ok", "2": "t ok, b pending"} {
		t.Run(limit, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			b := "{name: b, action: t.put, parameters: {name: b, value: \"{{ (index (step `t`).ByNode `n1`).StdOut }}\"}}"
			js := one(cmds("t", "runOptions: {target: {limit: "+limit+"}}"), b)
			held := holds{ask: func(context.Context) error { return nil }}
			l.runWith(&gatebook{holds: held}, js)
			before := l.values["b"]
			r := l.runWith(nil, js)
			l.want(r, want)
			if l.values["b"] != before {
				t.Errorf("%q, and before %q", l.values["b"], before)
			}
		})
	}
}
