package agent

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pullet/pullet/internal/patience"
	"github.com/pullet/pullet/state"
)

// TestConditionBesideAStep: while a step waits for its condition beside one that runs, the fleet knows for what; it
// knows that the host goes on as soon as the condition holds, although the other step still runs.
func TestConditionBesideAStep(t *testing.T) {
	t.Parallel()
	web1, _, m := pair(t, `steps:
- name: motd
  action: file.managed
  parameters: {name: /etc/motd, content: hello}
  conditions: {when: {condition: "len(services('db')) > 0", retry: {interval: 1h, limit: 0}}}
- name: slow
  action: cmd.run
  parameters: {cmd: 'touch etc/begun; until test -e etc/go; do sleep 0.02; done'}
  runOptions: {ordering: justdoit}
`, nil)
	done := make(chan *Outcome)
	go func() {
		out, err := web1.with(Options{Wait: 10 * time.Minute})
		if err != nil {
			t.Error(err)
		}
		done <- out
	}()
	web1.started("etc/begun")
	s := state.Over(m.store.Client, "f", nil)
	onRecord := func(want string) {
		t.Helper()
		patience.Succeeds(t, "web1 is "+want, func() error {
			o, err := s.Views.Fleet(t.Context(), false)
			if err != nil {
				t.Fatal(err)
			}
			if st := o.Statuses["web1"][state.Rollout]; st.State != want || (st.Kind == state.WaitCondition) != (want == state.Pending) {
				return fmt.Errorf("status %+v", st)
			}
			return nil
		})
	}
	onRecord(state.Pending)
	if err := s.Services.Announce(t.Context(), "db", "db1", state.Service{Address: "192.0.2.7"}, false); err != nil {
		t.Fatal(err)
	}
	onRecord(state.Running)
	web1.write("f/web1/root/etc/go", "")
	if out := <-done; out.ExitCode() != ExitOK || web1.file("etc/motd") != "hello" {
		t.Error(saidBy(out, nil))
	}
}

// TestServicesInDNS: a host that offers a service takes the instance of another one out of DNS that does not answer.
func TestServicesInDNS(t *testing.T) {
	t.Parallel()
	web1, web2, m := pair(t, job("one", "true"), map[string]string{
		"base/services.yaml": "services: {'*': [{name: web, port: 80, address: 192.0.2.1}]}\n",
		"pullet.yaml":        "rollout: {rollingRules: {global: 2}}\nservices: {skydns: true, domain: fleet.example}\n",
	})
	s := state.Over(m.store.Client, "f", nil)
	inDNS := func(node string, want bool) {
		t.Helper()
		got, err := s.Client.Get(t.Context(), "/skydns/example/fleet/service/web/"+node)
		if err != nil {
			t.Fatal(err)
		}
		if (len(got.Kvs) > 0) != want {
			t.Errorf("%s: %+v, want %t", node, got.Kvs, want)
		}
	}
	web2.exits(ExitOK, "")
	web1.exits(ExitOK, "")
	inDNS("web1", true)
	inDNS("web2", true)
	if _, err := s.Client.Delete(t.Context(), s.Presences.AliveKey("web2")); err != nil {
		t.Fatal(err)
	}
	web1.exits(ExitOK, "")
	inDNS("web1", true)
	inDNS("web2", false)
}

// TestExcusedByItsFacts: a mistake that another host would meet if it were like this one keeps no commit back where the
// facts that the other registered say that it is not.
func TestExcusedByItsFacts(t *testing.T) {
	t.Parallel()
	web1, web2, _ := pair(t, job("one", "true"), map[string]string{"pullet.yaml": "rollout: {rollingRules: {global: 2}}\n"})
	web2.write("f/web2/root/etc/os-release", "ID=ours\n")
	web1.write("f/web1/root/etc/os-release", "ID=theirs\n")
	web1.exits(ExitOK, "")
	web2.exits(ExitOK, "")
	web1.write("repo/base/jobs.yaml", "jobs: {'*': [{name: site}], web2: [{name: two}]}\n")
	for content, code := range map[string]int{"{{ if eq server.os `ours` }}x{{ else }}{{ vars.none }}{{ end }}": ExitOK, "{{ vars.none }}": ExitError} {
		before := web1.overview().Current.ID
		web1.write("repo/jobs/two.yaml", fmt.Sprintf("steps: [{name: s, action: file.managed, parameters: {name: /etc/two, content: %q}}]\n", content))
		web1.commit(job("two", "true; : "+strings.Repeat("x", code)))
		web1.exits(code, "")
		if o := web1.overview(); (o.Current.ID == before) != (code == ExitError) {
			t.Errorf("%s: %+v", content, o.Current)
		}
	}
}

// TestNoViewYet: a host that never read anything of the fleet has no view of it to go on with, although it pulled.
func TestNoViewYet(t *testing.T) {
	t.Parallel()
	h := newHost(t, job("one", "true"))
	h.exits(ExitOK, "")
	if view, at, err := CachedView(h.Paths.State); err != nil || !at.IsZero() || view.Nodes != nil {
		t.Errorf("%v %s %+v", err, at, view)
	}
	h.commit("steps: [{name: motd, action: file.managed, parameters: {name: /etc/motd, content: '{{ len (services `web`) }}'}}]\n")
	h.exits(ExitOK, "")
	if view, at, err := CachedView(h.Paths.State); err != nil || at.IsZero() || len(view.Nodes) != 1 {
		t.Errorf("%v %s %+v", err, at, view)
	}
}
