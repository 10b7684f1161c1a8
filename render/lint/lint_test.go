package lint_test

import (
	"maps"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/pullet/pullet/render"
	"github.com/pullet/pullet/render/lint"
)

// linted is what Lint finds in a repository for web1 and db1, a line for each finding.
func linted(t *testing.T, files map[string]string) []string {
	t.Helper()
	all := map[string]string{"nodes/all.yaml": "nodes:\n  web1: {labels: {role: web}}\n  db1: {labels: {role: db}}\n"}
	maps.Copy(all, files)
	tree := fstest.MapFS{"base/jobs.yaml": {Data: []byte("jobs: {}\n")}}
	for name, text := range all {
		tree[name] = &fstest.MapFile{Data: []byte(text)}
	}
	r := render.Open(render.Layer{Name: "main", FS: tree})
	found := lint.New(r)
	for _, name := range []string{"web1", "db1"} {
		cat, err := r.Compile(render.Input{Node: render.Node{Name: name}, Facts: render.Facts{"os": "debian", "fqdn": name}})
		if err != nil {
			t.Fatal(err)
		}
		found.Add(cat)
	}
	var out []string
	for _, e := range found.Findings(true) {
		out = append(out, e.Error())
	}
	return out
}

const oneJob = "jobs: {'*': [{name: a}]}\n"

// oneStep is a job of one step with these parameters and this condition.
func oneStep(params, when string) string {
	text := "steps:\n- name: s\n  action: cmd.run\n  parameters: {" + params + "}\n"
	if when != "" {
		text += "  conditions: {when: {condition: \"" + when + "\"}}\n"
	}
	return text
}

// TestLint shows every finding, and what must not be one.
func TestLint(t *testing.T) {
	vars := "files: {'*': [{name: v}]}\n"
	for _, c := range []struct {
		name  string
		files map[string]string
		want  []string
	}{
		{"services that nobody offers", map[string]string{"base/jobs.yaml": oneJob, "files/lb.conf": "{{ range services \"wbe\" }}{{ end }} and services 'x' in words",
			"base/services.yaml": "services:\n  role=web: [{name: web}] # services('y')\n",
			"jobs/a.yaml":        "steps:\n- {name: w, action: service.wait, parameters: {name: db}}\n- {name: s, action: file.managed, parameters: {name: /lb, source: lb.conf, template: true}, conditions: {when: {condition: \"len(services('dbs')) > 0\"}}}\n"},
			[]string{`files/lb.conf:1:20: warning: nobody offers the service "wbe" that is read here (did you mean "web"?)`,
				`jobs/a.yaml:2:54: warning: nobody offers the service "db" that this step waits for (offer it in base/services.yaml, or with service.publish in a job)`,
				`jobs/a.yaml:3:139: warning: nobody offers the service "dbs" that is read here`}},
		{"services that a job publishes", map[string]string{"base/jobs.yaml": oneJob,
			"jobs/a.yaml": "steps:\n- {name: w, action: service.wait, parameters: {name: db, kind: announced}}\n- {name: p, action: service.publish, parameters: {name: db}}\n"}, nil},
		{"a service whose name is known later", map[string]string{"base/jobs.yaml": oneJob,
			"jobs/a.yaml": "steps:\n- {name: w, action: service.wait, parameters: {name: db}}\n- {name: c, action: cmd.run, parameters: {cmd: x}}\n- {name: p, action: service.publish, parameters: {name: '{{ (step \"c\").StdOut }}'}}\n"}, nil},

		{"unknown key", map[string]string{"base/jobs.yaml": oneJob, "jobs/a.yaml": oneStep("cmd: x", "server.os == 'x' and vars.ntp.port == 2 and vars.ntp.prot == 1"), "base/vars.yaml": vars, "vars/v.yaml": "ntp: {port: 1}\n"},
			[]string{`jobs/a.yaml:5:88: warning: expression: no node has the variable "prot" (did you mean "port"?)`}},
		{"unknown first key", map[string]string{"base/jobs.yaml": oneJob, "jobs/a.yaml": oneStep("cmd: x", "false and vars['ntpp'] == 1"), "base/vars.yaml": vars, "vars/v.yaml": "ntp: {port: 1}\n"},
			[]string{`jobs/a.yaml:5:50: warning: expression: no node has the variable "ntpp" (did you mean "ntp"?)`, `vars/v.yaml:1:1: warning: nothing in the repository mentions the variable "ntp" (remove it, or use it)`}},
		{"keys that some node has, or that may be missing", map[string]string{
			"base/jobs.yaml": oneJob, "base/vars.yaml": "files: {'role=db': [{name: v}]}\n", "vars/v.yaml": "ntp: {port: 1, list: [1]}\n",
			"jobs/a.yaml": oneStep("cmd: x", "hasLabel('role=db') && vars.ntp == 1 && vars?.x == 1 && (vars.y ?? 1) == 1 && ('q' in vars ? vars.q : 1) == 1 && vars.ntp?.list == 1")}, nil},
		{"unknown fact", map[string]string{"base/jobs.yaml": oneJob, "jobs/a.yaml": oneStep("cmd: x", "true || server.oss == 1 || Server['Spec'].FQND == 1")},
			[]string{`jobs/a.yaml:5:50: warning: expression: no node has the fact "oss" (did you mean "os"?)`, `jobs/a.yaml:5:77: warning: expression: no node has the fact "FQND" (did you mean "FQDN"?)`}},
		{"facts, and what may be missing of them", map[string]string{"base/jobs.yaml": oneJob, "jobs/a.yaml": oneStep("cmd: x",
			"server.os == 1 && Server.Spec.FQDN == 1 && 'x' in Server.ObjectMetadata.Labels && server.labels.rack == 1 && server?.x == 1 && ('gpu' in server ? server.gpu : 1) == 1 && (server.y ?? 1) == 1 && server.name == Server.ObjectMetadata.Name")}, nil},
		{"unknown macro", map[string]string{"base/jobs.yaml": oneJob, "jobs/a.yaml": oneStep("cmd: x", "true || macros['helthy'] == 1 || macros['helthy']('x') == 1"), "base/macros.yaml": "macros: {'*': [{name: m}]}\n", "macros/m.yaml": "healthy: {template.expression: [{content: '1'}]}\n"},
			[]string{`jobs/a.yaml:5:50: warning: expression: no node has the macro "helthy" (did you mean "healthy"?)`, `jobs/a.yaml:5:75: warning: expression: no node has the macro "helthy"`, `macros/m.yaml:1:1: warning: nothing in the repository mentions the macro "healthy"`}},

		{"idle target", map[string]string{"base/jobs.yaml": "jobs:\n  '*': [{name: a}]\n  'role=wbe': [{name: a}]\n", "jobs/a.yaml": "steps: []\n"},
			[]string{`base/jobs.yaml:3:3: warning: no node of the inventory matches the target "role=wbe" (nobody gets what stands below it)`}},

		{"pullet's own service", map[string]string{"base/jobs.yaml": oneJob,
			"jobs/a.yaml": "steps:\n- {name: f, action: file.managed, parameters: {name: /etc/x}}\n" +
				"- {name: s, action: service.ensure, parameters: {name: pullet-agent, state: started, watch: [{file: /etc/x}]}}\n" +
				"- {name: t, action: service.ensure, parameters: {name: pullet-agent.service, state: [stopped, disabled]}}\n" +
				"- {name: r, action: service.ensure, parameters: {name: pullet-agent, state: started, reload: true, watch: [{file: /etc/x}]}}\n" +
				"- {name: n, action: service.ensure, parameters: {name: nginx, state: restarted}}\n"},
			[]string{`jobs/a.yaml:3:56: note: pullet-agent.service, in which this step runs, restarts once, when the run has ended (the steps behind this one run first)`,
				`jobs/a.yaml:4:56: warning: pullet-agent.service is stopped when the run has ended, and does not pull again (another unit has to pull on the host, such as pullet.timer)`}},
		{"commands that stop pullet", map[string]string{"base/jobs.yaml": oneJob,
			"jobs/a.yaml": "steps:\n- {name: a, action: cmd.run, parameters: {cmd: systemctl daemon-reload && systemctl restart pullet-agent}}\n" +
				"- {name: b, action: cmd.run, parameters: {cmd: [systemctl, stop, pullet.service]}}\n" +
				"- {name: c, action: cmd.run, parameters: {cmd: service pullet-agent restart}}\n" +
				"- {name: d, action: cmd.run, parameters: {cmd: systemctl restart pullet-exporter; systemctl status pullet-agent}}\n"},
			[]string{`jobs/a.yaml:2:48: warning: the command stops pullet-agent.service, which runs it: what stands behind it in the command does not run (use service.ensure with watch, or with state: restarted: it leaves the restart for the end of the run)`,
				`jobs/a.yaml:3:48: warning: the command stops pullet.service, which`, `jobs/a.yaml:4:48: warning: the command stops pullet-agent.service, which`}},
		{"unused files", map[string]string{"base/jobs.yaml": oneJob, "jobs/a.yaml": "steps: []\n", "jobs/b.yaml": "steps: []\n", "vars/x.yaml": "metadata: {name: x}\n", "macros/m.yaml": "{}\n", "files/web/x": "x", "files/.keep": ""},
			[]string{"files/web/x: warning: nothing refers to this file", "jobs/b.yaml: warning: nothing", "macros/m.yaml: warning: nothing", "vars/x.yaml: warning: nothing refers to this file (remove it, or name it in base/vars.yaml)"}},
		{"used files", map[string]string{
			"base/jobs.yaml": "jobs: {'*': [{name: a}]}\n", "jobs/a.yaml": "include: [b]\nsteps:\n- {name: s, action: file.managed, parameters: {name: /etc/x, source: web/x}}\n- {name: t, action: file.managed, parameters: {name: /etc/y, source: 'y/{{ server.os }}.conf'}}\n",
			"jobs/b.yaml": "steps: []\n", "files/web/x": "x", "files/y/rhel.conf": "",
			"base/vars.yaml": "files:\n  '*':\n  - {name: net, paths: ['net/{{ server.os }}.yaml', net/default.yaml]}\n", "vars/net/debian.yaml": "{}\n", "vars/net/rhel.yaml": "{}\n", "vars/net/default.yaml": "{}\n"}, nil},
		{"variables that templates take by other means", map[string]string{"base/jobs.yaml": oneJob, "jobs/a.yaml": oneStep("cmd: '{{ range $k, $v := vars }}{{ $k }}{{ end }}'", ""), "base/vars.yaml": vars, "vars/v.yaml": "unseen: 1\n"}, nil},
		{"variables that are used", map[string]string{"base/jobs.yaml": oneJob, "jobs/a.yaml": oneStep("cmd: '{{ vars.a }}{{ index vars \"b\" }}{{ get vars \"c\" }}'", ""), "base/vars.yaml": vars, "vars/v.yaml": "a: 1\nb: 2\nc: 3\nd: 4\n"},
			[]string{`vars/v.yaml:4:1: warning: nothing in the repository mentions the variable "d"`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := linted(t, c.files)
			if len(got) != len(c.want) {
				t.Fatalf("got %d findings, want %d:\n%s", len(got), len(c.want), strings.Join(got, "\n"))
			}
			for i, want := range c.want {
				if !strings.HasPrefix(got[i], want) {
					t.Errorf("got  %s\nwant %s", got[i], want)
				}
			}
		})
	}
}

// TestCapitals: a fact that is in lower case is never what has capitals.
func TestCapitals(t *testing.T) {
	for when, want := range map[string]string{
		"server.os == 'Debian'":                             `jobs/a.yaml:5:48: warning: expression: the fact "os" is never "Debian" (its values are in lower case: write 'debian')`,
		"'Debian' != server['os']":                          `jobs/a.yaml:5:35: warning: expression: the fact "os" is never "Debian" (its values are in lower case: write 'debian')`,
		"server.os in ['debian', 'Ubuntu']":                 `jobs/a.yaml:5:59: warning: expression: the fact "os" is never "Ubuntu" (its values are in lower case: write 'ubuntu')`,
		"server.os == 'debian' and server.fqdn != 'Web1'":   "",
		"upper(server.os) == 'DEBIAN' or vars?.os == 'Web'": "",
		"server.os matches '^[^A-Z]+$'":                     "",
	} {
		files := map[string]string{"base/jobs.yaml": oneJob, "jobs/a.yaml": oneStep("cmd: x", when)}
		var got string
		for _, line := range linted(t, files) {
			first, _, _ := strings.Cut(line, "\n")
			got += first
		}
		if got != want {
			t.Errorf("%s:\n got %s\nwant %s", when, got, want)
		}
	}
}
