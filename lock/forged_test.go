package lock

import (
	"testing"
	"time"

	"github.com/pullet/pullet/state"
)

// unread is a value that no record has.
const unread = `{"`

func (f *fleet) forge(key, value string) {
	f.t.Helper()
	_, err := f.Client.Put(f.ctx, key, value)
	f.must(err)
}

// TestForgedArrival: an arrival that cannot be read, or that says something else, counts as failed.
func TestForgedArrival(t *testing.T) {
	for _, value := range []string{unread, "", "well done", "done\n", "\x1b[2J"} {
		f := newFleet(t)
		all := f.requests(2, "db")
		f.arrive(all[0], Done)
		steps := NewSteps(f.Store, all[0])
		f.forge(steps.key(joint("db"), "in", "db000"), value)
		if how := f.came(steps, "db000"); how != Failed {
			t.Errorf("%q is %q", value, how)
		}
	}
}

// TestForgedArrivalOfAnother: an arrival in the name of a node that did not come does not open a barrier where it
// cannot be read: it halts the group, until the node arrives itself.
func TestForgedArrivalOfAnother(t *testing.T) {
	f := newFleet(t)
	all := f.requests(2, "db")
	f.forge(NewSteps(f.Store, all[0]).key(joint("db"), "in", "db001"), unread)
	if f.arrive(all[0], Done) {
		t.Error("it is open")
	}
	f.mustAwait(all[0], "step db/join failed on db001")
	if g := f.gate("db"); g.State != state.Halted || g.Node != "db001" {
		t.Errorf("%+v", g)
	}
	if !f.arrive(all[1], Done) {
		t.Error("db001 arrived itself, and it is not open")
	}
}

// came is how a node came to the barrier, as the record says it.
func (f *fleet) came(s *Steps, node string) string {
	f.t.Helper()
	t, err := (&barrier{steps: s, step: joint("db")}).tally(f.ctx)
	f.must(err)
	return t.in[node]
}

// TestForgedResult: a result is the word of a node that was chosen. One by another node is not read, and one that
// cannot be read is waited for.
func TestForgedResult(t *testing.T) {
	f := newFleet(t)
	q, other, reader := f.request("m1", "master"), f.request("m2", "master"), f.request("web1", "web")
	c, step := f.elect(q, of(1)), chosenStep("init")
	forge := func(node, value string) {
		f.forge(c.steps.resultKey(step, "result", node), value)
	}
	forge(other.node(), `{"node":"m2","step":"init","result":"ok","value":{"StdOut":"forged"},"at":"2026-01-01T00:00:00Z"}`)
	found, wait := f.results(reader, "init", of(1), 0, false)
	f.contains(wait, "no result yet of m1 (alive)")
	if len(found) != 0 {
		t.Errorf("%+v", found)
	}
	forge("m1", unread)
	_, wait = f.results(reader, "init", of(1), 0, false)
	f.contains(wait, "no result yet of m1 (alive)")
	forge("m1", `{"node":"m1","step":"init","result":"ok","value":"wrong","at":"2026-01-01T00:00:00Z"}`)
	found, _ = f.results(reader, "init", of(1), 0, false)
	var text string
	f.must(NewSteps(f.Store, reader).Value(f.ctx, found["m1"], &text))
	if text != "wrong" || len(found) != 1 {
		t.Errorf("%q %+v", text, found)
	}
	var typed struct{ StdOut string }
	if err := NewSteps(f.Store, reader).Value(f.ctx, found["m1"], &typed); err == nil {
		t.Error("a value of another type is read")
	}
}

// TestForgedStart: a start that cannot be read is one of nobody's attempts, and a result that cannot be read is
// unknown: the node neither takes it for its own attempt nor publishes over it.
func TestForgedStart(t *testing.T) {
	f := newFleet(t)
	q := f.request("m1", "master")
	c, step := f.elect(q, of(1)), chosenStep("init")
	f.must(f.start(c, "init", "1"))
	f.forge(c.steps.resultKey(step, "started", "m1"), unread)
	r, err := c.Record(f.ctx, step, 0)
	f.must(err)
	if r.Attempt == "" || r.Attempt == "1" || r.Result.Result != "" {
		t.Errorf("%+v", r)
	}
	if err := c.Publish(f.ctx, step, "1", state.StepResult{Result: "ok"}, []byte(`"x"`), 0); err != ErrFenced {
		t.Errorf("published over it: %v", err)
	}
	f.forge(c.steps.resultKey(step, "result", "m1"), unread)
	r, err = c.Record(f.ctx, step, time.Hour)
	f.must(err)
	f.contains(r.Result.Reason, "cannot be read")
	if r.Result.Result != Unknown || r.Final() {
		t.Errorf("%+v", r)
	}
}
