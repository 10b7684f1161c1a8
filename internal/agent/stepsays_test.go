package agent

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pullet/pullet/internal/patience"
	"github.com/pullet/pullet/state"
)

// TestStepOnRecord: the fleet's record names a step that takes long while it runs, and not while a later one waits
// for its condition, or itself for what lets it continue.
func TestStepOnRecord(t *testing.T) {
	t.Parallel()
	const ready = `{condition: "macros['ready'] == 5", retry: {interval: 100ms, limit: 0}}`
	const slow = "steps:\n- {name: slow, action: cmd.run, parameters: {cmd: 'touch etc/begun; until test -e etc/go; do sleep 0.02; done'}"
	for waits, steps := range map[string]string{
		"a later one": slow + "}\n- {name: later, action: cmd.run, parameters: {cmd: 'true'}, conditions: {when: " + ready + "}}\n",
		"itself":      slow + ", conditions: {continue: " + ready + "}}\n",
	} {
		t.Run(waits, func(t *testing.T) {
			t.Parallel()
			onRecordWhileItRuns(t, steps)
		})
	}
}

func onRecordWhileItRuns(t *testing.T, steps string) {
	web1, web2, _ := pair(t, steps, map[string]string{
		"base/macros.yaml": "macros: {'*': [{name: site}]}\n", "macros/site.yaml": "ready: {action: cmd.run, parameters: [{cmd: cat etc/ready}]}\n",
	})
	web1.write("f/web1/root/etc/ready", "4")
	done := make(chan *Outcome)
	go func() {
		out, err := web1.with(Options{Wait: 10 * time.Minute})
		if err != nil {
			t.Error(err)
		}
		done <- out
	}()
	s := web2.open()
	onRecord := func(holds func(step string) bool) {
		t.Helper()
		patience.SucceedsWithin(t, time.Minute, "the step is on record", func() error {
			st, err := s.Statuses.Get(t.Context(), "web1", state.Configured, state.Running)
			if err != nil {
				t.Fatal(err)
			}
			if !holds(st.Step) {
				return fmt.Errorf("step %q", st.Step)
			}
			return nil
		})
	}
	web1.started("etc/begun")
	onRecord(func(step string) bool {
		return strings.HasPrefix(step, "step 1 of ") && strings.Contains(step, ": site/slow: ")
	})
	web1.write("f/web1/root/etc/go", "")
	onRecord(func(step string) bool { return step == "" })
	web1.write("f/web1/root/etc/ready", "5")
	if out := <-done; out.ExitCode() != ExitOK {
		t.Error(saidBy(out, nil))
	}
}
