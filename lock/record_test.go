package lock

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/pullet/pullet/state"
)

// TestWriteOnce: a result that others may have read stays as it is; a failure, and what nobody knew, is replaced by
// what came of it after all.
func TestWriteOnce(t *testing.T) {
	for first, stays := range map[string]bool{"ok": true, Skipped: true, "failed": false, Unknown: false} {
		f := newFleet(t)
		q := f.request("m1", "master")
		c := f.elect(q, of(1))
		publish := func(attempt, result string) error {
			return c.Publish(f.ctx, chosenStep("init"), attempt, state.StepResult{Result: result}, []byte(`"`+attempt+`"`), 0)
		}
		f.must(f.start(c, "init", "1"))
		f.must(publish("1", first))
		f.must(f.start(c, "init", "2"))
		if err := publish("1", "ok"); stays != (err == nil) || err != nil && !errors.Is(err, ErrFenced) {
			t.Errorf("%s: an older attempt: %v", first, err)
		}
		f.must(publish("2", "ok"))
		read, err := c.Record(f.ctx, chosenStep("init"), 0)
		f.must(err)
		if replaced := read.Result.Attempt == "2"; replaced == stays {
			t.Errorf("%s: %+v", first, read)
		}
		if halted := f.gate("master").State == state.Halted; halted != (first == Unknown) {
			t.Errorf("%s: halted %v", first, halted)
		}
	}
}

// TestStartSeen: of two hosts that read the same record, as a clone and its original do, one starts the step.
func TestStartSeen(t *testing.T) {
	f := newFleet(t)
	q := f.request("m1", "master")
	one, other := f.elect(q, of(1)), f.elect(q, of(1))
	read, err := one.Record(f.ctx, chosenStep("init"), 0)
	f.must(err)
	f.must(one.Start(f.ctx, chosenStep("init"), "1", read))
	f.must(one.Start(f.ctx, chosenStep("init"), "1", read)) // its answer was lost
	if err := other.Start(f.ctx, chosenStep("init"), "2", read); !errors.Is(err, ErrMoved) {
		t.Errorf("the other one: %v", err)
	}
}

// TestSettledIsFresh: a result with a maxAge that an operator settles as done is as old as his word: the step does not
// run again, and readers go on.
func TestSettledIsFresh(t *testing.T) {
	f := newFleet(t)
	q := f.request("m1", "master")
	c := f.elect(q, of(1))
	read, err := c.Record(f.ctx, chosenStep("init"), time.Hour)
	f.must(err)
	f.must(c.Start(f.ctx, chosenStep("init"), "1", read))
	result := f.Steps.Key(q.Version.ID, state.StepHash("init"), "result", "m1")
	_, err = f.Client.Do(f.ctx, state.Put(result, state.StepResult{Node: "m1", Step: "init", Result: Unknown})) // as who waits for it says
	f.must(err)
	if _, err := f.Steps.Settle(f.ctx, "init", "ada", state.Settling{Done: true}); err != nil {
		t.Fatal(err)
	}
	if read, err = c.Record(f.ctx, chosenStep("init"), time.Hour); err != nil || !read.Final() {
		t.Errorf("it runs again: %+v, %v", read, err)
	}
	if found, waits := f.results(q, "init", of(1), time.Hour, false); found["m1"].Reason != "settled by ada" {
		t.Errorf("readers wait: %v, %q", found, waits)
	}
}

// TestOnce: a step that runs once in the fleet's life has its result in every version; who was chosen for it keeps its
// place also when it is gone.
func TestOnce(t *testing.T) {
	f := newFleet(t)
	e, step := f.migrated()
	f.decommission("master000")
	f.propose("v2")
	q := f.request("master001", "master")
	if second := f.elect(q, e); second.Chosen() || second.Others() != "master000" {
		t.Errorf("%v %s", second.Chosen(), second.Others())
	}
	found, err := NewSteps(f.Store, q).Results(f.ctx, step, e, 0, nil, func(w *Wait) { t.Error(w) })
	if err != nil || string(found["master000"].Value) != `1` {
		t.Errorf("%v %v", found, err)
	}
}

// migrated is a step that ran once in the fleet's life, on master000.
func (f *fleet) migrated() (Election, Step) {
	f.t.Helper()
	e, step := of(1), chosenStep("migrate")
	e.Once, step.Once = true, true
	c := f.elect(f.request("master000", "master"), e)
	read, err := c.Record(f.ctx, step, 0)
	f.must(err)
	f.must(c.Start(f.ctx, step, "1", read))
	f.must(c.Publish(f.ctx, step, "1", state.StepResult{Result: "ok"}, []byte(`1`), 0))
	return e, step
}

// TestOnceAgain: a step that is to run again in the fleet's life is taken by another node where the chosen one was
// given up.
func TestOnceAgain(t *testing.T) {
	f := newFleet(t)
	e, _ := f.migrated()
	if _, err := f.Steps.Settle(f.ctx, "migrate", "ada", state.Settling{Force: true}); err != nil {
		t.Fatal(err)
	}
	q := f.request("master001", "master")
	if f.elect(q, e).Chosen() {
		t.Error("its place is taken while the chosen node lives")
	}
	f.decommission("master000")
	if !f.elect(q, e).Chosen() {
		t.Error("nobody takes the place of a node that was given up")
	}
}

// TestAgainElsewhere: a node that was given up keeps its place while a step stands that it started, and who waits is
// told which; when the last of them is to run again, another node takes all of them.
func TestAgainElsewhere(t *testing.T) {
	f := newFleet(t)
	q, other := f.request("m1", "master"), f.request("m2", "master")
	c := f.elect(q, of(1))
	f.publish(c, "init", `"a"`, 0)
	f.must(f.start(c, "get token", "1"))
	f.die(q)
	waits := func(clear string) {
		t.Helper()
		if _, why := f.results(other, "get token", of(1), 0, true); !strings.HasSuffix(why, "; start m1 again, or let another node run what it started again: "+clear) {
			t.Error(why)
		}
		if f.elect(other, of(1)).Chosen() {
			t.Error("its place is taken")
		}
	}
	settle := func(step string) { _, err := f.Steps.Settle(f.ctx, step, "ada", state.Settling{}); f.must(err) }
	init, token := "pullet rollout settle init --again", "pullet rollout settle 'get token' --again"
	waits("pullet decommission m1; " + init + "; " + token)
	f.decommission("m1")
	waits(init + "; " + token)
	settle("get token")
	waits(init)
	settle("init")
	second := f.elect(other, of(1))
	if !second.Chosen() {
		t.Fatal("nobody takes its place")
	}
	f.publish(second, "init", `"b"`, 0)
	if found, why := f.results(other, "init", of(1), 0, false); len(found) != 1 || string(found["m2"].Value) != `"b"` {
		t.Errorf("%v %s", found, why)
	}
}

// TestSettle: what an operator says replaces the record, and lets the group go on that was halted for it; a step that
// runs is left alone.
func TestSettle(t *testing.T) {
	f := newFleet(t)
	q, reader := f.request("m1", "master"), f.request("web1", "web")
	c := f.elect(q, of(1))
	settle := func(done bool) error {
		_, err := f.Steps.Settle(f.ctx, "init", "ada", state.Settling{Done: done})
		return err
	}
	if err := settle(true); err == nil || !strings.Contains(err.Error(), `there is no record of a targeted step "init" in version `) {
		t.Error(err)
	}
	f.must(f.start(c, "init", "1"))
	if err := settle(true); err == nil || !strings.Contains(err.Error(), "m1 runs init since ") {
		t.Error(err)
	}
	f.die(q)
	f.results(reader, "init", of(1), 0, false)
	if g := f.gate("web"); g.State != state.Halted || g.Unknown != "init" || !strings.Contains(g.Clear(), "pullet rollout settle init --done") {
		t.Fatalf("%+v", g)
	}
	f.must(settle(true))
	found, _ := f.results(reader, "init", of(1), 0, false)
	if g := f.gate("web"); g.State == state.Halted || g.Resumed != "ada" || found["m1"].Result != "ok" {
		t.Errorf("%+v %v", g, found)
	}
	f.must(settle(false))
	if read, err := f.elect(f.request("m1", "master"), of(1)).Record(f.ctx, chosenStep("init"), 0); err != nil || read.Attempt != "" || read.Result.Result != "" || !strings.HasPrefix(read.Again, "ada ") {
		t.Errorf("%+v %v", read, err)
	}
}
