package render

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

// TestServicesOfMistakes: a mistake says which services the action reads that failed, however it is written.
func TestServicesOfMistakes(t *testing.T) {
	for _, c := range []struct {
		action string
		want   []string
	}{
		{"{{ (index (services `db`) 0).address }}", []string{"db"}},
		{"{{ $db := services `db` }}\n    # {{ (index $db 0).address }}", []string{"db"}},
		{"{{ $db := services `db` }}{{ $first := index $db 0 }}", []string{"db"}},
		{"{{ with services `db` }}{{ end }}{{ index (services (print `d` `b`)) 0 }}", []string{""}},
		{"{{ range services `db` }}{{ end }}{{ index vars.services 0 }}", nil},
		{"{{ $x := services `db` }}" + strings.Repeat("{{ $x = print $x $x }}", 40) + "{{ index $x.a 0 }}", []string{"db"}},
		{"{{ services `db` | len }}{{ vars.missing }} # services `db`", nil},
	} {
		job := "steps:\n  - name: x\n    # " + c.action + "\n    action: test.succeed\n"
		_, err := repo(map[string]string{"base/jobs.yaml": "jobs: {'*': [{name: a}]}\n", "jobs/a.yaml": job}).Compile(web1)
		var bad *Error
		if !errors.As(err, &bad) || !slices.Equal(bad.Services, c.want) {
			t.Errorf("%s: %q, want %q (%v)", c.action, bad.Services, c.want, err)
		}
	}
}

// TestServicesOfTexts: so does one in the first action of a file template, and one in the text of a macro, wherever
// that is called.
func TestServicesOfTexts(t *testing.T) {
	files := map[string]string{
		"base/jobs.yaml": "jobs: {'*': [{name: a}]}\n", "jobs/a.yaml": "steps: []\n", "base/macros.yaml": "macros: {'*': [{name: m}]}\n",
		"macros/m.yaml": "db: {template.expression: [{content: '{{ (index (services `db`) 0).address }}'}]}\n" +
			"of: {template.expression: [{content: '{{ macro `db` }}'}]}\n",
	}
	wants := func(from string, err error) {
		t.Helper()
		var bad *Error
		if !errors.As(err, &bad) || !slices.Equal(bad.Services, []string{"db"}) {
			t.Errorf("%s: %+v", from, err)
		}
	}
	cat, err := repo(files).Compile(web1)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"{{ (index (services `db`) 0).address }}", "{{ macro `db` }}", "{{ macro `of` }}"} {
		_, err := cat.Template(nil, "files/t", text, nil, nil)
		wants(text, err)
	}
	for _, step := range []string{
		"{name: s, action: test.echo, parameters: {text: '{{ macro `of` }}'}}",
		"{name: s, forEach: \"[macros['of']]\", action: test.echo, parameters: {text: x}}",
	} {
		files["jobs/a.yaml"] = "steps: [" + step + "]\n"
		_, err := repo(files).Compile(web1)
		wants(step, err)
	}
}

// TestLackingVariable: a variable that cannot be made yet is one mistake, not one more at each use.
func TestLackingVariable(t *testing.T) {
	_, err := repo(map[string]string{
		"base/vars.yaml": "files: {'*': [{name: v}]}\n", "vars/v.yaml": "db: {{ (index (services `db`) 0).address }}\n",
		"base/jobs.yaml": "jobs: {'*': [{name: a}]}\n",
		"jobs/a.yaml":    "steps: [{name: s, action: test.echo, parameters: {text: '{{ vars.db }} {{ vars.none }}'}}]\n",
	}).Compile(web1)
	var list ErrorList
	if !errors.As(err, &list) || len(list) != 2 || list[0].Pos.File != "jobs/a.yaml" || !slices.Equal(list[1].Services, []string{"db"}) {
		t.Errorf("%v", err)
	}
}

// TestMissingInABlock: what stands in a block that cannot be made is not said to be missing.
func TestMissingInABlock(t *testing.T) {
	job := "steps:\n- name: x\n  action: test.succeed\n  conditions:\n    when:\n      {{ if vars.nothing }}\n      condition: 'true'\n      {{ end }}\n"
	_, err := repo(map[string]string{"base/jobs.yaml": "jobs: {'*': [{name: a}]}\n", "jobs/a.yaml": job}).Compile(web1)
	if err == nil || strings.Contains(err.Error(), "is missing") || !strings.Contains(err.Error(), "nothing") {
		t.Errorf("%v", err)
	}
}
