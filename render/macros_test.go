package render

import (
	"errors"
	"strings"
	"testing"
)

// TestMacrosRoot: {{ index macros "name" }} is {{ macro "name" }}, also where it has to wait for a command, and in its
// mistakes.
func TestMacrosRoot(t *testing.T) {
	files := func(value string) map[string]string {
		return map[string]string{
			"base/macros.yaml": "macros:\n  '*': [{name: m}]\n",
			"macros/m.yaml": "fleet: {template.expression: [{content: '{{ server.name }}s'}]}\nload: {action: cmd.run, parameters: {cmd: load}}\n" +
				"both: {template.expression: [{content: '{{ index macros `fleet` }} {{ index macros `load` }}'}]}\n" +
				"greet: {template.expression: [{content: 'hi {{ .who }}'}], params: [who]}\n",
			"base/jobs.yaml": "jobs: {'*': [{name: a}]}\n",
			"jobs/a.yaml":    "steps:\n- name: s\n  action: x\n  parameters:\n    value: '" + value + "'\n",
		}
	}
	run := func(m *Macro) (string, error) { return "12", nil }
	for _, c := range []struct {
		value, want string
		waits       bool
	}{
		{`{{ index macros "fleet" }}`, "web1s", false}, {`{{ index (macros) "fleet" | upper }}`, "WEB1S", false},
		{`{{ $m := index macros "fleet" }}{{ $m }}`, "web1s", false}, {`{{ if eq (index macros "fleet") "web1s" }}yes{{ end }}`, "yes", false},
		{`{{ index macros "load" }}`, "12", true}, {`{{ index macros "both" }}`, "web1s 12", true}, {`a {{ add 1 (index macros "load") }}`, "a 13", true},
	} {
		cat, err := repo(files(c.value)).Compile(web1)
		if err != nil {
			t.Errorf("%s: %v", c.value, err)
			continue
		}
		step := cat.Jobs[0].Steps[0]
		params, err := cat.Fill(step, nil, run)
		if got := params.Text("value"); err != nil || got != c.want || step.Waits() != c.waits {
			t.Errorf("%s: got %q, waits %v, %v; want %q, %v", c.value, got, step.Waits(), err, c.want, c.waits)
		}
	}
	for value, want := range map[string]string{
		`{{ index macros "flet" }}`:                      `jobs/a.yaml:5:16: index macros "flet": there is no macro "flet" (did you mean "fleet"?)`,
		`{{ index macros "greet" }}`:                     `jobs/a.yaml:5:16: macro "greet" takes the arguments who, got 0`,
		`{{ if index macros "load" }}x{{ end }}`:         `macro "load" reads this host (cmd.run), and what it returns is not known when the catalog is compiled`,
		`{{ $x := index macros "load" }}{{ $x }}`:        `macro "load" reads this host`,
		`{{ macro "flet" }}{{/* the same, by name */}}`:  `jobs/a.yaml:5:16: there is no macro "flet" (did you mean "fleet"?)`,
		`{{ index macros "fleet" "x" }}{{/* no map */}}`: `there is no element x among 5`,
	} {
		_, err := repo(files(value)).Compile(web1)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s:\ngot  %v\nwant %s", value, err, want)
		}
	}
}

// TestShortMacro: the short form of a macro has its params before the action or behind it, and they mean the same.
func TestShortMacro(t *testing.T) {
	for _, macro := range []string{
		"greet:\n  template.expression: [{content: 'hi {{ .who }}'}]\n  params: [who]\n",
		"greet:\n  params: [who]\n  template.expression: [{content: 'hi {{ .who }}'}]\n",
		"greet: {params: who, template.expression: {content: 'hi {{ .who }}'}}\n",
	} {
		cat, err := repo(map[string]string{
			"base/macros.yaml": "macros:\n  '*': [{name: m}]\n", "macros/m.yaml": macro,
			"base/jobs.yaml": "jobs: {'*': [{name: a}]}\n",
			"jobs/a.yaml":    "steps:\n- name: s\n  action: x\n  parameters: {value: '{{ macro \"greet\" \"ada\" }}'}\n",
		}).Compile(web1)
		if err != nil {
			t.Errorf("%s%v", macro, err)
			continue
		}
		if params, err := cat.Fill(cat.Jobs[0].Steps[0], nil, nil); err != nil || params.Text("value") != "hi ada" {
			t.Errorf("%s%q %v", macro, params.Text("value"), err)
		}
	}
	_, err := repo(map[string]string{
		"base/macros.yaml": "macros:\n  '*': [{name: m}]\n", "macros/m.yaml": "greet:\n  params: [who]\n  cmd.run: [{cmd: x}]\n  cmd.script: [{source: x}]\n",
		"base/jobs.yaml": "jobs: {}\n",
	}).Compile(web1)
	if want := `macros/m.yaml:4:3: greet: unknown field "cmd.script"`; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
}

// TestMacroCycle: macros that call each other are refused when they are read, wherever the call stands.
func TestMacroCycle(t *testing.T) {
	for macros, want := range map[string]string{
		"a: {template.expression: [{content: '{{ macro \"b\" }}'}]}\nb: {template.expression: [{content: '{{ macro `a` }}'}]}\n": "a -> b -> a",
		"a: {cmd.run: {cmd: ['echo', '{{ macro `b` }}']}}\nb: {file.content: {name: '/{{ macro `a` }}'}}\n":                      "a -> b -> a",
		"a: {cmd.run: {cmd: env, env: {A: '{{ macro `a` }}'}}}\n":                                                                "a -> a",
	} {
		_, err := repo(map[string]string{"base/macros.yaml": "macros: {'*': [{name: m}]}\n", "macros/m.yaml": macros}).Compile(web1)
		if err == nil || !strings.Contains(err.Error(), `macros/m.yaml:1:1: macro "a" calls itself: `+want) {
			t.Errorf("%s: %v", macros, err)
		}
	}
}

// TestBrokenMacros: a macro that cannot be parsed stops the version, whoever calls it.
func TestBrokenMacros(t *testing.T) {
	for _, c := range []struct{ name, macro, when, want string }{
		{"nothing calls it", "template.expression: [{content: '{{ if }}'}]", "", "macros/m.yaml:2:35: macro \"m\": missing value for if"},
		{"a condition calls it", "template.expression: [{content: '{{ if }}'}]", "macros['m'] > 0", "missing value for if"},
		{"it asks for the fleet", "template.expression: [{content: '{{ macros[`servers_get_by_label`](`x=`) | length }}'}]", "macros['m'] > 0", "bad character"},
		{"a dead branch calls it", "template.expression: [{content: '{{ nosuch }}'}]", "false && macros['m'] > 0", "no function"},
		{"a parameter of a command", "action: cmd.run\n  parameters: {cmd: 'echo {{ .a'}", "", "macros/m.yaml:3:21: macro \"m\": unclosed action"},
		{"a list of a command", "action: cmd.run\n  parameters: {cmd: [echo, '{{ end }}']}", "", "macros/m.yaml:3:28: macro \"m\": unexpected {{end}}"},
		{"no text", "template.expression: [{contnet: x}]", "", "\"content\" is missing"},
	} {
		t.Run(c.name, func(t *testing.T) {
			job := "steps:\n- name: s\n  action: x\n"
			if c.when != "" {
				job += "  conditions: {when: {condition: \"" + c.when + "\"}}\n"
			}
			_, err := repo(map[string]string{
				"base/macros.yaml": "macros:\n  '*': [{name: m}]\n", "macros/m.yaml": "m:\n  " + c.macro + "\n",
				"base/jobs.yaml": "jobs: {'*': [{name: a}]}\n", "jobs/a.yaml": job,
			}).Compile(web1)
			var list ErrorList
			if !errors.As(err, &list) || len(list) != 1 || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want one mistake: %s", err, c.want)
			}
		})
	}
}
