package render

import (
	"strings"
	"testing"
	"testing/fstest"
)

// repo makes a repository of one layer from the texts of its files; without base/jobs.yaml it has no jobs.
func repo(files map[string]string) *Repository {
	m := fstest.MapFS{"base/jobs.yaml": {Data: []byte("jobs: {}\n")}}
	for name, text := range files {
		m[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return Open(Layer{Name: "main", FS: m})
}

var web1 = Input{
	Node:  Node{Name: "web1", Labels: map[string]string{"role": "web"}},
	Facts: Facts{"os": "debian", "fqdn": "web1.example.org"},
}

func compile(t *testing.T, files map[string]string) *Catalog {
	t.Helper()
	cat, err := repo(files).Compile(web1)
	if err != nil {
		t.Fatalf("compile: %v", err)
	}
	return cat
}

// TestCompile holds a whole small repository against its catalog.
func TestCompile(t *testing.T) {
	cat := compile(t, map[string]string{
		"pullet.yaml":                        "rollout:\n  rollingRules: {global: 1, roles: {web: 25%}}\n  roleDependencies: {web: canary}\n",
		"nodes/all.yaml":                     "nodes:\n  web1: {labels: {role: web, env: prod}}\n  c1: {labels: {role: canary}}\n",
		"base/vars.yaml":                     "files:\n  '*':\n    - name: common\n    - name: network\n      paths: ['network/{{ server.fqdn }}.yaml', 'network/{{ server.os }}.yaml']\n",
		"vars/common.yaml":                   "motd: hello\nntp: {servers: [a, b], port: 123}\n",
		"vars/network/web1.example.org.yaml": "ntp: {port: 124}\n",
		"vars/network/debian.yaml":           "ntp: {port: 125, extra: true}\n",
		"base/macros.yaml":                   "macros:\n  '*': [{name: fleet}]\n",
		"macros/fleet.yaml":                  "greet:\n  template.expression: [{content: 'hi {{ .who }} of {{ server.name }}'}]\n  params: [who]\n",
		"base/jobs.yaml":                     "jobs:\n  '*': [{name: motd}]\n  'role=web': [{name: motd}]\nvalidations:\n  'role=web': [{name: check}]\n",
		"jobs/motd.yaml": `
steps:
{{- range vars.ntp.servers }}
  - name: motd {{ . }}
    action: file.managed
    parameters:
      - name: /etc/motd.{{ . }}
      - content: '{{ macro "greet" . }}'
      - require: [{file: x}]
{{- end }}
`,
		"jobs/check.yaml": "steps:\n- {name: ok, action: cmd.run, parameters: {cmd: 'true'}, conditions: {when: {condition: \"steps['motd a'].Result == 'ok'\"}}}\n",
	})
	if got := cat.Vars["ntp"].(map[string]any)["port"]; got != 124 {
		t.Errorf("ntp.port = %v, want 124 (earlier paths win)", got)
	}
	if len(cat.Jobs) != 2 || cat.Jobs[1].Name != "check" || !cat.Jobs[1].Validation {
		t.Fatalf("jobs: %+v", cat.Jobs)
	}
	s := cat.Jobs[0].Steps[1]
	if s.Name != "motd b" || s.Params.Text("content") != "hi b of web1" || len(s.Requisites) != 1 {
		t.Errorf("step: %+v", s)
	}
	if s.Pos.Line != 4 {
		t.Errorf("position %v, want line 4 of the template", s.Pos)
	}
	if cat.Node.Labels["env"] != "prod" {
		t.Errorf("labels of the inventory are not used: %v", cat.Node.Labels)
	}
	ok, err := cat.Eval(cat.Jobs[1].Steps[0].Conditions.When.Expression, Judged{Results: func(string) (StepResult, bool) { return StepResult{Result: "ok"}, true }})
	if !ok || err != nil {
		t.Errorf("eval: %v %v", ok, err)
	}
}

// TestMistakes shows each mistake with its place and words.
func TestMistakes(t *testing.T) {
	jobs := "jobs:\n  '*': [{name: a}]\n"
	for _, c := range []struct {
		name, file, text, want string
	}{
		{"bad yaml", "jobs/a.yaml", "steps:\n  - name: x\n   action: y\n", "jobs/a.yaml:3:4: invalid YAML"},
		{"unknown field", "jobs/a.yaml", "steps:\n- name: x\n  acton: cmd.run\n  action: q\n", `jobs/a.yaml:3:3: step: unknown field "acton" (did you mean "action"?)`},
		{"missing variable", "jobs/a.yaml", "steps:\n- name: x\n  action: '{{ vars.nope }}'\n", `jobs/a.yaml:3:15: vars.nope: there is no "nope"`},
		{"missing through index", "jobs/a.yaml", "steps:\n- name: '{{ index vars \"nope\" }}'\n  action: x\n", `jobs/a.yaml:2:13: index vars "nope": `},
		{"template syntax", "jobs/a.yaml", "steps:\n- name: x {{ if }}\n", `jobs/a.yaml:2:11: missing value for if`},
		{"block without an end", "jobs/a.yaml", "steps:\n{{- range until 2 }}\n- name: x{{ . }}\n  {{- if true }}\n  action: y\n{{- end }}\n# that ended the if\n", `jobs/a.yaml:2:1: {{- range until 2 }} has no {{ end }}`},
		{"else without an end", "jobs/a.yaml", "steps: []\n  {{ if true }}{{ else if false }}\n\n\n", `jobs/a.yaml:2:3: {{ if true }} has no {{ end }}`},
		{"unknown function", "jobs/a.yaml", "steps:\n- name: x {{ envv \"A\" }}\n", `jobs/a.yaml:2:14: there is no function "envv"`},
		{"type", "jobs/a.yaml", "steps:\n- name: x\n  action: y\n  runOptions: {timeout: soon}\n", `jobs/a.yaml:4:25: "soon" is not a duration`},
		{"position after a loop", "jobs/a.yaml", "steps:\n{{- range until 3 }}\n- name: n{{ . }}\n  action: x\n  bad: 1\n{{- end }}\n", `jobs/a.yaml:5:3: step: unknown field "bad"`},
		{"duplicate key", "jobs/a.yaml", "steps:\n- name: x\n  name: y\n", `jobs/a.yaml:3:3: key "name" stands here twice: first in line 2`},
		{"expression", "jobs/a.yaml", "steps:\n- name: x\n  action: y\n  conditions: {when: {condition: \"vrs.x\"}}\n", `jobs/a.yaml:4:35: expression: unknown name vrs`},
		{"step in expression", "jobs/a.yaml", "steps:\n- name: xyz\n  action: y\n  conditions: {when: {condition: \"steps['xyy'].Changed\"}}\n", `jobs/a.yaml:4:41: expression: there is no step "xyy": did you mean "xyz"?`},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := repo(map[string]string{"base/jobs.yaml": jobs, c.file: c.text}).Compile(web1)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got  %v\nwant %s", err, c.want)
			} else {
				t.Log(err)
			}
		})
	}
}
