package agent

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pullet/pullet/state"
)

// said is what the fleet knows of a host in a category.
func (h *host) said(category, state, kind, reason string) {
	h.t.Helper()
	st := h.overview().Statuses[h.Node.Name][category]
	if st.State != state || string(st.Kind) != kind || !strings.Contains(st.Reason, reason) {
		h.t.Errorf("%s: %s is %q %q: %q, want %q %q: %q", h.Node.Name, category, st.State, st.Kind, st.Reason, state, kind, reason)
	}
}

// TestLackingService: a commit that reads a service which nobody announced is no failure, on the first host of a fleet,
// on the next one, and as a newer commit over one that runs. The fleet knows for what the host waits, and which commit
// is skipped.
func TestLackingService(t *testing.T) {
	t.Parallel()
	reads := "steps: [{name: motd, action: file.managed, parameters: {name: /etc/motd, content: \"{{ (index (services `db`) 0).address }}\"}}]\n"
	web1, web2, _ := pair(t, reads, map[string]string{"base/jobs.yaml": "jobs: {web1: [{name: site}], web2: []}\n", "pullet.yaml": "rollout: {rollingRules: {global: 2}}\n"})
	web1.exits(ExitWaiting, "waiting for service db: nobody has announced it, and version ")
	web1.said(state.Configured, state.Pending, string(state.WaitService), "service db: nobody has announced it")
	o := web1.overview()
	if o.Current != nil || o.Skipped == nil || o.Skipped.Kind != state.SkipLacking || o.Skipped.By != "web1" || !strings.HasPrefix(o.Skipped.Reason, "service db: nobody has announced it") {
		t.Errorf("%+v %+v", o.Current, o.Skipped)
	}
	web2.exits(ExitOK, "") // it proposes what it can use
	if out := web1.exits(ExitWaiting, "waiting for service db: "); len(out.Failures) > 0 || out.Version == nil || out.Report != nil {
		t.Errorf("%+v", out)
	}
	web1.said(state.Configured, state.Pending, string(state.WaitService), "service db: nobody has announced it")
	if o := web1.overview(); o.Gates["web"].State == state.Halted {
		t.Errorf("%+v", o.Gates)
	}
	s := web1.open()
	if err := s.Services.Announce(t.Context(), "db", "db1", state.Service{Address: "192.0.2.7"}, false); err != nil {
		t.Fatal(err)
	}
	web1.exits(ExitOK, "")
	if got := web1.file("etc/motd"); got != "192.0.2.7" {
		t.Error(got)
	}
	// Over a version that runs: its drift is corrected meanwhile.
	web1.write("f/web1/root/etc/motd", "by hand")
	web1.commit(strings.Replace(reads, "db", "cache", 1))
	web1.exits(ExitWaiting, "waiting for service cache: nobody has announced it")
	if got := web1.file("etc/motd"); got != "192.0.2.7" {
		t.Error(got)
	}
	web1.said(state.Configured, state.Pending, string(state.WaitService), "service cache: nobody has announced it")
	if o := web1.overview(); o.Skipped == nil || o.Skipped.Kind != state.SkipLacking || o.Skipped.Over != o.Current.Rollout() {
		t.Errorf("%+v", o.Skipped)
	}
	// A mistake beside it waits for nothing.
	web1.commit(strings.Replace(strings.Replace(reads, "db", "cache", 1), "}}]", "}}, {name: x, action: no.such}]", 1))
	web1.exits(ExitError, "no.such")
	web1.said(state.Configured, state.Failed, "", "is not proposed to the fleet")
	if o := web1.overview(); o.Skipped == nil || o.Skipped.Kind != state.SkipBroken || !strings.Contains(o.Skipped.Reason, "it does not compile: ") {
		t.Errorf("%+v", o.Skipped)
	}
	// The fleet at the newest commit skips nothing.
	web1.commit(reads)
	web1.exits(ExitOK, "")
	if o := web1.overview(); o.Skipped != nil {
		t.Errorf("%+v", o.Skipped)
	}
}

// TestReaderElsewhere: a host that offers a service is not held up by another one that reads it before it is there,
// wherever the reader does that, and the reader goes on when it is. So it is with a second instance.
func TestReaderElsewhere(t *testing.T) {
	t.Parallel()
	_, endpoint := newMeter(t)
	few := "{{ if lt (len (services `db`)) 2 }}{{ fail `two dbs` }}{{ end }}"
	file := "{name: read, action: file.managed, parameters: {name: /etc/read, source: t, template: true}}"
	text := func(s string) string {
		return fmt.Sprintf("{name: read, action: file.managed, parameters: {name: /etc/read, content: %q}}", s)
	}
	for i, c := range []struct {
		step, file string
		twice      bool // it needs two of them
	}{
		{file, "{{ (index (services `db`) 0).port }}", false},
		{file, "{{ macro `port` }}", false},
		{file, few, true},
		{text("{{ (index (services `db`) 1).port }}"), "", true},
		{"{name: read, forEach: \"[services('db')[1].port]\", action: file.managed, parameters: {name: /etc/read, content: '{{ item }}'}}", "", true},
		{"{name: read, conditions: {when: {condition: \"services('db')[1].port > 1\"}}, action: file.managed, parameters: {name: /etc/read, content: x}}", "", true},
	} {
		web1, web2 := pairOn(t, endpoint, fmt.Sprintf("f%d", i), "steps: ["+c.step+"]\n", map[string]string{
			"files/t":          c.file + "\n",
			"base/macros.yaml": "macros: {'*': [{name: m}]}\n",
			"macros/m.yaml":    "port: {template.expression: [{content: '{{ (index (services `db`) 0).port }}'}]}\n",
			"base/jobs.yaml":   "jobs: {web1: [{name: db}], web2: [{name: site}]}\n",
			"jobs/db.yaml":     "steps: [{name: offer, action: service.publish, parameters: {name: db, port: 5432, address: 192.0.2.1}}]\n",
			"pullet.yaml":      "rollout: {rollingRules: {global: 2}}\n",
		})
		web2.exits(ExitWaiting, "service db")
		web1.exits(ExitOK, "")
		if c.twice {
			web2.exits(ExitWaiting, "one host has announced it")
			if o := web2.overview(); o.Gates["web"].State == state.Halted || o.Statuses["web2"][state.Configured].State == state.Failed {
				t.Errorf("%s %s: %+v", c.step, c.file, o.Statuses["web2"])
			}
			s := web1.open()
			if err := s.Services.Announce(t.Context(), "db", "db2", state.Service{Address: "192.0.2.2", Port: 5432}, false); err != nil {
				t.Fatal(err)
			}
		}
		web2.exits(ExitOK, "")
		if t.Failed() {
			t.Fatalf("%s %s", c.step, c.file)
		}
	}
}

// TestMistakeElsewhere: a commit that does not compile for one host of the inventory is proposed by none, and halts
// nothing; where the fleet's version is one that compiles elsewhere only, the host has failed, its group is halted, and
// what runs there is checked.
func TestMistakeElsewhere(t *testing.T) {
	t.Parallel()
	web1, web2, _ := pair(t, job("one", "true"), nil)
	web1.exits(ExitOK, "")
	web2.exits(ExitOK, "")
	web1.write("repo/jobs/two.yaml", "steps: [{name: motd, action: file.managed, parameters: {name: /etc/two, content: '{{ vars.none }}'}}]\n")
	web1.write("repo/base/jobs.yaml", "jobs: {'*': [{name: site}], web2: [{name: two}]}\n")
	web1.commit(job("two", "true"))
	out := web1.exits(ExitError, "is not proposed to the fleet, and no host changes: it does not compile for web2:")
	if out.Report == nil || web1.file("etc/motd") != "one" {
		t.Errorf("%+v", out)
	}
	if o := web1.overview(); o.Skipped == nil || o.Skipped.Kind != state.SkipElsewhere || !strings.HasPrefix(o.Skipped.Reason, "it does not compile for web2: jobs/two.yaml:1:") {
		t.Errorf("%+v", o.Skipped)
	}
	web1.said(state.Configured, state.Failed, "", "it does not compile for web2")
	if st := web1.overview().Statuses["web1"][state.Configured]; st.Host {
		t.Errorf("the host is not at fault: %+v", st)
	}
	// Where the other host has variables of its own, nobody knows: it is proposed, and fails there.
	web2.write("f/web2/vars.d/own.yaml", "x: 1\n")
	web2.exits(ExitError, "vars")
	web1.exits(ExitOK, "")
	if web1.file("etc/motd") != "two" {
		t.Error("it is not proposed")
	}
	out = web2.exits(ExitError, "none")
	o := web2.overview()
	if out.Report == nil || web2.file("etc/motd") != "one" || o.Gates["web"].State != state.Halted || o.Statuses["web2"][state.Rollout].State != state.Failed {
		t.Errorf("%+v %+v", o.Gates, o.Statuses["web2"])
	}
	web2.said(state.Configured, state.Failed, "", "jobs/two.yaml:1:")
	web2.write("f/web2/vars.d/own.yaml", "none: 1\n")
	web2.exits(ExitOK, "")
	web2.write("f/web2/vars.d/own.yaml", "none: [\n")
	web2.exits(ExitError, "own.yaml")
	if st := web2.overview().Statuses["web2"][state.Configured]; st.State != state.Failed || !st.Host {
		t.Errorf("the host is at fault: %+v", st)
	}
}

// TestRemoteLags: a host whose remote does not have the fleet's commit waits for it and corrects the drift of its
// version; where the remote cannot be read, it says so.
func TestRemoteLags(t *testing.T) {
	t.Parallel()
	web1, web2, _ := pair(t, job("one", "true"), map[string]string{"pullet.yaml": "rollout: {rollingRules: {global: 2}}\n"})
	mirror := filepath.Join(web1.home, "mirror")
	if out, err := exec.Command("git", "clone", "-q", filepath.Join(web1.home, "repo"), mirror).CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	web2.Repositories[0].URL = mirror
	web1.exits(ExitOK, "")
	web2.exits(ExitOK, "")
	web1.commit(job("two", "true"))
	web1.Repositories[0].URL = filepath.Join(web1.home, "repo")
	web1.exits(ExitOK, "")
	web2.Repositories = append(web2.Repositories[:0:0], web2.Repositories...)
	web2.Repositories[0].URL = mirror
	web2.write("f/web2/root/etc/motd", "by hand")
	web2.exits(ExitWaiting, "waiting for repository main: its remote does not have ")
	if web2.file("etc/motd") != "one" {
		t.Error("drift is corrected")
	}
	web2.said(state.Configured, state.Pending, string(state.WaitRepository), "repository main: its remote does not have ")
	web2.Repositories[0].URL = filepath.Join(web1.home, "none")
	out := web2.exits(ExitWaiting, "is not on this host, and could not be fetched: ")
	if len(out.Warnings) == 0 || !out.Wait.Itself() {
		t.Errorf("%q %+v", out.Warnings, out.Wait)
	}
	web2.Repositories[0].URL = filepath.Join(web1.home, "repo")
	web2.exits(ExitOK, "")
	if web2.file("etc/motd") != "two" {
		t.Error("it follows")
	}
}
