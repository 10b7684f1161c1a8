package agent

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/pullet/pullet/state"
)

// rich is a commit whose pull asks etcd for all that a single host may need of it.
var rich = map[string]string{
	"repo/pullet.yaml":        "rollout: {rollingRules: {global: 2}, canary: {target: 'role=web', soak: 0s}}\n",
	"repo/base/services.yaml": "services: {'*': [{name: db, port: 5432, address: 192.0.2.1}]}\n",
	"repo/jobs/site.yaml": `onFailure: restore
steps:
- {name: token, action: cmd.run, parameters: {cmd: echo token}, runOptions: {target: {limit: 1}}}
- {name: join, action: cmd.run, parameters: {cmd: 'echo {{ (step "token").StdOut | trim }} >> etc/joined'}, runOptions: {serialize: {count: 1}}}
- {name: meet, action: cmd.run, parameters: {cmd: echo met >> etc/met}, runOptions: {sync: true}, conditions: {when: {condition: "len(services('db')) > 0"}}}
- {name: motd, action: file.managed, parameters: {name: /etc/motd, content: '{{ range services "db" }}{{ .node }}{{ end }}'}}
`,
}

// TestNoRefusalIsSilent: whichever request of a pull etcd refuses, the pull says so or asks again, and the next one
// finishes the work: nothing counts as a failure of the commit. The short run tries some of them.
func TestNoRefusalIsSilent(t *testing.T) {
	t.Parallel()
	every := 1
	if testing.Short() {
		every = 3
	}
	h := newHost(t, job("one", "true"))
	m, endpoint := newMeter(t)
	for name, text := range rich {
		h.write(name, text)
	}
	h.git("add", "-A")
	h.git("commit", "-qm", "rich")
	for n := 1; n < 100; n += every {
		web := h.member(fmt.Sprint("f", n), "web1", "web", endpoint)
		what := m.refuses(n)
		out, err := web.with(Options{})
		if *what == "" {
			if n < 40 {
				t.Errorf("the pull made fewer than %d requests", n)
			}
			break
		}
		said := saidBy(out, err) + web.log.String()
		if told := strings.Contains(said, "permission denied") || strings.Contains(said, "refuses this host"); !told && !web.isThrough(m) {
			t.Errorf("request %d, %s, was refused, and nothing says so: exit %d %v\n%s", n, *what, out.ExitCode(), err, said)
		}
		if out.Report != nil && out.Report.Failed() {
			t.Errorf("request %d, %s, was refused, and a step counts as failed: %s", n, *what, said)
		}
		if web.isThrough(m) {
			continue
		}
		if out, err := web.with(Options{}); err != nil || out.ExitCode() != ExitOK || !web.isThrough(m) {
			t.Errorf("request %d, %s, was refused, and the next pull exits %d: %s", n, *what, out.ExitCode(), saidBy(out, err))
		}
	}
}

// TestNoRefusalOfDriftIsSilent: the same of a pull that corrects drift, which it does whatever is refused once the host
// is registered.
func TestNoRefusalOfDriftIsSilent(t *testing.T) {
	t.Parallel()
	web1, _, m := pair(t, job("one", "true"), map[string]string{"base/services.yaml": "services: {'*': [{name: db, port: 5432, address: 192.0.2.1}]}\n"})
	web1.exits(ExitOK, "")
	for n := 1; n < 50; n++ {
		web1.write("f/web1/root/etc/motd", fmt.Sprint("by hand ", n))
		what := m.refuses(n)
		out, err := web1.with(Options{})
		m.denies("")
		if *what == "" {
			if n < 5 {
				t.Errorf("the pull made fewer than %d requests", n)
			}
			return
		}
		said := saidBy(out, err)
		st := web1.statuses()[state.Configured]
		if told := strings.Contains(said, "permission denied") || strings.Contains(said, "refuses this host"); !told && (st.Run != out.Run || st.State != state.Success) {
			t.Errorf("request %d, %s, was refused, and nothing says so: exit %d %+v\n%s", n, *what, out.ExitCode(), st, said)
		}
		if got := web1.file("etc/motd"); got != "one" {
			t.Errorf("request %d, %s, was refused: %q, %s", n, *what, got, said)
		}
	}
}

// isThrough reports a host on which the rich commit was applied, and validated, and whose fleet knows that.
func (h *host) isThrough(m *meter) bool {
	h.t.Helper()
	o, err := state.Over(m.store.Client, h.Fleet, nil).Views.Fleet(h.t.Context(), true)
	if err != nil {
		h.t.Fatal(err)
	}
	st := o.Statuses[h.Node.Name]
	for _, category := range state.Categories() {
		if st[category].State != state.Success {
			return false
		}
	}
	files := h.file("etc/motd") == "web1" && h.file("etc/joined") == "token\n" && h.file("etc/met") == "met\n"
	return files && o.Current.ID == o.Running[h.Node.Name] && !o.Services["db"][h.Node.Name].Ready.IsZero() && len(o.Slots) == 0
}

// refuses has the n-th request from now on refused, once. What it was is known then.
func (m *meter) refuses(n int) *string {
	asked, what := 0, new(string)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.refuse = func(kind string) bool {
		if slices.Contains([]string{"Watch", "LeaseKeepAlive", "Status"}, strings.Split(kind, " ")[0]) {
			return false
		}
		if asked++; asked == n {
			*what = kind
		}
		return asked == n
	}
	return what
}

// TestNoRefusalOfAServiceIsSilent: the same of an upgrade that changes what the host offers: the fleet has the new
// service, or the pull says that something was refused.
func TestNoRefusalOfAServiceIsSilent(t *testing.T) {
	t.Parallel()
	offers := func(port int) string {
		return fmt.Sprintf("services: {'*': [{name: db, port: %d, address: 192.0.2.1}]}\n", port)
	}
	web1, _, m := pair(t, job("one", "true"), map[string]string{"base/services.yaml": offers(1)})
	web1.exits(ExitOK, "")
	for n := 1; n < 100; n++ {
		web1.write("repo/base/services.yaml", offers(1+n))
		web1.commit(job("one", "true"))
		what := m.refuses(n)
		out, err := web1.with(Options{})
		m.denies("")
		if *what == "" {
			if n < 10 {
				t.Errorf("the pull made fewer than %d requests", n)
			}
			return
		}
		said := saidBy(out, err)
		if strings.Contains(said, "permission denied") || strings.Contains(said, "refuses this host") {
			continue
		}
		if db := web1.overview().Services["db"]["web1"]; db.Port != 1+n {
			t.Errorf("request %d, %s, was refused, nothing says so, and the service is %+v: exit %d\n%s", n, *what, db, out.ExitCode(), said)
		}
	}
}
