package agent

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pullet/pullet/lock"
	"github.com/pullet/pullet/state"
)

// denies has etcd refuse every request whose kind holds a text, from now on; "" is none.
func (m *meter) denies(text string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.refuse = func(kind string) bool { return text != "" && strings.Contains(kind, text) }
}

// TestServices: what a host offers is announced before anything is compiled, ready when the run was validated and its
// check succeeded, not ready with the reason while it fails, and withdrawn when the version says so no longer, however
// often that has to be tried.
func TestServices(t *testing.T) {
	t.Parallel()
	web1, _, m := pair(t, job("one", "test ! -e etc/broken"), map[string]string{
		"jobs/check.yaml": "steps: [{name: works, action: cmd.run, parameters: {cmd: 'test ! -e etc/invalid'}}]\n",
		"base/services.yaml": `services: {role=web: [
  {name: web, port: 80, address: 192.0.2.1, check: {cmd: test -e etc/up}},
  {name: nowhere, port: 80, interface: none0}]}
`,
		"jobs/site.yaml": job("one", "test ! -e etc/broken") + "- {name: extra, action: service.publish, parameters: {name: extra, address: 192.0.2.9, port: 1}}\n",
	})
	service := func(name string) state.Service {
		t.Helper()
		return web1.overview().Services[name]["web1"]
	}
	out := web1.exits(ExitOK, "service nowhere is not announced: this host has no address on interface none0")
	if s := service("web"); !s.Ready.IsZero() || s.Why != "test -e etc/up: exit code 1" || s.Address != "192.0.2.1" || s.Port != 80 {
		t.Errorf("%+v", s)
	}
	if s := service("extra"); s.Ready.IsZero() || s.Why != "" {
		t.Errorf("%+v", s)
	}
	if len(out.Warnings) != 2 || !strings.Contains(saidBy(out, nil), "service web is not ready: test -e etc/up: exit code 1") {
		t.Errorf("%q", out.Warnings)
	}
	web1.said(state.Configured, state.Success, "", "service web is not ready: test -e etc/up")
	web1.write("f/web1/root/etc/up", "")
	web1.exits(ExitOK, "")
	ready := service("web")
	if ready.Ready.IsZero() || ready.Why != "" {
		t.Errorf("%+v", ready)
	}
	web1.exits(ExitOK, "")
	if again := service("web"); !again.Ready.Equal(ready.Ready) {
		t.Errorf("%+v became %+v", ready, again)
	}
	// A validation that fails takes back that both are ready; they stay announced.
	web1.write("f/web1/root/etc/invalid", "")
	web1.exits(ExitError, "etc/invalid")
	if web, extra := service("web"), service("extra"); !web.Ready.IsZero() || !extra.Ready.IsZero() || web.Address == "" {
		t.Errorf("%+v %+v", web, extra)
	}
	if local := web1.known(); local.Validated || strings.Join(local.Offers, " ") != "web" {
		t.Errorf("%+v", local)
	}
	web1.remove("etc/invalid")
	web1.exits(ExitOK, "")
	if web, extra := service("web"), service("extra"); web.Ready.IsZero() || extra.Ready.IsZero() || !web1.known().Validated {
		t.Errorf("%+v %+v", web, extra)
	}
	// Another service, and then one less, which etcd does not take back at first.
	other := "{name: other, port: 80, address: 192.0.2.2}"
	web1.write("repo/base/services.yaml", "services: {role=web: [{name: web, port: 80, address: 192.0.2.1}, "+other+"]}\n")
	web1.commit(job("two", "true"))
	web1.exits(ExitOK, "")
	web1.write("repo/base/services.yaml", "services: {role=web: ["+other+"]}\n")
	web1.commit(job("three", "true"))
	m.denies("Txn writes bell,service")
	out, err := web1.with(Options{})
	if said := saidBy(out, err); !strings.Contains(said, "refuses this host") {
		t.Errorf("nothing says so: %v %s", err, said)
	}
	m.denies("")
	if out.Version.ID != web1.head() || web1.file("etc/motd") != "three" || strings.Join(web1.known().Offers, " ") != "other web" {
		t.Errorf("%+v, it offers %v", out, web1.known().Offers)
	}
	web1.exits(ExitOK, "")
	if o := web1.overview(); o.Services["web"] != nil || o.Services["other"]["web1"].Ready.IsZero() || strings.Join(web1.known().Offers, " ") != "other" {
		t.Errorf("%+v %v", o.Services, web1.known().Offers)
	}
}

// remove removes a file below the host's root.
func (h *host) remove(name string) {
	h.t.Helper()
	if err := os.Remove(filepath.Join(h.Root, name)); err != nil {
		h.t.Fatal(err)
	}
}

// TestConditionsWait: a condition that waits for a service looks again when that is announced, long before its interval
// is over; the fleet knows for what the host waits meanwhile, and that it goes on. Where no time is left to wait, the
// pull says what it waits for, and so does the fleet's record.
func TestConditionsWait(t *testing.T) {
	t.Parallel()
	web1, _, _ := pair(t, `steps:
- {name: before, action: file.managed, parameters: {name: /etc/before, content: x}}
- name: motd
  action: file.managed
  parameters: {name: /etc/motd, content: hello}
  conditions: {when: {condition: "len(services('db')) > 0 && len(pullet.servers('role=db')) > 0", retry: {interval: 1h, limit: 0}}}
`, map[string]string{"pullet.yaml": "rollout: {canary: {target: web1, soak: 0s}}\n"})
	out := web1.exits(ExitWaiting, "len(services('db')) > 0")
	if out.Wait.Kind != state.WaitCondition || out.Wait.Gate == "" || web1.file("etc/before") != "x" || !strings.Contains(out.Wait.Clear, "pullet rollout fail") {
		t.Errorf("%+v", out.Wait)
	}
	st := web1.overview().Statuses["web1"]
	if r := st[state.Rollout]; r.State != state.Pending || r.Kind != state.WaitCondition || r.Gate != out.Wait.Gate || !r.Parked {
		t.Errorf("%+v", r)
	}
	web1.said(state.Configured, state.Pending, string(state.WaitCondition), "len(services('db')) > 0")
	if local := web1.known(); local.Held != nil || local.Parked == "" {
		t.Errorf("%+v", local)
	}
	done, waits := make(chan *Outcome), make(chan *lock.Wait, 10)
	go func() {
		out, err := web1.with(Options{Wait: time.Minute, Waiting: func(w *lock.Wait) { waits <- w }})
		if err != nil {
			t.Error(err)
		}
		done <- out
	}()
	if w := <-waits; w.Kind != state.WaitCondition || time.Until(w.Until) > time.Minute {
		t.Errorf("%+v", w)
	}
	s := web1.open()
	db := state.Node{Name: "db1", Role: "db", Labels: map[string]string{"role": "db"}}
	if _, err := s.Presences.Register(t.Context(), db, state.Alive{Owner: "x"}, nil, time.Minute); err != nil {
		t.Fatal(err)
	}
	if err := s.Services.Announce(t.Context(), "db", "db1", state.Service{Address: "192.0.2.7"}, false); err != nil {
		t.Fatal(err)
	}
	out = <-done
	if out.ExitCode() != ExitOK || out.Wait != nil || web1.file("etc/motd") != "hello" {
		t.Errorf("%s", saidBy(out, nil))
	}
	if st := web1.overview().Statuses["web1"][state.Rollout]; st.State != state.Success || st.Gate != "" {
		t.Errorf("%+v", st)
	}
}
