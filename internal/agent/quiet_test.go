package agent

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/internal/patience"
	"github.com/pullet/pullet/lock"
	"github.com/pullet/pullet/render"
	"github.com/pullet/pullet/state"
)

// TestReportsOfDrift: a pull that changes nothing leaves no report; one that corrects drift does, and so does an
// upgrade that changes nothing.
func TestReportsOfDrift(t *testing.T) {
	t.Parallel()
	web1, _, _ := pair(t, job("one", "true"), map[string]string{"jobs/check.yaml": "steps: [{name: works, action: cmd.run, parameters: {cmd: 'true'}}]\n"})
	web1.commit("steps: [{name: motd, action: file.managed, parameters: {name: /etc/motd, content: one}}]\n")
	kept := func(after string, want int) {
		t.Helper()
		if got := len(web1.reports()); got != want {
			t.Errorf("%s: %d reports, want %d", after, got, want)
		}
	}
	web1.exits(ExitOK, "")
	kept("the first pull", 1)
	if out := web1.exits(ExitOK, ""); out.Upgrade || out.Report == nil || out.Report.Changed() > 0 || out.Wait != nil {
		t.Errorf("%+v", out)
	}
	kept("a pull without a change", 1)
	web1.write("f/web1/root/etc/motd", "by hand")
	web1.exits(ExitOK, "")
	kept("drift", 2)
	web1.commit("# other\nsteps: [{name: motd, action: file.managed, parameters: {name: /etc/motd, content: one}}]\n")
	if out := web1.exits(ExitOK, ""); !out.Upgrade || out.Report.Changed() > 0 {
		t.Errorf("%+v", out)
	}
	kept("a version that changes nothing", 3)
}

// TestDamagedView: where etcd is away and what the host saw of the fleet last cannot be read, the pull says so and
// changes nothing.
func TestDamagedView(t *testing.T) {
	t.Parallel()
	web1, _, m := pair(t, "steps: [{name: motd, action: file.managed, parameters: {name: /etc/motd, content: '{{ len (services `web`) }}'}}]\n", nil)
	web1.exits(ExitOK, "")
	m.mu.Lock()
	m.refuse = func(string) bool { return true }
	m.mu.Unlock()
	web1.write("f/web1/root/etc/motd", "by hand")
	web1.write("f/web1/state/view.json", "{")
	out, err := web1.with(Options{})
	if err == nil || !strings.Contains(err.Error(), "view.json") || out.Report != nil || web1.file("etc/motd") != "by hand" {
		t.Errorf("%v %+v", err, out.Report)
	}
	if _, at, err := CachedView(web1.Paths.State); err == nil || !at.IsZero() {
		t.Errorf("%v %s", err, at)
	}
	web1.write("f/web1/state/node.json", "{")
	if _, at, err := CachedView(web1.Paths.State); err == nil || !strings.Contains(err.Error(), "node.json") || !at.IsZero() {
		t.Errorf("%v %s", err, at)
	}
	if plan, err := web1.plan(""); err == nil || !strings.Contains(err.Error(), "node.json") || plan.Report != nil {
		t.Errorf("a plan: %v", err)
	}
}

// TestViewCannotBeKept: what the host saw of the fleet has to be on its disk before it changes anything.
func TestViewCannotBeKept(t *testing.T) {
	t.Parallel()
	h := newHost(t, "steps: [{name: motd, action: file.managed, parameters: {name: /etc/motd, content: '{{ len (services `web`) }}'}}]\n")
	h.write("state/view.json/x", "")
	out, err := h.with(Options{})
	if err == nil || !strings.Contains(err.Error(), "view.json cannot be written") || out.Report != nil || h.file("etc/motd") != "" {
		t.Errorf("%v %+v", err, out.Report)
	}
	h.said(state.Configured, state.Failed, "", "view.json cannot be written")
}

// TestConditionWhileAway: while etcd is away, a condition looks at what the host saw last; who watches the pull hears
// for what it waits, once.
func TestConditionWhileAway(t *testing.T) {
	t.Parallel()
	web1, _, m := pair(t, `steps:
- name: motd
  action: file.managed
  parameters: {name: /etc/motd, content: hello}
  conditions: {when: {condition: "len(services('db')) > 0", retry: {interval: 10ms, limit: 0}}}
`, nil)
	s := state.Over(m.store.Client, "f", nil)
	if err := s.Services.Announce(t.Context(), "db", "db1", state.Service{Address: "192.0.2.7"}, false); err != nil {
		t.Fatal(err)
	}
	web1.exits(ExitOK, "")
	if err := s.Services.Withdraw(t.Context(), "db", "db1"); err != nil {
		t.Fatal(err)
	}
	out := web1.exits(ExitWaiting, "len(services('db')) > 0")
	if out.Upgrade || out.Wait.Kind != state.WaitCondition {
		t.Errorf("%+v", out.Wait)
	}
	if st := web1.overview().Statuses["web1"]; st[state.Rollout].State != state.Success || st[state.Configured].State != state.Pending {
		t.Errorf("%+v", st)
	}
	m.mu.Lock()
	m.refuse = func(string) bool { return true }
	m.mu.Unlock()
	var heard []string
	out, err := web1.with(Options{Wait: 50 * time.Millisecond, Waiting: func(w *lock.Wait) { heard = append(heard, w.Reason) }})
	if err != nil || out.ExitCode() != ExitWaiting || len(heard) != 1 || !strings.Contains(out.Wait.Error(), "len(services('db')) > 0") {
		t.Errorf("%v %q %s", err, heard, saidBy(out, nil))
	}
}

// TestHostFaultIsTriedAgain: a version whose files were put back for a fault of the host is tried again at the next
// pull; one that ran here already and fails now halts nobody.
func TestHostFaultIsTriedAgain(t *testing.T) {
	t.Parallel()
	web1, _, _ := pair(t, job("one", "true"), map[string]string{"jobs/check.yaml": "steps: [{name: works, action: cmd.run, parameters: {cmd: test ! -e etc/invalid}}]\n"})
	web1.exits(ExitOK, "")
	if o := web1.overview(); o.Gates["web"].State == state.Halted {
		t.Errorf("%+v", o.Gates)
	}
	web1.write("f/web1/root/etc/invalid", "")
	for range 2 { // the second is an upgrade to the version that runs here
		web1.exits(ExitError, "etc/invalid")
		if o := web1.overview(); o.Gates["web"].State == state.Halted || o.Statuses["web1"][state.Validated].State != state.Failed {
			t.Errorf("%+v %+v", o.Gates, o.Statuses["web1"])
		}
	}
	web1.remove("etc/invalid")
	web1.exits(ExitOK, "")
	fails := "onFailure: restore\nsteps:\n- {name: motd, action: file.managed, parameters: {name: /etc/motd, content: two}}\n" +
		"- {name: command, action: cmd.run, parameters: {cmd: echo tried >> tries; test -e etc/go}, runOptions: {failureClass: host}}\n"
	web1.commit(fails)
	for n := 1; n < 3; n++ {
		out := web1.exits(ExitError, "exit code 1")
		if got := strings.Count(web1.file("tries"), "\n"); got != n || !out.Report.Restored || web1.file("etc/motd") != "one" || web1.known().RolledBack != nil {
			t.Errorf("tried %d times, want %d: %+v", got, n, web1.known().RolledBack)
		}
		if st := web1.overview().Statuses["web1"][state.Configured]; !st.Host || st.State != state.Failed || st.Digest == nil || st.Digest.Failed == "" {
			t.Errorf("%+v", st)
		}
	}
	web1.write("f/web1/root/etc/go", "")
	web1.exits(ExitOK, "")
	if st := web1.overview().Statuses["web1"][state.Configured]; st.Host || st.Reason != "" {
		t.Errorf("%+v", st)
	}
}

// TestMistakesOfMany: the hosts that a commit does not compile for are named, the first of them; each is judged by the
// name that it has in the domain of this host, unless its own has one.
func TestMistakesOfMany(t *testing.T) {
	t.Parallel()
	web1, _, m := pair(t, job("one", "true"), nil)
	web1.write("f/web1/root/etc/hostname", "web1\n")
	web1.write("f/web1/root/etc/hosts", "192.0.2.1 web1.example.org web1\n")
	web1.exits(ExitOK, "")
	first := web1.head()
	others := []string{"a.example.net", "web2", "web3", "web4", "web5"}
	list := "web1: {labels: {role: web}}"
	for _, name := range others {
		list += ", " + name + ": {labels: {role: db}}"
		if !strings.Contains(name, ".") {
			name += ".example.org"
		}
		web1.write("repo/vars/"+name+".yaml", "x: 1\n")
	}
	web1.write("repo/vars/web1.example.org.yaml", "x: 1\n")
	web1.write("repo/nodes/web.yaml", "nodes: {"+list+"}\n")
	web1.write("repo/base/vars.yaml", "files: {'*': [{name: own, paths: ['{{ server.fqdn }}.yaml']}]}\n")
	web1.write("repo/base/jobs.yaml", "jobs: {'*': [{name: site}, {name: fleet}], role=db: [{name: db}]}\n")
	web1.write("repo/jobs/fleet.yaml", "steps: [{name: s, action: file.managed, parameters: {name: /etc/fleet, content: '{{ len (services `db`) }}'}}]\n")
	web1.write("repo/jobs/db.yaml", "steps: [{name: s, action: file.managed, parameters: {name: /etc/db, content: '{{ vars.none }}'}}]\n")
	web1.commit(job("two", "true"))
	web1.exits(ExitError, "and no host changes: it does not compile for a.example.net, web2, web3 and 2 more:\njobs/db.yaml:1:")
	o := web1.overview()
	if o.Skipped == nil || o.Skipped.Kind != state.SkipElsewhere || !strings.HasPrefix(o.Skipped.Reason, "it does not compile for a.example.net, web2, web3 and 2 more: jobs/db.yaml:1:") || o.Current.ID != first {
		t.Errorf("%+v", o.Skipped)
	}
	m.before(func(_ int, kind string) {
		if strings.Contains(kind, "skipped") {
			t.Errorf("what was told before is told again: %s", kind)
		}
	})
	web1.exits(ExitError, "a.example.net, web2, web3 and 2 more")
	web1.refusedAll(m, 4, func(int) {}, func(out *Outcome) bool {
		st := web1.statuses()[state.Configured]
		return st.Run == out.Run && st.State == state.Failed && len(out.Failures) == 1
	})
	if o := web1.overview(); o.Current.ID != first || web1.file("etc/motd") != "one" {
		t.Errorf("it is proposed: %+v", o.Current)
	}
	// A mistake of this host's own variables is no fault of the commit.
	web1.write("f/web1/vars.d/own.yaml", "x: [\n")
	web1.commit(job("three", "true"))
	web1.exits(ExitError, "own.yaml")
	if o := web1.overview(); o.Skipped == nil || o.Skipped.Kind != state.SkipHost || !o.Statuses["web1"][state.Configured].Host {
		t.Errorf("%+v %+v", o.Skipped, o.Statuses["web1"][state.Configured])
	}
}

// TestCommandsThatFail: a command that cannot start, and one that takes too long, have failed by name.
func TestCommandsThatFail(t *testing.T) {
	t.Parallel()
	h := newHost(t, job("one", "true"))
	h.Agent.AllowRun.Anybody = true
	h.exits(ExitOK, "")
	s := h.open()
	now := time.Now()
	for id, args := range map[string][]string{"c1": {"/no/such/program", "x"}, "c2": {"sleep 60"}} {
		c := state.Command{ID: id, Args: args, Stages: [][]string{{"web1"}}, Max: 1, Timeout: 100 * time.Millisecond, At: now, Until: now.Add(time.Hour), By: "ada"}
		if err := s.Commands.Give(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	h.exits(ExitOK, "")
	for id, want := range map[string]string{"c1": "/no/such/program", "c2": "timed out"} {
		c, _, err := s.Commands.Get(t.Context(), id)
		if r := c.Results["web1"]; err != nil || r.State != state.Failed || !strings.Contains(r.Reason, want) || r.Ended.IsZero() {
			t.Errorf("%v %+v, want %s", err, r, want)
		}
	}
}

// TestExitCodes: failed beats refused beats waiting.
func TestExitCodes(t *testing.T) {
	t.Parallel()
	no, wait := []error{errors.New("no")}, &lock.Wait{}
	report := func(o apply.Outcome) *apply.Report { return &apply.Report{Counts: map[apply.Outcome]int{o: 1}} }
	for i, c := range []struct {
		out  Outcome
		want int
	}{
		{Outcome{}, ExitOK}, {Outcome{Report: report(apply.Changed), Warnings: no}, ExitOK},
		{Outcome{Wait: wait}, ExitWaiting}, {Outcome{Report: report(apply.Pending)}, ExitWaiting},
		{Outcome{Refused: no, Wait: wait}, ExitRefused}, {Outcome{Failures: no, Refused: no, Wait: wait}, ExitError},
		{Outcome{Report: report(apply.Failed), Refused: no}, ExitError},
	} {
		if got := c.out.ExitCode(); got != c.want {
			t.Errorf("%d: %d, want %d", i, got, c.want)
		}
	}
	for _, c := range []struct {
		report *apply.Report
		want   bool
	}{{nil, false}, {&apply.Report{}, false}, {&apply.Report{Reboot: true}, true}, {&apply.Report{Leaving: true}, true}} {
		if got := (&Outcome{Report: c.report}).Rebooting(); got != c.want {
			t.Errorf("%+v: %t", c.report, got)
		}
	}
}

// TestLoopOnATimer: an agent pulls at its interval. One that is told to end in the middle of a step finishes that and
// ends well.
func TestLoopOnATimer(t *testing.T) {
	t.Parallel()
	h := newHost(t, job("one", "true"))
	h.Agent.Interval, h.Agent.Splay = render.Duration(20*time.Millisecond), render.Duration(10*time.Millisecond)
	a, err := New(h.Config, "test", h.entry())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	pulls, ended := make(chan error, 1000), make(chan error, 1)
	go func() {
		err := a.Loop(ctx, Observer{Waiting: func(*lock.Wait) {}, Pulled: func(_ *Outcome, err error) { pulls <- err }})
		ended <- errors.Join(err, a.Close())
	}()
	next := func() error {
		t.Helper()
		select {
		case err := <-pulls:
			return err
		case <-time.After(patience.Stretch(time.Minute)):
			t.Fatal("nothing is pulled")
		}
		return nil
	}
	for range 3 {
		if err := next(); err != nil {
			t.Error(err)
		}
	}
	h.commit(job("two", "touch etc/begun; until test -e etc/go; do sleep 0.02; done; touch etc/ended"))
	h.started("etc/begun")
	cancel()
	h.write("root/etc/go", "")
	if err := <-ended; err != nil {
		t.Error(err)
	}
	h.started("etc/ended")
}
