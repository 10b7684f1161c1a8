package agent

import (
	"testing"
	"time"

	"github.com/pullet/pullet/render"
)

// TestHaltedAgent: an agent of a role that is halted looks for the commit that fixes it at its interval, however long a
// pull may wait, and takes it.
func TestHaltedAgent(t *testing.T) {
	t.Parallel()
	web1, web2, _ := pair(t, job("one", "exit 3"), map[string]string{"pullet.yaml": "rollout: {rollingRules: {global: 2}}\n"})
	web2.exits(ExitError, "exit code 3")
	web1.Agent.Wait = render.Duration(time.Hour)
	l := web1.loopEvery(time.Second)
	for _, after := range []string{"the start", "its interval"} {
		if out := l.pulled(after); out.Wait == nil || out.Wait.Halt != "web" {
			t.Errorf("%s: %s", after, saidBy(out, nil))
		}
	}
	web1.commit(job("two", "true"))
	for web1.file("etc/motd") != "two" {
		l.pulled("the commit that fixes it")
	}
	l.end()
	if err := <-l.ended; err != nil {
		t.Error(err)
	}
}
