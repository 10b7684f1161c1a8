package render

import (
	"slices"
	"strings"
	"testing"
)

// itemJob is a repository whose job makes a step of x.y for each user.
func itemJob(steps string) map[string]string {
	return map[string]string{
		"base/vars.yaml": "files:\n  '*': [{name: v}]\n",
		"vars/v.yaml": "users:\n  ada: {uid: 7, groups: [adm, sudo], rules: ['ALL=(root) ALL', 'x: {{ \"{{ y }}\" }}'], note: \"two\\n    lines\"}\n" +
			"  bob: {}\n  eve: {gone: true}\nnone: []\n",
		"base/jobs.yaml": "jobs:\n  '*': [{name: a}]\n", "jobs/a.yaml": steps,
		"files/hello": "{{ item.key }}:{{ range dig \"groups\" list item.value }} {{ . }}{{ end }}\n",
	}
}

// TestItemValues: what an item says stands in a parameter as if it had been written there: a list, nothing at all, or
// text in quotes.
func TestItemValues(t *testing.T) {
	cat := compile(t, itemJob(`
{{ $shell := "/bin/sh" }}
steps:
- name: user
  forEach: vars.users
  action: x.y
  parameters:
    name: '{{ item.key }}'
    uid: {{ get item.value "uid" }}
    groups: {{ dig "groups" list item.value | toJson }}
    quoted: '{{ dig "groups" list item.value | toJson }}'
    shell: '{{ if hasKey item.value "uid" }}{{ $shell }}{{ else if eq item.key "bob" }}none{{ end }}'
    content: |
      # {{ item.key }}
      {{- range $i, $rule := dig "rules" list item.value }}
      {{ $i }} {{ item.key }} {{ $rule }}
        deeper
      {{- end }}
      {{ with get item.value "note" }}{{ . }}{{ end }}
`))
	first, second := cat.Jobs[0].Steps[0].Params.Value(), cat.Jobs[0].Steps[1].Params.Value()
	for name, want := range map[string]any{
		"uid": "7", "quoted": `["adm","sudo"]`, "shell": "/bin/sh",
		"content": "# ada\n0 ada ALL=(root) ALL\n  deeper\n1 ada x: {{ y }}\n  deeper\ntwo\n    lines\n",
	} {
		if first[name] != want {
			t.Errorf("%s: got %q, want %q", name, first[name], want)
		}
	}
	if groups, ok := first["groups"].([]any); !ok || len(groups) != 2 || groups[1] != "sudo" {
		t.Errorf("groups: %v", first["groups"])
	}
	if second["uid"] != nil || second["shell"] != "none" || second["content"] != "# bob\n\n" {
		t.Errorf("the second user: %v", second)
	}
}

// TestItemBlockWaits: a block that decides by the item can hold what a step returns.
func TestItemBlockWaits(t *testing.T) {
	cat := compile(t, itemJob(`
steps:
- {name: first, action: x.y}
- name: user
  forEach: vars.users
  action: x.y
  parameters:
    content: |
      {{ if eq item.key "ada" }}
      {{ (step "first").StdOut }} for {{ item.key }}
      {{ end -}}
      end
`))
	for i, want := range []string{"\n[out]\n for ada\nend\n", "end\n"} {
		params, err := cat.Fill(cat.Jobs[0].Steps[i+1], func(string) (StepResult, bool) { return StepResult{StdOut: "[out]\n"}, true }, nil)
		if got := params.Text("content"); err != nil || got != want {
			t.Errorf("got %q, %v, want %q", got, err, want)
		}
	}
}

// TestItemElsewhere: conditions and file templates of a step with forEach know its item; a filter leaves out items.
func TestItemElsewhere(t *testing.T) {
	cat := compile(t, itemJob(`
steps:
- name: user
  forEach: filter(entries(vars.users), not (#.value.gone ?? false))
  action: x.y
  conditions: {when: {condition: "item.key == 'ada' and 'sudo' in item.value.groups"}}
`))
	if len(cat.Jobs[0].Steps) != 2 {
		t.Fatalf("%d steps, want 2", len(cat.Jobs[0].Steps))
	}
	for i, s := range cat.Jobs[0].Steps {
		yes, err := cat.Eval(s.Conditions.When.Expression, Judged{})
		if err != nil || yes != (i == 0) {
			t.Errorf("%s: when is %t, %v", s.Name, yes, err)
		}
		text, err := cat.File("hello")
		if err != nil {
			t.Fatal(err)
		}
		got, err := cat.Template(s, "hello", string(text), nil, nil)
		if want := []string{"ada: adm sudo\n", "bob:\n"}[i]; err != nil || string(got) != want {
			t.Errorf("%s: got %q, %v, want %q", s.Name, got, err, want)
		}
	}
}

// TestIdle: a step with forEach without items is none, and what refers to it waits for nothing; what nobody has is a
// mistake elsewhere.
func TestIdle(t *testing.T) {
	cat := compile(t, itemJob("steps:\n- {name: nobody, forEach: vars.none, action: x.y}\n- {name: last, action: x.y, require: [nobody]}\n"))
	for name, want := range map[string]bool{"nobody": true, "a/nobody": true, "last": false, "somebody": false} {
		if cat.NoItems(name, "a") != want {
			t.Errorf("Idle(%q) is %t", name, !want)
		}
	}
}

// TestItemMistakes: where there is no item, and what its blocks cannot hold.
func TestItemMistakes(t *testing.T) {
	for text, want := range map[string]string{
		"- {name: b, forEach: vars.missing, action: x}":                                                     "jobs/a.yaml:2:22: forEach: vars.missing gives nothing: is there such a variable? For a list that need not be there write: vars.missing ?? []",
		"- {name: b, forEach: '1 + 1', action: x}":                                                          "jobs/a.yaml:2:22: forEach: expected a list or an expression that gives one, found a number",
		"- {name: b, action: x, conditions: {when: {condition: item.x}}}":                                   "jobs/a.yaml:2:55: item is known only in a step with forEach",
		"- {name: b, action: x, parameters: {cmd: '{{ if item.x }}a{{ end }}'}}":                            "jobs/a.yaml:2:49: item.x: item is known only in a step with forEach",
		"- {name: b, forEach: [p], action: x, parameters: {cmd: '{{ $x := item }}{{ $x }}'}}":               "item is known only",
		"- name: b\n  forEach: [p]\n  action: x\n  parameters:\n    {{ if item }}\n    a: b\n    {{ end }}": "jobs/a.yaml:6:5",
	} {
		_, err := repo(itemJob("steps:\n" + text + "\n")).Compile(web1)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\ngot  %v\nwant %s", text, err, want)
		}
	}
}

// TestSameOrder: what takes a map apart does it in the order of its keys, always; a catalog does not depend on the
// clock.
func TestSameOrder(t *testing.T) {
	vars := "m: {"
	for _, key := range strings.Split("q w e r t y u i o p a s d f g h j k l", " ") {
		vars += key + ": " + key + key + ", "
	}
	files := map[string]string{
		"base/vars.yaml": "files:\n  '*': [{name: v}]\n", "vars/v.yaml": vars + "}\n", "base/jobs.yaml": "jobs:\n  '*': [{name: a}]\n",
		"jobs/a.yaml": "steps: []\n",
	}
	cat := compile(t, files)
	for text, want := range map[string]string{
		"join(keys(vars.m), '')": "adefghijklopqrstuwy", "values(vars.m)[0]": "aa", "toPairs(vars.m)[1][1]": "dd", "entries(vars.m)[2].key": "e",
		"map(filter(entries(vars.m), .value > 'w'), .key)[0]": "w",
	} {
		for range 10 {
			if got, err := cat.Value(text); err != nil || got != want {
				t.Fatalf("%s: got %v, %v, want %s", text, got, err, want)
			}
		}
	}
	if _, err := cat.Value("now()"); err == nil || !strings.Contains(err.Error(), "unknown name now") {
		t.Errorf("now(): %v", err)
	}
}

// TestMacroArguments: the arguments of a macro reach its command.
func TestMacroArguments(t *testing.T) {
	cat := compile(t, map[string]string{
		"base/jobs.yaml": "jobs:\n  '*': [{name: a}]\n", "jobs/a.yaml": "steps: []\n", "base/macros.yaml": "macros:\n  '*': [{name: m}]\n",
		"macros/m.yaml": "has:\n  action: cmd.run\n  parameters: {cmd: 'test -e {{ .unit }} # {{ server.name }}', timeout: 3s}\n  params: [unit]\n",
	})
	var ran []string
	run := func(m *Macro) (string, error) {
		ran = append(ran, m.Params.Text("cmd")+" "+m.Params.Text("timeout"))
		return "true", nil
	}
	out, err := cat.Template(nil, "f", `{{ macro "has" "a" }} {{ macro "has" "b" }}`, nil, run)
	if want := []string{"test -e a # web1 3s", "test -e b # web1 3s"}; err != nil || string(out) != "true true" || !slices.Equal(ran, want) {
		t.Errorf("got %q, %v, ran %q", out, err, ran)
	}
}
