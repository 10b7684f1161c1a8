package render

import (
	"strings"
	"testing"
)

// fill compiles one job and fills the parameters of its last step with results.
func fill(t *testing.T, files map[string]string, results map[string]StepResult) map[string]any {
	t.Helper()
	files["base/jobs.yaml"] = "jobs:\n  '*': [{name: a}]\n"
	cat, err := repo(files).Compile(web1)
	if err != nil {
		t.Fatalf("compile: %v", err)
	}
	steps := cat.Jobs[len(cat.Jobs)-1].Steps
	last := steps[len(steps)-1]
	params, err := cat.Fill(last, func(name string) (StepResult, bool) { r, ok := results[name]; return r, ok }, nil)
	if err != nil {
		t.Fatalf("fill: %v", err)
	}
	return params.Value()
}

// TestDeferred shows that an action which needs a step's result keeps its place, its dot and its variables, and that
// its value is text.
func TestDeferred(t *testing.T) {
	token := map[string]StepResult{"token": {StdOut: "a: {{ b }} # 'c'", ExitCode: 7, Result: "ok"}}
	first := "steps:\n- {name: token, action: x}\n"
	for name, c := range map[string]struct{ step, want string }{
		"plain scalar":      {"cmd: join --token={{ (step `token`).StdOut }}", "join --token=a: {{ b }} # 'c'"},
		"double quoted":     {"cmd: \"{{ (step `token`).StdOut }}\"", "a: {{ b }} # 'c'"},
		"single quoted":     {"cmd: 'x {{ (index steps \"token\").StdOut }}'", "x a: {{ b }} # 'c'"},
		"block":             {"cmd: |-\n      one\n      {{ (step `token`).StdOut }}", "one\na: {{ b }} # 'c'"},
		"pipeline":          {"cmd: '{{ (step `token`).StdOut | upper | trunc 4 }}'", "A: {"},
		"number":            {"cmd: '{{ (step `token`).ExitCode }}'", "7"},
		"variable and dot":  {"cmd: '{{ range $i, $v := list `p` `q` }}{{ $v }}{{ . }}{{ $i }}-{{ (step `token`).ExitCode }}{{ $v }}{{ . }};{{ end }}'", "pp0-7pp;qq1-7qq;"},
		"field of variable": {"cmd: '{{ $m := dict `k` `w` }}{{ printf `%s%d` $m.k (step `token`).ExitCode }}'", "w7"},
		"no step's name":    {"cmd: '{{ default steps `nosuch` }}'", "nosuch"},
		"beside a variable": {"cmd: '{{ vars.braces }} {{ (step `token`).ExitCode }}'", "{{ not rendered }} 7"},
	} {
		t.Run(name, func(t *testing.T) {
			got := fill(t, map[string]string{
				"base/vars.yaml": "files:\n  '*': [{name: v}]\n", "vars/v.yaml": "braces: '{{ `{{ not rendered }}` }}'\n",
				"jobs/a.yaml": first + "- name: join\n  action: x\n  parameters:\n    " + c.step + "\n",
			}, token)
			if got["cmd"] != c.want {
				t.Errorf("got %q, want %q", got["cmd"], c.want)
			}
		})
	}
}

// TestDeferredFails: an action that fails when its step runs is named with its place and what is wrong, without the
// words of the template engine.
func TestDeferredFails(t *testing.T) {
	for action, want := range map[string]string{
		"index (list 1) (step `token`).ExitCode": "there is no element 7 among 1",
		"len (index steps)":                      "render.stepsRoot has no length",
	} {
		cat := compile(t, map[string]string{
			"base/jobs.yaml": "jobs:\n  '*': [{name: a}]\n",
			"jobs/a.yaml":    "steps:\n- {name: token, action: x}\n- {name: join, action: x, parameters: {cmd: '{{ " + action + " }}'}}\n",
		})
		_, err := cat.Fill(cat.Jobs[0].Steps[1], func(string) (StepResult, bool) { return StepResult{ExitCode: 7}, true }, nil)
		if want = "jobs/a.yaml:3:49: " + action + ": " + want; err == nil || err.Error() != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
}

// TestDeferredMistakes shows where a value that is not known yet cannot stand.
func TestDeferredMistakes(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"if":             {"- name: b\n  action: x\n{{ if (step `a`).Changed }}{{ end }}", "so nothing can depend on it here (use conditions.when"},
		"name":           {"- name: '{{ (step `a`).StdOut }}'\n  action: x\n", "jobs/a.yaml:3:13: (step `a`).StdOut: this is not known"},
		"action":         {"- name: b\n  action: '{{ (step `a`).StdOut }}'\n", "jobs/a.yaml:4:15: (step `a`).StdOut: this is not known"},
		"requisite":      {"- name: b\n  action: x\n  parameters: {require: ['{{ (step `a`).StdOut }}']}\n", "this is not known before its step has run"},
		"run options":    {"- name: b\n  action: x\n  runOptions: {timeout: '{{ (step `a`).StdOut }}'}\n", "this is not known before its step has run"},
		"key":            {"- name: b\n  action: x\n  parameters: {'{{ (step `a`).StdOut }}': 1}\n", "this is not known before its step has run"},
		"unknown step":   {"- name: b\n  action: x\n  parameters: {cmd: '{{ (step `aa`).StdOut }}'}\n", `jobs/a.yaml:5:25: there is no step "aa": did you mean "a"?`},
		"assignment":     {"- name: b\n  action: x\n  parameters: {cmd: '{{ $x := step `a` }}{{ $x.StdOut }}'}\n", "so nothing can depend on it here"},
		"item elsewhere": {"- name: b\n  action: x\n  parameters: {cmd: '{{ item.x }}'}\n", "item is known only in a step with forEach"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := repo(map[string]string{"base/jobs.yaml": "jobs:\n  '*': [{name: a}]\n", "jobs/a.yaml": "steps:\n- {name: a, action: x}\n" + c.text}).Compile(web1)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
		})
	}
}

// TestForEach expands steps over a literal list, a variable and a map, with macros and results of steps.
func TestForEach(t *testing.T) {
	cat := compile(t, map[string]string{
		"base/vars.yaml": "files:\n  '*': [{name: v}]\n", "vars/v.yaml": "users: [{name: ada}, {name: bob}]\nports: {b: 2, a: 1}\n",
		"base/macros.yaml": "macros:\n  '*': [{name: m}]\n", "macros/m.yaml": "shout:\n  template.expression: [{content: '{{ .x | upper }}'}]\n  params: [x]\n",
		"base/jobs.yaml": "jobs:\n  '*': [{name: a}]\n",
		"jobs/a.yaml": `
defaults: {x.y: {mode: 0600}}
steps:
- {name: first, action: x.y}
- name: user
  forEach: vars.users
  action: x.y
  parameters: {name: '/home/{{ item.name }}', content: '{{ macro "shout" item.name }} {{ server.name }} {{ (step "first").StdOut }}'}
  require: ['first']
- name: port
  forEach: vars.ports
  action: x.y
  parameters: {name: '{{ item.key }}{{ item.value }}', mode: 0644}
- {name: literal, forEach: [p, q], action: x.y, parameters: {name: '{{ item }}'}}
`,
	})
	got := ""
	for _, s := range cat.Jobs[0].Steps {
		params, err := cat.Fill(s, func(string) (StepResult, bool) { return StepResult{StdOut: "done"}, true }, nil)
		if err != nil {
			t.Fatal(err)
		}
		got += s.Name + "(" + params.Text("name") + "," + params.Text("mode") + "," + params.Text("content") + ") "
	}
	want := "first(,0600,) user[0](/home/ada,0600,ADA web1 done) user[1](/home/bob,0600,BOB web1 done) " +
		"port[0](a1,0644,) port[1](b2,0644,) literal[0](p,0600,) literal[1](q,0600,) "
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// TestInclude runs a job that another one includes before it, once.
func TestInclude(t *testing.T) {
	cat := compile(t, map[string]string{
		"base/jobs.yaml": "jobs:\n  '*': [{name: a}, {name: c}]\n",
		"jobs/a.yaml":    "include: [b]\nsteps: [{name: s, action: x}]\n",
		"jobs/b.yaml":    "include: [c, a]\nsteps: [{name: s, action: x}]\n",
		"jobs/c.yaml":    "steps: [{name: s, action: x}]\n",
	})
	order := ""
	for _, j := range cat.Jobs {
		order += j.Name
	}
	if order != "cba" {
		t.Errorf("order %q, want cba", order)
	}
}

// TestSourceExpressions: the expressions of the source documents work as they are written there.
func TestSourceExpressions(t *testing.T) {
	in := web1
	in.Node.Labels = map[string]string{"kubernetes-master": "", "role": "kubernetes-master"}
	for text, want := range map[string]bool{
		"steps['start vnstat'].State == 'running'":                 true,
		"macros['cluster_healthy']() == true":                      true,
		"macros['pkg.uptodate']() != true":                         true,
		"'kubernetes-master' in Server.ObjectMetadata.Labels":      true,
		"macros['kubernetes_cluster_master_count'] > 0":            true,
		"Server.Spec.FQDN == 'web1.example.org'":                   true,
		"macros['servers_get_by_label']('role=db') == 'db1'":       true,
		"hasLabel('role=kubernetes-*') && not hasLabel('role=db')": true,
		"vars.count > 3 or macros [ 'cluster_healthy' ] ( )":       true,
		"'macros[\"x\"](' == 'no'":                                 false,
	} {
		t.Run(text, func(t *testing.T) {
			in.View = View{Nodes: map[string]Node{"db1": {Name: "db1", Labels: map[string]string{"role": "db"}}}}
			cat, err := repo(map[string]string{
				"base/macros.yaml": "macros:\n  '*': [{name: m}]\n",
				"macros/m.yaml": "cluster_healthy:\n  action: cmd.run\n  parameters:\n    - cmd: check\n" +
					"pkg.uptodate:\n  action: cmd.run\n  parameters: {cmd: apt}\n" +
					"kubernetes_cluster_master_count:\n  template.expression:\n    - content: |\n        {{ pullet.servers \"role=db\" | len }}\n" +
					"servers_get_by_label:\n  template.expression:\n    - content: '{{ pullet.servers .label | join \" \" }}'\n  params: [label]\n",
				"base/vars.yaml": "files:\n  '*': [{name: v}]\n", "vars/v.yaml": "count: 4\n",
				"base/jobs.yaml": "jobs:\n  '*': [{name: a}]\n",
				"jobs/a.yaml":    "steps:\n- {name: start vnstat, action: x}\n- name: b\n  action: x\n  conditions:\n    when:\n      condition: >-\n        " + text + "\n",
			}).Compile(in)
			if err != nil {
				t.Fatal(err)
			}
			run := func(m *Macro) (string, error) {
				return map[string]string{"check": "true", "apt": "false"}[m.Params.Text("cmd")], nil
			}
			results := func(string) (StepResult, bool) { return StepResult{State: "running"}, true }
			got, err := cat.Eval(cat.Jobs[0].Steps[1].Conditions.When.Expression, Judged{Results: results, Run: run})
			if err != nil || got != want {
				t.Errorf("got %v, %v", got, err)
			}
		})
	}
}
