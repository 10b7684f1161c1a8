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
		// What decided on reaching an action counts where the action says that there is too little.
		{"{{ if lt (len (services `db`)) 2 }}{{ fail `two dbs` }}{{ end }}", []string{"db"}},
		{"{{ $n := len (services `db`) }}{{ if vars.x }}{{ else if lt $n 2 }}{{ index (services `web`) 0 }}{{ end }}", []string{"db", "web"}},
		{"{{ if services `db` }}{{ else }}{{ `` | required `a db` }}{{ end }}", []string{"db"}},
		{"{{ if services `db` }}{{ else }}{{ vars.missing }}{{ end }}", nil},
		{"{{ if services `db` }}{{ end }}{{ fail `always` }}", nil},
		{"{{ define `t` }}{{ fail `a db` }}{{ end }}{{ if not (services `db`) }}{{ template `t` }}{{ end }}", []string{"db"}},
	} {
		job := "steps:\n  - name: x\n    # " + c.action + "\n    action: test.succeed\n"
		_, err := repo(map[string]string{"base/jobs.yaml": "jobs: {'*': [{name: a}]}\n", "jobs/a.yaml": job,
			"base/vars.yaml": "files: {'*': [{name: v}]}\n", "vars/v.yaml": "x: false\n"}).Compile(web1)
		var bad *Error
		if !errors.As(err, &bad) || !slices.Equal(bad.Services, c.want) {
			t.Errorf("%s: %q, want %q (%v)", c.action, bad.Services, c.want, err)
		}
	}
}

// TestAwaits: a mistake waits for a service that nobody announced, and for more instances where it says that there are
// too few. One that more instances cannot end waits for none.
func TestAwaits(t *testing.T) {
	away := errors.New("etcd is away")
	for _, c := range []struct {
		text  string
		count int
		err   error
		want  string
	}{
		{"{{ (index (services `db`) 0).node }}", 0, nil, "db"},
		{"{{ (index (services `db`) 2).node }}", 2, nil, "db"},
		{"{{ (index (services `db`) 2).node }}", 2, away, ""},
		{"{{ (index (services `db`) 0).adress }}", 2, nil, ""},
		{"{{ slice (services `db`) 0 4 }}", 2, nil, "db"},
		{"{{ if lt (len (services `db`)) 3 }}{{ fail `three dbs` }}{{ end }}", 2, nil, "db"},
		{"{{ if lt (len (services (print `d` `b`))) 3 }}{{ fail `three dbs` }}{{ end }}", 2, nil, "db"},
		{"{{ fail (print (len (services `db`))) }}", 2, nil, "db"},
		{"{{ fail `always` }}", 0, nil, ""},
	} {
		in := web1
		in.View.Services = map[string][]Service{"db": make([]Service, c.count)}
		cat, err := repo(map[string]string{"base/jobs.yaml": "jobs: {'*': []}\n"}).Compile(in)
		if err != nil {
			t.Fatal(err)
		}
		_, err = cat.Template(nil, "files/t", c.text, nil, nil)
		var bad *Error
		if !errors.As(err, &bad) {
			t.Errorf("%s: %v", c.text, err)
			continue
		}
		name, why := bad.Awaits(func(string) (int, error) { return c.count, c.err }, "db")
		if said := map[int]string{0: "nobody has announced it", 2: "only 2 hosts have announced it"}[c.count]; name != c.want || name != "" && why != said {
			t.Errorf("%s: %q %q, want %q: %v", c.text, name, why, c.want, bad)
		}
		if cat.Hearsay(bad) != strings.Contains(c.text, "services") {
			t.Errorf("%s: whether it rests on what hosts say", c.text)
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
