package agent

import (
	"strings"
	"testing"
	"time"

	"github.com/pullet/pullet/lock"
	"github.com/pullet/pullet/state"
)

// TestTurnThatDoesNotCome: a host that is not admitted corrects the drift of its version, tells the fleet for what it
// waits since when, over all of its pulls, and keeps its place; it goes on when its turn comes.
func TestTurnThatDoesNotCome(t *testing.T) {
	t.Parallel()
	web1, web2, _ := pair(t, job("one", "true"), nil)
	web1.exits(ExitOK, "")
	web2.exits(ExitOK, "")
	s := web1.open()
	if _, err := s.Switches.Pause(t.Context(), &state.Switch{Reason: "a feast", By: "ada", At: time.Now()}, 0); err != nil {
		t.Fatal(err)
	}
	web1.commit(job("two", "true"))
	web1.write("f/web1/root/etc/motd", "by hand")
	var heard []string
	out, err := web1.with(Options{Waiting: func(w *lock.Wait) { heard = append(heard, w.Gate+": "+w.Reason) }})
	if err != nil || out.ExitCode() != ExitWaiting || web1.file("etc/motd") != "one" || !strings.Contains(saidBy(out, nil), "a feast") || out.Report == nil || out.Upgrade {
		t.Fatalf("%v %s", err, saidBy(out, nil))
	}
	if len(heard) != 1 || !strings.Contains(heard[0], "a feast") || out.Version.ID != web1.head() {
		t.Errorf("%q %+v", heard, out.Version)
	}
	o := web1.overview()
	st := o.Statuses["web1"][state.Rollout]
	if st.State != state.Pending || st.Version != web1.head() || !strings.Contains(st.Reason, "a feast") || st.Since.IsZero() || o.Running["web1"] == web1.head() {
		t.Errorf("%+v", st)
	}
	place := web1.known().Place
	if place == 0 || web1.known().Queued != o.Current.Rollout() {
		t.Errorf("%+v", web1.known())
	}
	web2.exits(ExitWaiting, "a feast")
	web1.exits(ExitWaiting, "a feast")
	if again := web1.overview().Statuses["web1"][state.Rollout]; !again.Since.Equal(st.Since) || web1.known().Place != place {
		t.Errorf("it waits since %s, and then since %s; its place was %d and is %d", st.Since, again.Since, place, web1.known().Place)
	}
	if web2.known().Place <= place {
		t.Errorf("web2 came before web1: %d, %d", web2.known().Place, place)
	}
	if _, err := s.Switches.Unpause(t.Context()); err != nil {
		t.Fatal(err)
	}
	out = web1.exits(ExitOK, "")
	if !out.Upgrade || web1.file("etc/motd") != "two" || web1.overview().Running["web1"] != web1.head() {
		t.Errorf("%+v", out)
	}
}

// TestOneAtATime: while one host is in the middle of its upgrade, the next one waits for it by name, and is let in when
// it is through.
func TestOneAtATime(t *testing.T) {
	t.Parallel()
	web1, web2, _ := pair(t, job("one", "touch etc/begun; until test -e etc/go; do sleep 0.02; done"), nil)
	web2.write("f/web2/root/etc/go", "")
	done := make(chan *Outcome)
	go func() {
		out, _ := web1.with(Options{})
		done <- out
	}()
	web1.started("etc/begun")
	out := web2.exits(ExitWaiting, "waiting for slot web (1 at a time): web1 holds it")
	if web2.file("etc/motd") != "" || len(out.Wait.Holders) != 1 || out.Wait.Holders[0].Node != "web1" {
		t.Errorf("%+v", out.Wait)
	}
	st := web2.overview().Statuses["web2"][state.Rollout]
	if len(st.Holders) != 1 || st.Holders[0].Node != "web1" || st.Gate != "slot web (1 at a time)" {
		t.Errorf("%+v", st)
	}
	go func() {
		out, _ := web2.with(Options{Wait: time.Minute})
		done <- out
	}()
	web1.write("f/web1/root/etc/go", "")
	for range 2 {
		if out := <-done; out.ExitCode() != ExitOK || !out.Upgrade {
			t.Errorf("%s", saidBy(out, nil))
		}
	}
	if o := web1.overview(); len(o.Slots["web"]) > 0 || o.Running["web2"] != web1.head() {
		t.Errorf("%+v %+v", o.Slots, o.Running)
	}
}

// TestRollback: a version whose files were put back is left alone, and has failed, until the host's variables change,
// an operator resumes the rollout, or the pull is told to try again.
func TestRollback(t *testing.T) {
	t.Parallel()
	h := newHost(t, "onFailure: restore\n"+job("one", "true"))
	h.exits(ExitOK, "")
	h.commit("onFailure: restore\n" + job("two", "echo tried >> tries; exit 3"))
	tried := func(n int) {
		t.Helper()
		if got := strings.Count(h.file("tries"), "\n"); got != n || h.file("etc/motd") != "one" {
			t.Errorf("tried %d times, want %d: %q", got, n, h.file("etc/motd"))
		}
	}
	out := h.exits(ExitError, "exit code 3")
	tried(1)
	was := h.known().RolledBack
	if !out.Upgrade || !out.Report.Restored || was == nil || !strings.Contains(was.Why, "exit code 3") || was.At.IsZero() {
		t.Errorf("%+v", was)
	}
	out = h.exits(ExitError, "failed on this host at ")
	if out.Version.ID != h.head() || out.Upgrade {
		t.Errorf("%+v", out)
	}
	tried(1)
	h.said(state.Configured, state.Failed, "", "the host does not try it again")
	again := func(n int, o Options) {
		t.Helper()
		if out, err := h.with(o); err != nil || out.ExitCode() != ExitError || !out.Upgrade {
			t.Errorf("%v %s", err, saidBy(out, nil))
		}
		tried(n)
		h.exits(ExitError, "failed on this host at ")
		tried(n)
	}
	again(2, Options{Retry: true})
	if _, err := h.open().Rollouts.Resume(t.Context(), "ada"); err != nil {
		t.Fatal(err)
	}
	again(3, Options{})
	h.write("vars.d/own.yaml", "x: 1\n")
	again(4, Options{})
	h.commit("onFailure: restore\n" + job("three", "true"))
	h.exits(ExitOK, "")
	if h.file("etc/motd") != "three" || h.known().RolledBack != nil || h.known().Failures != 0 || h.known().Failed != "" {
		t.Errorf("%q %+v", h.file("etc/motd"), h.known())
	}
}

// TestKeptBack: the fleet does not follow to a newer commit while an operator holds it, or where that commit was
// undone; it says which commit it skips and why, and follows again when it may.
func TestKeptBack(t *testing.T) {
	t.Parallel()
	h := newHost(t, job("one", "true"))
	h.exits(ExitOK, "")
	h.commit(job("two", "true"))
	h.exits(ExitOK, "")
	steer := func(act func(s *state.Store, current *state.Version, rev int64) error) {
		t.Helper()
		s, err := h.OpenStore(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		current, rev, err := s.Versions.Current(t.Context())
		if err == nil {
			err = act(s, current, rev)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	kept := func(kind, motd string) {
		t.Helper()
		out := h.exits(ExitOK, "")
		o := h.overview()
		if o.Skipped == nil || o.Skipped.Kind != kind || o.Skipped.ID != h.head() || h.file("etc/motd") != motd || out.Version.ID == h.head() {
			t.Errorf("%s: %+v, %q", kind, o.Skipped, h.file("etc/motd"))
		}
		if plan, err := h.plan(""); err != nil || plan.Version.ID != out.Version.ID {
			t.Errorf("a plan is of %v %v", plan.Version, err)
		}
	}
	steer(func(s *state.Store, current *state.Version, rev int64) error {
		_, err := s.Versions.Undo(t.Context(), current, rev, "ada", "it was bad", 0)
		return err
	})
	kept(state.SkipBad, "one")
	h.commit(job("three", "true"))
	kept(state.SkipHeld, "one")
	steer(func(s *state.Store, _ *state.Version, _ int64) error {
		_, _, err := s.Versions.Follow(t.Context())
		return err
	})
	h.exits(ExitOK, "")
	if o := h.overview(); o.Skipped != nil || h.file("etc/motd") != "three" || o.Current.Held {
		t.Errorf("%+v %q", o.Skipped, h.file("etc/motd"))
	}
	h.write("repo/pullet.yaml", "rollout: {follow: false}\n")
	h.commit(job("four", "true"))
	h.exits(ExitOK, "")
	h.commit(job("five", "true"))
	kept(state.SkipHeld, "four")
}

// TestCanariesFirst: newer commits wait for the canaries of the fleet's version, as long as they are watched.
func TestCanariesFirst(t *testing.T) {
	t.Parallel()
	web1, web2, _ := pair(t, job("one", "true"), map[string]string{"pullet.yaml": "rollout: {canary: {target: web2, soak: 1h}}\n"})
	first := web1.head()
	web1.exits(ExitWaiting, "waiting for role canary: not upgraded yet: web2")
	web2.exits(ExitOK, "")
	web1.exits(ExitWaiting, "waiting for role canary: it is upgraded, and watched until ")
	web1.commit(job("two", "true"))
	for _, h := range []*host{web2, web1} {
		h.pull()
		if o := h.overview(); o.Current.ID != first || !o.Current.Canary || o.Skipped == nil || o.Skipped.Kind != state.SkipCanaries || o.Skipped.ID != web1.head() {
			t.Errorf("%+v %+v", o.Current, o.Skipped)
		}
	}
	s := web1.open()
	if _, _, err := s.Versions.Halt(t.Context(), "ada", "bad"); err != nil {
		t.Fatal(err)
	}
	web2.exits(ExitOK, "")
	if o := web2.overview(); o.Current.ID == first || web2.file("etc/motd") != "two" {
		t.Error("a version that halted holds the next one back")
	}
}
