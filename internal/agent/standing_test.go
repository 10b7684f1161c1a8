package agent

import (
	"fmt"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pullet/pullet/state"
)

// refusedAll pulls with each request of etcd refused once, and checks that the pull says so, or that the fleet knows
// what came of it: told is whether it does.
func (h *host) refusedAll(m *meter, least int, prepare func(n int), told func(*Outcome) bool) {
	h.t.Helper()
	for n := 1; n < 30; n++ {
		prepare(n)
		what := m.refuses(n)
		out, err := h.with(Options{})
		m.denies("")
		if *what == "" {
			if n <= least {
				h.t.Errorf("the pull made fewer than %d requests", least)
			}
			return
		}
		said := saidBy(out, err) + h.log.String()
		h.log.Reset()
		if !strings.Contains(said, "permission denied") && !strings.Contains(said, "refuses this host") && !told(out) {
			h.t.Errorf("request %d, %s, was refused, and nothing says so: exit %d\n%s", n, *what, out.ExitCode(), said)
		}
	}
}

// TestNoRefusalWhileWaitingIsSilent: a host that waits, is frozen, leaves a version alone or runs commands says what
// etcd refuses, whichever request of it that is, or asks again.
func TestNoRefusalWhileWaitingIsSilent(t *testing.T) {
	t.Parallel()
	web1, _, m := pair(t, job("one", "true"), map[string]string{"base/services.yaml": rich["repo/base/services.yaml"]})
	s := state.Over(m.store.Client, "f", nil)
	nothing := func(int) {}
	says := func(category, is string) func(*Outcome) bool {
		return func(out *Outcome) bool {
			st := web1.statuses()[category]
			return st.Run == out.Run && st.State == is
		}
	}
	web1.exits(ExitOK, "")
	web1.Agent.AllowRun.Anybody = true
	ran := map[string]string{}
	ended := func() bool {
		for id := range ran {
			c, _, err := s.Commands.Get(t.Context(), id)
			claims, failed := s.Client.Get(t.Context(), s.Commands.Prefix(id, "claim"), clientv3.WithPrefix(), clientv3.WithCountOnly())
			if err != nil || failed != nil || c.Results["web1"].Ended.IsZero() || claims.Count > 0 {
				return false
			}
		}
		return true
	}
	web1.refusedAll(m, 8, func(n int) {
		if !ended() {
			return
		}
		now, id := time.Now(), fmt.Sprint("c", n)
		c := state.Command{ID: id, Args: []string{"echo " + id + " >> ran"}, Stages: [][]string{{"web1"}}, Max: 1, Timeout: time.Minute, At: now, Until: now.Add(time.Hour), By: "ada"}
		if err := s.Commands.Give(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		ran[id] = id
	}, func(*Outcome) bool { return ended() })
	web1.exits(ExitOK, "")
	for id := range ran {
		c, _, err := s.Commands.Get(t.Context(), id)
		r := c.Results["web1"]
		if n := strings.Count(web1.file("ran"), id+"\n"); err != nil || n != 1 && r.State != state.Unknown || n == 1 && r.State != state.Ran && r.State != state.Unknown {
			t.Errorf("%s ran %d times: %v %+v", id, n, err, r)
		}
	}
	web1.commit("onFailure: restore\n" + job("two", "exit 3"))
	web1.exits(ExitError, "exit code 3")
	web1.refusedAll(m, 3, nothing, says(state.Configured, state.Failed))
	web1.commit(job("three", "true"))
	if _, err := s.Switches.Pause(t.Context(), &state.Switch{Reason: "a feast", By: "ada", At: time.Now()}, 0); err != nil {
		t.Fatal(err)
	}
	web1.exits(ExitWaiting, "a feast")
	web1.refusedAll(m, 5, nothing, says(state.Rollout, state.Pending))
	if err := freezes(web1, s); err != nil {
		t.Fatal(err)
	}
	web1.exits(ExitWaiting, "")
	web1.refusedAll(m, 2, nothing, says(state.Configured, state.Pending))
	if got := web1.file("etc/motd"); got != "one" {
		t.Errorf("%q", got)
	}
	for n := 1; n < 5; n++ {
		what := m.refuses(n)
		plan, err := web1.plan("")
		m.denies("")
		if said := saidBy(plan, err); *what != "" && !strings.Contains(said, "permission denied") && !strings.Contains(said, "refuses this host") {
			t.Errorf("a plan: request %d, %s, was refused, and nothing says so:\n%s", n, *what, said)
		}
	}
	a, err := New(web1.Config, "test", web1.entry())
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	open := web1.open()
	for n := 1; n < 5; n++ {
		what := m.refuses(n)
		_, err := a.Prepare(t.Context(), open, []string{"main"}, Instructions{})
		m.denies("")
		if *what != "" && !state.Unanswered(err) {
			t.Errorf("a version to start: request %d, %s, was refused: %v", n, *what, err)
		}
	}
}
