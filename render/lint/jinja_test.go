package lint_test

import (
	"slices"
	"strings"
	"testing"
)

// TestJinja: statements of Jinja in what is executed as a template are warned of, with what is written here.
func TestJinja(t *testing.T) {
	const managed = "steps:\n- {name: s, action: file.managed, parameters: {name: /etc/x, source: web/x.conf, template: true}}\n"
	const ifHint = "write {{ if eq server.os \"debian\" }} ... {{ end }}"
	for _, c := range []struct {
		name, file, text string
		want             []string
	}{
		{"a file template", "files/web/x.conf", "a\n  {% if debian %}\nb\n{%- endif %}\n", []string{
			"files/web/x.conf:2:3: warning: {% if debian %} is Jinja: templates here are those of Go, and it stays in the text as it is (" + ifHint + ")",
			"files/web/x.conf:4:1: warning: {%- endif %} is Jinja: templates here are those of Go, and it stays in the text as it is (write {{ end }})"}},
		{"two of a kind", "files/web/x.conf", "{% for a in b %}{% for c in d %}\n", []string{"files/web/x.conf:1:1: warning: {% for a in b %} is Jinja"}},
		{"a file that is copied", "files/web/y.conf", "{% if debian %}\n", nil},
		{"the content of a step", "jobs/a.yaml", managed + "- {name: t, action: file.managed, parameters: {name: /etc/y, content: '{% if debian %}x{% endif %}'}}\n", []string{
			"jobs/a.yaml:3:72: warning: {% if debian %} is Jinja", "jobs/a.yaml:3:88: warning: {% endif %} is Jinja"}},
		{"a variable", "vars/v.yaml", "motd: '{% set x = 1 %}'\n", []string{"vars/v.yaml:1:8: warning: {% set x = 1 %} is Jinja: templates here are those of Go, and it stays in the text as it is (write {{ $name := ... }})"}},
		{"a comment", "jobs/a.yaml", "# {% if debian %}\n" + managed, nil},
		{"what is meant", "files/web/x.conf", "{{ `{% if debian %}` }} {{ \"{%\" }} if x %} {%H%} 100{% x\n", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			files := map[string]string{
				"base/jobs.yaml": oneJob, "jobs/a.yaml": managed, "base/vars.yaml": "files: {'*': [{name: v}]}\n", "vars/v.yaml": "motd: hello\n",
				"files/web/x.conf": "plain\n",
			}
			files[c.file] = c.text
			got := slices.DeleteFunc(linted(t, files), func(line string) bool { return !strings.Contains(line, "Jinja") })
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
