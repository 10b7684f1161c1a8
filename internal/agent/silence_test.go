package agent

import (
	"fmt"
	"strings"
	"testing"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/pullet/pullet/internal/tier"
)

// silent has etcd answer no request from the n-th on, as one without a leader. It reports whether there were so many.
func (m *meter) silent(n int) *bool {
	asked, reached := 0, new(bool)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.with = rpctypes.ErrGRPCNoLeader
	m.refuse = func(kind string) bool {
		if strings.HasPrefix(kind, "Watch") || strings.HasPrefix(kind, "Lease") {
			return false
		}
		asked++
		*reached = *reached || asked >= n
		return asked >= n
	}
	return reached
}

// TestSilenceInDrift: a host waits for its turn at a version, and corrects drift with a serialized step meanwhile.
// Whenever etcd falls silent, the pull waits for it and calls nothing a failure; the next one corrects the drift.
func TestSilenceInDrift(t *testing.T) {
	t.Parallel()
	tier.Long(t, "waits for etcd in each pull")
	serial := func(content string) string {
		return fmt.Sprintf("steps:\n- {name: motd, action: file.managed, parameters: {name: /etc/motd, content: %q}, runOptions: {serialize: {count: 1}}}\n", content)
	}
	web1, web2, m := pair(t, serial("one"), map[string]string{
		"pullet.yaml":    "rollout: {canary: {target: 'canary=true', soak: 0s}}\n",
		"nodes/web.yaml": "nodes: {web1: {labels: {role: web}}, web2: {labels: {role: web, canary: 'true'}}}\n",
	})
	web2.exits(ExitOK, "")
	web1.exits(ExitOK, "")
	web1.write("repo/jobs/site.yaml", serial("two"))
	web1.git("commit", "-qam", "two")
	web1.exits(ExitWaiting, "canary")
	for n := 1; n < 60; n += 2 {
		web1.write("f/web1/root/etc/motd", fmt.Sprint("by hand ", n))
		reached := m.silent(n)
		out, err := web1.with(Options{})
		m.denies("")
		if code := out.ExitCodeAfter(err); code != ExitWaiting {
			t.Errorf("silent from request %d on: exit %d, %s", n, code, saidBy(out, err))
		}
		if !*reached {
			return
		}
		next := web1.exits(ExitWaiting, "canary")
		if got := web1.file("etc/motd"); got != "one" {
			t.Errorf("silent from request %d on: %q after the next pull: %sbefore: %s", n, got, saidBy(next, nil), saidBy(out, err))
		}
	}
	t.Error("the pull makes more requests than were tried")
}
