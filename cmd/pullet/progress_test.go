package main

import (
	"strings"
	"testing"
	"time"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/internal/agent"
	"github.com/pullet/pullet/lock"
	"github.com/pullet/pullet/state"
)

// TestProgressSaysOnce: where lines stay, a reason to wait is written when it changed and not with every tick;
// steps that never began are not counted as done.
func TestProgressSaysOnce(t *testing.T) {
	var out strings.Builder
	p := &progress{w: &out}
	first := &lock.Wait{Gate: "slot web", Reason: "web1 holds it", Remedy: state.NoAction(), Since: time.Now()}
	second := *first
	second.Reason = "web2 holds it"
	for _, w := range []*lock.Wait{first, first, &second} {
		p.Waiting(w)
		p.tell()
	}
	for _, never := range []apply.Outcome{apply.Skipped, apply.Unmet, apply.Pending} {
		p.Step(&apply.StepReport{Job: "site", Step: "gated", Outcome: never})
		p.tell()
	}
	p.Step(&apply.StepReport{Job: "site", Step: "motd", Outcome: apply.OK})
	p.tell()
	p.tell()
	p.Phase(agent.PhaseFetch)
	p.steps = 0
	p.tell()
	p.bytes = func() int64 { return 3 << 20 }
	p.tell()
	p.tell()
	p.Doing("compiling for web1, node 1 of 9")
	p.phase = ""
	p.tell()
	want := first.Error() + "\n" + second.Error() + "\n1 step done, the last: site/motd\n" +
		"fetching the repositories\nfetching the repositories: 3072 KiB so far\ncompiling for web1, node 1 of 9\n"
	if out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}

// TestStoppedSaidOnce: why a run ended early is not said again below the step that said it.
func TestStoppedSaidOnce(t *testing.T) {
	for reason, times := range map[string]int{"not started: the slot is lost": 1, "another thing": 1} {
		var out strings.Builder
		a := &app{out: &out}
		a.printReport(&apply.Report{
			Stopped: "the slot is lost", Steps: []*apply.StepReport{{Job: "site", Step: "motd", Outcome: apply.Pending, Reason: reason}},
		}, false)
		if got := strings.Count(out.String(), "the slot is lost"); got != times {
			t.Errorf("%s: said %d times in %q", reason, got, out.String())
		}
	}
}
