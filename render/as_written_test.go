package render

import (
	"strings"
	"testing"
)

// TestGateNames: a gate is found by its name on every node, so no template may write or choose any of it, however the
// name is written.
func TestGateNames(t *testing.T) {
	for _, c := range []struct {
		step string
		ok   bool
	}{
		{"name: meet all", true},
		{"name: 'it''s, here'", true},
		{`name: "meet \"here\""`, true},
		{"name: meet\n      all", true},
		{"name: >-\n      meet\n      all", true},
		{"name: &here meet", true},
		{"name: meet # {{ server.name }}", true},
		{"name: " + strings.Repeat("long ", 40), true},
		{"forEach: [a, b]\n    name: meet", true},
		{"name: ${x}", true},
		{"{{ if true }}name: meet{{ end }}", true},

		{"name: meet {{ server.name }}", false},
		{"name: 'x, {{ server.name }}'", false},
		{`name: "x, {{ server.name }}"`, false},
		{`name: "x \"{{ server.name }}\""`, false},
		{"name: " + strings.Repeat("long ", 40) + "{{ server.name }}", false},
		{"name: >-\n      meet\n      {{ server.name }}", false},
		{"name: meet\n      {{ server.name }}", false},
		{"name: &here {{ server.name }}", false},
		{"name:\n      {{ server.name }}", false},
		{"name: {{ if eq server.name `web1` }}one{{ else }}two{{ end }}", false},
		{"name: x{{ if eq server.name `web1` }}1{{ end }}", false},
		{"name: x{{ if false }}y{{ end }}[{{ len server.name }}]", false},
		{"forEach: [a, b]\n    name: x, {{ item }}", false},
		{"forEach: [a, b]\n    name: 'x, {{ server.name }}'", false},
	} {
		job := "steps:\n  - " + c.step + "\n    action: test.succeed\n    runOptions: {sync: true}\n"
		_, err := repo(map[string]string{"base/jobs.yaml": "jobs: {'*': [{name: a}]}\n", "jobs/a.yaml": job}).Compile(web1)
		switch {
		case c.ok && err != nil:
			t.Errorf("%s: %v", c.step, err)
		case !c.ok && (err == nil || !strings.Contains(err.Error(), "has a name without template actions")):
			t.Errorf("%s: %v", c.step, err)
		}
	}
}
