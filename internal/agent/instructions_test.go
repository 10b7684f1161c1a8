package agent

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/pullet/pullet/state"
)

// TestInstructionsThatCannotBeUsed: where the fleet's record has instructions for a rollout that cannot be read, every
// host says so, whatever it would do under them, and none takes a turn or tells that it is through.
func TestInstructionsThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	web1, web2, m := pair(t, job("one", "true"), map[string]string{"pullet.yaml": "rollout: {rollingRules: {global: 2}}\n"})
	web1.exits(ExitOK, "")
	s := state.Over(m.store.Client, "f", nil)
	instructs := func() {
		t.Helper()
		current, _, err := s.Versions.Current(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		current.Instructions = json.RawMessage(`{"max_failures":"many"}`)
		if _, err := s.Client.Txn(t.Context()).Then(state.Put(s.Versions.CurrentKey(), current)).Commit(); err != nil {
			t.Fatal(err)
		}
	}
	fails := func(h *host, what string) {
		t.Helper()
		out, err := h.with(Options{})
		if err == nil || !strings.Contains(err.Error(), "max_failures") || out.Report != nil {
			t.Errorf("%s: %v %+v", what, err, out)
		}
		if o := h.overview(); len(o.Slots) > 0 {
			t.Errorf("%s: %+v", what, o.Slots)
		}
	}
	instructs()
	fails(web1, "drift of the version that runs here")
	fails(web2, "an upgrade")
	web1.commit(job("two", "true"))
	web2.exits(ExitOK, "") // proposes it
	if err := goesBack(web2, s); err != nil {
		t.Fatal(err)
	}
	instructs()
	fails(web1, "a rollout that comes back to the version that runs here")
	fails(web2, "a rollout that goes back")
	if o := web1.overview(); web1.known().Through == o.Current.Rollout() || o.Current.ID != web1.known().Running.ID {
		t.Errorf("%+v", o.Current)
	}
	web2.write("f/web2/vars.d/own.yaml", "x: [\n")
	if out, err := web2.with(Options{}); err == nil || !strings.Contains(err.Error(), "max_failures") || !strings.Contains(saidBy(out, nil), "own.yaml") {
		t.Errorf("a version that does not compile: %v %s", err, saidBy(out, nil))
	}
}

// TestStopInMidPull: an operator who stops all changes after a pull registered, and before its run begins, stops that
// run.
func TestStopInMidPull(t *testing.T) {
	t.Parallel()
	web1, _, m := pair(t, job("one", "true"), nil)
	web1.exits(ExitOK, "")
	s := state.Over(m.store.Client, "f", nil)
	web1.write("f/web1/root/etc/motd", "by hand")
	asked, registered := false, false
	m.before(func(_ int, kind string) {
		if registered { // etcd has the registration
			registered = false
			if err := freezes(web1, s); err != nil {
				t.Error(err)
			}
		} else if !asked && strings.HasPrefix(kind, "Txn writes") {
			asked, registered = true, true
		}
	})
	web1.exits(ExitWaiting, "")
	m.denies("")
	if got := web1.file("etc/motd"); got != "by hand" || web1.known().Frozen == nil {
		t.Errorf("%q %+v", got, web1.known().Frozen)
	}
}

// TestFailureThatIsNotNoted: a version whose files were put back is left alone from then on only where the host could
// read at which state of the rollout that was: else a resume of before would count as one of after.
func TestFailureThatIsNotNoted(t *testing.T) {
	t.Parallel()
	web1, _, m := pair(t, job("one", "true"), nil)
	web1.exits(ExitOK, "")
	web1.commit("onFailure: restore\n" + job("two", "exit 3"))
	web1.exits(ExitError, "exit code 3")
	for n := 1; ; n++ {
		what := m.refuses(n)
		out, err := web1.with(Options{Retry: true})
		m.denies("")
		if *what == "" {
			if n < 8 {
				t.Errorf("the pull made fewer than %d requests", n)
			}
			return
		}
		said := saidBy(out, err) + web1.log.String()
		web1.log.Reset()
		if !strings.Contains(said, "permission denied") && !strings.Contains(said, "refuses this host") && web1.statuses()[state.Configured].Run != out.Run {
			t.Errorf("request %d, %s, was refused, and nothing says so:\n%s", n, *what, said)
		}
		if was := web1.known().RolledBack; was != nil && was.Gate == 0 {
			t.Errorf("request %d, %s, was refused: %+v", n, *what, was)
		}
	}
}

// TestCommandWithoutAPlace: a command whose places others have is not run, and the next pull asks again.
func TestCommandWithoutAPlace(t *testing.T) {
	t.Parallel()
	web1, _, m := pair(t, job("one", "true"), nil)
	web1.exits(ExitOK, "")
	web1.Agent.AllowRun.Anybody = true
	s := state.Over(m.store.Client, "f", nil)
	now := time.Now()
	c := state.Command{ID: "c1", Args: []string{"echo ran >> ran"}, Stages: [][]string{{"gone", "web1"}}, Max: 1, Timeout: time.Minute, At: now, Until: now.Add(time.Hour), By: "ada"}
	taken := s.Commands.Prefix("c1", "claim") + "0"
	_, err := s.Client.Txn(t.Context()).Then(state.Put(taken, state.Claim{Node: "gone"})).Commit()
	if err == nil {
		err = s.Commands.Give(t.Context(), c)
	}
	if err != nil {
		t.Fatal(err)
	}
	web1.exits(ExitOK, "")
	if got, _, err := s.Commands.Get(t.Context(), "c1"); err != nil || got.Results["web1"].State != "" || web1.file("ran") != "" {
		t.Errorf("%v %+v %q", err, got.Results, web1.file("ran"))
	}
	if _, err := s.Client.Delete(t.Context(), taken); err != nil {
		t.Fatal(err)
	}
	web1.exits(ExitOK, "")
	if got, _, err := s.Commands.Get(t.Context(), "c1"); err != nil || got.Results["web1"].State != state.Ran || web1.file("ran") != "ran\n" {
		t.Errorf("%v %+v %q", err, got.Results, web1.file("ran"))
	}
}
