package agent

import (
	"strings"
	"testing"
	"time"

	"github.com/pullet/pullet/state"
)

// TestHowManyAreChosen: who reads the results of a step that several hosts take waits for all of them: those that have
// the job and match the hosts of the step, but none that comes in a later stage, nor one that is frozen.
func TestHowManyAreChosen(t *testing.T) {
	t.Parallel()
	web1, web2, _ := pair(t, "", map[string]string{
		"nodes/web.yaml": "nodes: {db1: {labels: {role: db}}, web1: {labels: {role: web}}, web2: {labels: {role: web}}, cold1: {labels: {role: cold}}, none1: {labels: {role: none}}, web3x: {labels: {role: web}}}\n",
		"pullet.yaml":    "rollout: {rollingRules: {global: 3, roles: {cold: 0}}, roleDependencies: {db: [web]}}\n",
		"base/jobs.yaml": "jobs: {'role=web': [{name: site}], 'role=db': [{name: site}], 'role=cold': [{name: site}]}\n",
		"jobs/site.yaml": `steps:
- {name: token, action: cmd.run, parameters: {cmd: echo token}, runOptions: {target: {limit: 9, hosts: '*[12]'}}}
- {name: join, action: file.managed, parameters: {name: /etc/joined, content: '{{ len (step "token").ByNode }}'}}
`,
	})
	web1.exits(ExitWaiting, "site/token")
	if got := web1.file("etc/joined"); got != "" {
		t.Errorf("%q", got)
	}
	for _, h := range []*host{web2, web1} {
		h.exits(ExitOK, "")
		if got := h.file("etc/joined"); got != "2" {
			t.Errorf("%s: %q", h.Node.Name, got)
		}
	}
}

// TestFrozenWhileRefused: where etcd refuses a request in the middle of a pull, the switch that the host knows holds;
// where the version that runs here cannot be read either, both are said.
func TestFrozenWhileRefused(t *testing.T) {
	t.Parallel()
	web1, _, m := pair(t, job("one", "true"), nil)
	web1.exits(ExitOK, "")
	web1.commit(job("two", "true"))
	proposals := func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.refuse = func(kind string) bool {
			return strings.HasPrefix(kind, "Txn writes") && strings.Contains(kind, "current_version")
		}
	}
	proposals()
	web1.eachBad(5, func(int) {}, pulls(Options{}), func(_ *Outcome, err error) bool { return err != nil })
	m.denies("")
	if err := freezes(web1, state.Over(m.store.Client, "f", nil)); err != nil {
		t.Fatal(err)
	}
	web1.exits(ExitWaiting, "")
	web1.commit(job("three", "true"))
	web1.write("f/web1/root/etc/motd", "by hand")
	proposals()
	out, err := web1.with(Options{})
	if said := saidBy(out, err); !strings.Contains(said, "permission denied") && !strings.Contains(said, "refuses this host") || out.Report != nil || web1.file("etc/motd") != "by hand" {
		t.Errorf("%s %q", said, web1.file("etc/motd"))
	}
}

// TestStaleIsSaid: that what is read of the fleet is stale is said where there is anybody else, or any service.
func TestStaleIsSaid(t *testing.T) {
	t.Parallel()
	web1, web2, m := pair(t, "steps: [{name: motd, action: file.managed, parameters: {name: /etc/motd, content: '{{ len (services `db`) }}'}}]\n", nil)
	s := state.Over(m.store.Client, "f", nil)
	away := func(stale bool) {
		t.Helper()
		web1.exits(ExitOK, "")
		m.mu.Lock()
		m.refuse = func(string) bool { return true }
		m.mu.Unlock()
		out := web1.exits(ExitOK, "")
		m.denies("")
		if said := strings.Contains(saidBy(out, nil), "is stale: "); said != stale || len(out.Warnings) != map[bool]int{false: 1, true: 2}[stale] {
			t.Errorf("%q, want it said: %t", out.Warnings, stale)
		}
	}
	away(false)
	if err := s.Services.Announce(t.Context(), "db", "db1", state.Service{Address: "192.0.2.7"}, false); err != nil {
		t.Fatal(err)
	}
	away(true)
	if err := s.Services.Withdraw(t.Context(), "db", "db1"); err != nil {
		t.Fatal(err)
	}
	web2.exits(ExitOK, "")
	away(true)
}

// TestOtherCommitIsTried: a commit that leaves the job of a version that was put back as it is, is tried all the same.
func TestOtherCommitIsTried(t *testing.T) {
	t.Parallel()
	h := newHost(t, "onFailure: restore\n"+job("one", "true"))
	h.exits(ExitOK, "")
	h.commit("onFailure: restore\n" + job("two", "echo tried >> tries; exit 3"))
	h.exits(ExitError, "exit code 3")
	h.exits(ExitError, "does not try it again")
	h.write("repo/README", "x\n")
	h.git("add", "-A")
	h.git("commit", "-qm", "README")
	h.exits(ExitError, "exit code 3")
	if got := strings.Count(h.file("tries"), "\n"); got != 2 {
		t.Errorf("tried %d times", got)
	}
}

// TestNotReadyWhileItWaits: a service whose check fails does not get ready because its host waits for a condition.
func TestNotReadyWhileItWaits(t *testing.T) {
	t.Parallel()
	web1, _, _ := pair(t, job("one", "true"), map[string]string{
		"base/services.yaml": "services: {'*': [{name: web, port: 80, address: 192.0.2.1, check: {cmd: test -e etc/up}}]}\n",
	})
	web1.exits(ExitOK, "test -e etc/up")
	web1.commit(job("one", "true") + "- {name: up, action: cmd.run, parameters: {cmd: 'true'}, conditions: {when: {condition: \"len(services('db')) > 0\", retry: {interval: 1h, limit: 0}}}}\n")
	web1.write("f/web1/root/etc/up", "")
	for range 2 {
		web1.exits(ExitWaiting, "len(services('db')) > 0")
		if s := web1.overview().Services["web"]["web1"]; !s.Ready.IsZero() || s.Address == "" {
			t.Errorf("%+v", s)
		}
	}
	s := web1.open()
	if err := s.Services.Announce(t.Context(), "db", "db1", state.Service{Address: "192.0.2.7"}, false); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	web1.exits(ExitOK, "")
	if got := web1.overview().Services["web"]["web1"]; got.Ready.Before(began.Add(-time.Minute)) {
		t.Errorf("%+v", got)
	}
}
