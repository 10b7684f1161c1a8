package lock

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pullet/pullet/internal/patience"
	"github.com/pullet/pullet/state"
)

// TestMaxFailures: a node counts once however often it fails, and its success strikes its failure; one more than is
// survived halts.
func TestMaxFailures(t *testing.T) {
	f := newFleet(t)
	turns := map[string]*Turn{}
	for _, n := range []string{"a", "b", "c"} {
		q := f.request(n, "web")
		q.Rules.Limit, q.Rules.MaxFailures = limit(3), 1
		turns[n] = f.mustTry(q)
	}
	want := func(step, gate string, failed ...string) {
		t.Helper()
		if g := f.gate("web"); g.State != gate || strings.Join(g.Failed, " ") != strings.Join(failed, " ") {
			t.Errorf("%s: %+v, want %s with %q", step, g, gate, failed)
		}
	}
	fail := func(n, reason string) { t.Helper(); f.must(turns[n].Fail(f.ctx, reason, Halting)) }
	fail("a", "one")
	fail("a", "two")
	want("a node counts once", "open", "a")
	f.must(turns["a"].Succeed(f.ctx))
	want("success strikes it", "open")
	fail("b", "three")
	want("the next one is survived", "open", "b")
	fail("c", "four")
	want("one too many", state.Halted, "b", "c")
	fail("c", "five")
	if g := f.gate("web"); g.Node != "c" || g.Reason != "four" {
		t.Errorf("the first verdict is overwritten: %+v", g)
	}
	f.must(turns["b"].Succeed(f.ctx))
	want("a halt stays", state.Halted, "c")
}

// TestFailWithoutAClaim: a node that cannot even begin counts too.
func TestFailWithoutAClaim(t *testing.T) {
	f := newFleet(t)
	f.broken("me", "web")
	f.mustWait(f.request("other", "web"), "role web (halted)|me failed: it broke|pullet rollout resume")
	o, err := f.Views.Fleet(f.ctx, false)
	f.must(err)
	if line := o.Statuses["me"][state.Rollout]; line.State != state.Failed || line.Reason != "it broke" {
		t.Errorf("status %+v", line)
	}
}

// TestKindsOfFailure: what each means for the others.
func TestKindsOfFailure(t *testing.T) {
	for _, c := range []struct {
		how   Failure
		gate  string
		keeps bool
	}{{Halting, state.Halted, true}, {Late, "open", false}, {Broken, "open", true}} {
		f := newFleet(t)
		turn := f.mustTry(f.request("me", "web"))
		f.must(turn.Fail(f.ctx, "broke", c.how))
		o, err := f.Views.Fleet(f.ctx, false)
		f.must(err)
		if line := o.Statuses["me"][state.Rollout]; f.gate("web").State != c.gate || turn.Holds() != c.keeps ||
			len(o.Slots["web"]) == 1 != c.keeps || line.State != state.Failed || line.Reason != "broke" {
			t.Errorf("%d: gate %+v, holds %v, slots %v, %+v", c.how, f.gate("web"), turn.Holds(), o.Slots, line)
		}
	}
}

// TestFailuresAtOnce: none is lost when many fail together.
func TestFailuresAtOnce(t *testing.T) {
	f := newFleet(t)
	all := f.requests(10, "web")
	f.atOnce(10, func(i int) error {
		all[i].Rules.MaxFailures = 9
		return NewTurn(f.Store, all[i]).Fail(f.ctx, "broke", Halting)
	})
	if g := f.gate("web"); len(g.Failed) != 10 || g.State != state.Halted {
		t.Errorf("%+v", g)
	}
}

// TestEndWithoutALease: a node without a claim and without a lease is told at once that nothing can be recorded.
func TestEndWithoutALease(t *testing.T) {
	f := newFleet(t)
	ctx, cancel := context.WithTimeout(f.ctx, patience.Stretch(3*time.Second))
	defer cancel()
	for name, do := range map[string]func(*Turn) error{
		"succeed": func(s *Turn) error { return s.Succeed(ctx) },
		"fail":    func(s *Turn) error { return s.Fail(ctx, "broke", Halting) },
	} {
		q := f.request(fmt.Sprint("me-", name), "web")
		f.die(q)
		if err := do(NewTurn(f.Store, q)); !errors.Is(err, state.ErrLeaseLost) || ctx.Err() != nil {
			t.Errorf("%s: %v, %v", name, err, ctx.Err())
		}
	}
}
