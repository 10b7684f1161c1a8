package agent

import (
	"slices"
	"strings"
	"testing"

	"github.com/pullet/pullet/state"
)

// TestChosenHosts: a step whose hosts are named is taken by one of them, once in the fleet's life where it says so. Who
// reads its result waits until then.
func TestChosenHosts(t *testing.T) {
	t.Parallel()
	web1, web2, _ := pair(t, "", map[string]string{
		"nodes/web.yaml": "nodes: {db1: {labels: {role: db}}, web1: {labels: {role: web}}, web2: {labels: {role: web}}}\n",
		"pullet.yaml":    "rollout: {rollingRules: {global: 2}}\n",
		"jobs/site.yaml": `steps:
- {name: token, action: cmd.run, parameters: {cmd: 'echo x >> etc/count; echo token of $PULLET_NODE'}, runOptions: {target: {limit: 1, hosts: role=db}, runs: once}}
- {name: join, action: file.managed, parameters: {name: /etc/joined, content: '{{ (step "token").StdOut }}'}}
`})
	db1 := web1.member("f", "db1", "db", web1.Etcd.Endpoints[0])
	out := web1.exits(ExitWaiting, "site/token")
	if web1.file("etc/count")+web1.file("etc/joined") != "" || out.Wait == nil {
		t.Errorf("%s", saidBy(out, nil))
	}
	for range 2 {
		for _, h := range []*host{db1, web1, web2} {
			h.exits(ExitOK, "")
			count := map[string]string{"db1": "x\n"}[h.Node.Name]
			if h.file("etc/joined") != "token of db1\n" || h.file("etc/count") != count {
				t.Errorf("%s: %q %q", h.Node.Name, h.file("etc/joined"), h.file("etc/count"))
			}
		}
		web1.write("repo/x", "")
		web1.git("add", "-A")
		web1.git("commit", "-qm", "x", "--allow-empty")
	}
}

// TestServicesOfSteps: what a step announces or takes back is on record; where etcd refuses that, the step failed.
func TestServicesOfSteps(t *testing.T) {
	t.Parallel()
	extra := "{name: extra, address: 192.0.2.9, port: 7, tags: [a]}"
	web1, _, m := pair(t, "steps: [{name: one, action: service.publish, parameters: "+extra+"}]\n", nil)
	once := func() { // the next write of a service is refused, and no other
		m.mu.Lock()
		defer m.mu.Unlock()
		refused := false
		m.refuse = func(kind string) bool {
			if refused || !strings.HasPrefix(kind, "Txn writes bell,service") {
				return false
			}
			refused = true
			return true
		}
	}
	said := func(out *Outcome, err error) {
		t.Helper()
		if said := saidBy(out, err); !strings.Contains(said, "refuses this host") && !strings.Contains(said, "permission denied") {
			t.Errorf("nothing says so: exit %d %s", out.ExitCode(), said)
		}
	}
	once()
	said(web1.with(Options{}))
	web1.exits(ExitOK, "")
	s := web1.overview().Services["extra"]["web1"]
	if s.Address != "192.0.2.9" || s.Port != 7 || !slices.Equal(s.Tags, []string{"a"}) || s.Ready.IsZero() {
		t.Errorf("%+v", s)
	}
	web1.commit("steps: [{name: one, action: service.withdraw, parameters: {name: extra}}]\n")
	once()
	said(web1.with(Options{}))
	if len(web1.overview().Services["extra"]) != 1 {
		t.Error("it is withdrawn")
	}
	web1.exits(ExitOK, "")
	if all := web1.overview().Services["extra"]; len(all) > 0 {
		t.Errorf("%+v", all)
	}
}

// TestBackWhileItWaits: a host whose version the fleet came back to is not through while a step of it waits.
func TestBackWhileItWaits(t *testing.T) {
	t.Parallel()
	c := pulling{
		first: map[string]string{"jobs/site.yaml": job("one", "true") + "- {name: up, action: cmd.run, parameters: {cmd: 'true'}, conditions: {when: {condition: \"len(services('db')) > 0\", retry: {interval: 1h, limit: 0}}}}\n"},
		then:  map[string]string{"jobs/site.yaml": job("two", "true")},
	}
	m, endpoint := newMeter(t)
	repo := c.repository(t)
	s := state.Over(m.store.Client, "f", nil)
	if err := s.Services.Announce(t.Context(), "db", "db1", state.Service{Address: "192.0.2.7"}, false); err != nil {
		t.Fatal(err)
	}
	h := c.at(m, repo, "f", endpoint)
	if err := goesBack(h, s); err != nil {
		t.Fatal(err)
	}
	if err := s.Services.Withdraw(t.Context(), "db", "db1"); err != nil {
		t.Fatal(err)
	}
	through := func() bool {
		t.Helper()
		current, _, err := s.Versions.Current(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return h.known().Through == current.Rollout()
	}
	if h.exits(ExitWaiting, "len(services('db')) > 0"); through() {
		t.Error("it is through while it waits")
	}
	if err := s.Services.Announce(t.Context(), "db", "db1", state.Service{Address: "192.0.2.7"}, false); err != nil {
		t.Fatal(err)
	}
	if h.exits(ExitOK, ""); !through() {
		t.Error("it is not through")
	}
}

// TestFrozenWhileAway: while etcd is away, the switch that the host saw last holds.
func TestFrozenWhileAway(t *testing.T) {
	t.Parallel()
	web1, web2, m := pair(t, job("one", "true"), map[string]string{"pullet.yaml": "rollout: {rollingRules: {global: 2}}\n"})
	web1.exits(ExitOK, "")
	if err := freezes(web1, state.Over(m.store.Client, "f", nil)); err != nil {
		t.Fatal(err)
	}
	web1.write("f/web1/root/etc/motd", "by hand")
	for range 2 {
		out := web1.exits(ExitWaiting, "")
		if out.Report != nil || web1.file("etc/motd") != "by hand" || out.Version == nil {
			t.Errorf("%+v", out)
		}
		m.mu.Lock()
		m.refuse = func(string) bool { return true }
		m.mu.Unlock()
	}
	m.denies("")
	if f := web1.known().Frozen; f == nil {
		t.Error("it forgot the switch")
	}
	// Of a newer version nothing is tried either.
	web1.commit(job("two", "true"))
	if out := web2.exits(ExitWaiting, ""); out.Report != nil || web2.file("etc/motd") != "" {
		t.Errorf("%+v", out)
	}
}

// TestOwnVariablesWhileItWaits: where neither the new version nor the one that runs compiles here, both are said.
func TestOwnVariablesWhileItWaits(t *testing.T) {
	t.Parallel()
	web1, web2, _ := pair(t, job("one", "true"), map[string]string{"pullet.yaml": "rollout: {rollingRules: {global: 2}}\n"})
	web1.exits(ExitOK, "")
	web1.commit(job("two", "true"))
	web2.exits(ExitOK, "")
	web1.write("f/web1/vars.d/own.yaml", "x: [\n")
	out := web1.exits(ExitError, "own.yaml")
	if len(out.Failures) != 1 || len(out.Warnings) != 1 || !strings.Contains(out.Warnings[0].Error(), "own.yaml") || out.Report != nil || out.Version.ID != web1.head() {
		t.Errorf("%+v", out)
	}
	if o := web1.overview(); o.Gates["web"].State == state.Halted || !o.Statuses["web1"][state.Configured].Host {
		t.Errorf("%+v %+v", o.Gates, o.Statuses["web1"])
	}
}
