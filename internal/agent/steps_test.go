package agent

import (
	"strings"
	"testing"

	"github.com/pullet/pullet/state"
)

// pair is two hosts of role web in one fleet, whose repository holds files beside the job.
func pair(t *testing.T, job string, files map[string]string) (web1, web2 *host, m *meter) {
	t.Helper()
	m, endpoint := newMeter(t)
	web1, web2 = pairOn(t, endpoint, "f", job, files)
	return web1, web2, m
}

// pairOn is pair in a fleet whose etcd others use, too.
func pairOn(t *testing.T, endpoint, fleet, job string, files map[string]string) (web1, web2 *host) {
	t.Helper()
	h := newHost(t, job)
	h.write("repo/nodes/web.yaml", "nodes: {web1: {labels: {role: web}}, web2: {labels: {role: web}}}\n")
	h.write("repo/pullet.yaml", "rollout: {rollingRules: {global: 1}}\n")
	for name, text := range files {
		h.write("repo/"+name, text)
	}
	h.git("add", "-A")
	h.git("commit", "-qm", "two hosts")
	return h.member(fleet, "web1", "web", endpoint), h.member(fleet, "web2", "web", endpoint)
}

const together = `steps:
- {name: token, action: cmd.run, parameters: {cmd: 'echo token of $PULLET_NODE'}, runOptions: {target: {limit: 1}}}
- {name: join, action: cmd.run, parameters: {cmd: 'echo {{ (step "token").StdOut | trim }} {{ (step "token").State }} > etc/joined'}, runOptions: {serialize: {count: 1}}}
- {name: meet, action: cmd.run, parameters: {cmd: 'echo met >> etc/met'}, runOptions: {sync: true}}
- {name: behind, action: file.managed, parameters: {name: /etc/behind, content: x}}
`

// TestStepsTogether: one host takes a step for both, which read its result; a serialized step gives its place back; a
// host that waits for the other in mid-run gives its slot back, is parked, and goes on at its next pull without doing
// anything twice.
func TestStepsTogether(t *testing.T) {
	t.Parallel()
	web1, web2, _ := pair(t, together, nil)
	out := web1.exits(ExitWaiting, "waiting for barrier site/meet: not arrived yet: web2")
	o := web1.overview()
	st := o.Statuses["web1"][state.Rollout]
	if len(o.Slots) > 0 || st.State != state.Pending || !st.Parked || st.Gate != "barrier site/meet" || st.Run != out.Run || web1.file("etc/behind") != "" {
		t.Errorf("slots %v, %+v", o.Slots, st)
	}
	if local, err := state.LoadLocal(web1.Paths.State); err != nil || local.Held != nil || local.Parked == "" || local.Running != nil {
		t.Errorf("%v %+v", err, local)
	}
	web2.exits(ExitOK, "")
	web1.exits(ExitOK, "")
	for _, h := range []*host{web1, web2} {
		if got := h.file("etc/joined") + h.file("etc/met") + h.file("etc/behind"); got != "token of web1 ok\nmet\nx" {
			t.Errorf("%s: %q", h.Node.Name, got)
		}
	}
	o = web1.overview()
	for _, name := range []string{"web1", "web2"} {
		if st := o.Statuses[name][state.Rollout]; st.State != state.Success || o.Running[name] != o.Current.ID || st.Gate != "" {
			t.Errorf("%s: %+v", name, st)
		}
	}
	if local, err := state.LoadLocal(web1.Paths.State); err != nil || local.Parked != "" || local.Upgrading != "" || local.Through != o.Current.Rollout() {
		t.Errorf("%v %+v", err, local)
	}
	locks, err := web1.open().Views.Locks(t.Context(), o)
	if err != nil || len(locks) != 1 || locks[0].Kind != "election" || locks[0].Node != "web1" { // who was chosen stays it
		t.Errorf("%+v %v", locks, err)
	}
}

// TestResultsOfOthers: who reads a result that failed elsewhere fails; one that nobody knows halts until an operator
// settles it; what he says counts.
func TestResultsOfOthers(t *testing.T) {
	t.Parallel()
	web1, web2, _ := pair(t, strings.Replace(together, "echo token of $PULLET_NODE", "echo no token >&2; exit 4", 1),
		map[string]string{"pullet.yaml": "rollout: {rollingRules: {global: 2}, maxFailures: 9}\n"})
	web1.exits(ExitError, "exit code 4")
	web2.exits(ExitError, "it reads the result of site/token, which failed on web1: ")
	if got := web2.file("etc/joined"); got != "" {
		t.Error(got)
	}
	// What an operator says of it is the result, which has no output.
	if _, err := web1.open().Steps.Settle(t.Context(), "site/token", "ada", state.Settling{Done: true}); err != nil {
		t.Fatal(err)
	}
	web2.exits(ExitOK, "") // web1 arrived as failed
	web1.exits(ExitOK, "")
	for _, h := range []*host{web1, web2} {
		if got := h.file("etc/joined"); got != "ok\n" {
			t.Errorf("%s: %q", h.Node.Name, got)
		}
	}
}
