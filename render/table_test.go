package render

import (
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
)

func TestTargets(t *testing.T) {
	labels := map[string]string{"role": "web", "env": "prod", "empty": ""}
	for text, want := range map[string]bool{
		"*": true, "web*": true, "web1": true, "db*": false, "web?": true, "web[12]": true, "web": false, "role": true, "nope": false,
		"role=web": true, "role=w*": true, "role=db": false, "role==web": true, "role!=db": true, "role!=web": false, "nope!=x": true,
		"nope=*": false, "!nope": true, "!role": false, "empty=": true, "role=": false, "role=web,env=prod": true, "role=web,env=dev": false,
		" role = web , !nope ": true, "env=prod,web*": true, "r*": false,
	} {
		target, err := ParseTarget(text)
		if err != nil || target.Matches("web1", labels) != want {
			t.Errorf("%q: want %v, %v", text, want, err)
		}
	}
	for text, want := range map[string]string{"": "is empty", "a,": "is empty", "=x": "is empty", "!": "is empty", "[": "is not a pattern", "role=[": "is not a pattern"} {
		if _, err := ParseTarget(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

func TestMerge(t *testing.T) {
	type m = map[string]any
	for _, c := range []struct{ base, over, want m }{
		{m{}, m{}, m{}}, {nil, m{"a": 1}, m{"a": 1}}, {m{"a": 1}, m{"a": 2}, m{"a": 2}},
		{m{"a": m{"x": 1, "y": 2}}, m{"a": m{"y": 3, "z": 4}}, m{"a": m{"x": 1, "y": 3, "z": 4}}},
		{m{"a": []any{1, 2}}, m{"a": []any{3}}, m{"a": []any{3}}}, {m{"a": m{"x": 1}}, m{"a": 2}, m{"a": 2}},
		{m{"a": 2}, m{"a": m{"x": 1}}, m{"a": m{"x": 1}}}, {m{"a": m{"x": 1}}, m{"a": nil}, m{"a": nil}},
		{m{"a": m{"b": m{"c": 1}}}, m{"a": m{"b": m{"d": 2}}}, m{"a": m{"b": m{"c": 1, "d": 2}}}},
	} {
		before := fmt.Sprint(c.base, c.over)
		if got := merge(c.base, c.over); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%v over %v: %v, want %v", c.over, c.base, got, c.want)
		}
		if fmt.Sprint(c.base, c.over) != before {
			t.Errorf("an argument was changed: %s", before)
		}
	}
}

func TestLimits(t *testing.T) {
	for _, c := range []struct {
		rules, role string
		roster      int
		want        int
	}{
		{"{}", "web", 10, 1}, {"{global: 3}", "web", 10, 3}, {"{global: 3, roles: {web: 2}}", "web", 10, 2}, {"{roles: {web: 2}}", "db", 10, 1},
		{"{global: 0}", "web", 10, 0}, {"{roles: {web: 0}}", "web", 10, 0}, {"{global: 25%}", "web", 10, 2}, {"{global: 25%}", "web", 3, 1},
		{"{global: 25%}", "web", 0, 1}, {"{global: 100%}", "web", 7, 7}, {"{global: 1%}", "web", 199, 1}, {"{global: 33%}", "web", 100, 33},
	} {
		cat := compile(t, map[string]string{"pullet.yaml": "rollout: {rollingRules: " + c.rules + "}\n"})
		if got := cat.Fleet.Rollout.LimitFor(c.role, c.roster); got != c.want {
			t.Errorf("%s of %d %s: %d, want %d", c.rules, c.roster, c.role, got, c.want)
		}
	}
	for _, bad := range []string{"-1", "0%", "101%", "many", "1.5", "'%'", "''", "[1]", "99999999"} {
		_, err := repo(map[string]string{"pullet.yaml": "rollout: {rollingRules: {global: " + bad + "}}\n"}).Compile(web1)
		if err == nil || !strings.Contains(err.Error(), "pullet.yaml:1:34: ") || !strings.Contains(err.Error(), "is not a limit") {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

// manyFiles is a repository that walks through maps in every part.
func manyFiles() map[string]string {
	files := map[string]string{
		"base/vars.yaml": "files: {'*': [{name: a}]}\n", "vars/a.yaml": "users: {a: 1, b: 2, c: 3, d: 4, e: 5}\n",
		"base/macros.yaml": "macros: {'*': [{name: m}]}\n", "macros/m.yaml": "one: {template.expression: [{content: '{{ vars.users | toJson }}'}]}\n",
	}
	base := ""
	for i := range 8 {
		name := fmt.Sprint("j", i)
		base += "  - {name: " + name + "}\n"
		files["jobs/"+name+".yaml"] = "steps:\n{{- range $k, $v := vars.users }}\n- {name: {{ $k }}, action: x, parameters: {z: {{ $v }}, y: '{{ macro \"one\" }}', x: {q: 1, p: 2}}}\n{{- end }}\n"
	}
	files["base/jobs.yaml"] = "jobs:\n  '*':\n" + base
	return files
}

// shown is a catalog as text: what the digest stands for.
func shown(c *Catalog) string {
	out := c.Digest
	for _, j := range c.Jobs {
		for _, s := range j.Steps {
			out += fmt.Sprint("\n", s.ID(), s.Action, s.Pos, s.Params.Value())
		}
	}
	return out
}

// TestDigestIsStable: the same input gives the same catalog and digest, however often; another one does not.
func TestDigestIsStable(t *testing.T) {
	want := shown(compile(t, manyFiles()))
	for range 50 {
		if got := shown(compile(t, manyFiles())); got != want {
			t.Fatalf("got  %s\nwant %s", got, want)
		}
	}
	files := manyFiles()
	files["vars/a.yaml"] = strings.Replace(files["vars/a.yaml"], "5", "6", 1)
	if got := compile(t, files).Digest; strings.HasPrefix(want, got) {
		t.Error("another variable, the same digest")
	}
}

// TestCompileAtOnce: one repository serves many catalogs at a time, each for its own node.
func TestCompileAtOnce(t *testing.T) {
	r := repo(map[string]string{
		"base/jobs.yaml": "jobs: {'*': [{name: a}]}\n", "files/f": "{{ server.name }}",
		"jobs/a.yaml": "steps:\n- {name: '{{ server.name }}', action: x, conditions: {when: {condition: \"server.name == 'n1'\"}}}\n",
	})
	var wait sync.WaitGroup
	for i := range 8 {
		wait.Go(func() {
			name := fmt.Sprint("n", i)
			for range 20 {
				cat, err := r.Compile(Input{Node: Node{Name: name}})
				if err != nil {
					t.Error(err)
					return
				}
				step := cat.Jobs[0].Steps[0]
				yes, err := cat.Eval(step.Conditions.When.Expression, Judged{})
				text, bad := cat.Template(nil, "f", "{{ server.name }}", nil, nil)
				if step.Name != name || yes != (i == 1) || string(text) != name || err != nil || bad != nil {
					t.Errorf("%s: %s %v %s %v %v", name, step.Name, yes, text, err, bad)
				}
			}
		})
	}
	wait.Wait()
}

// TestAliases: aliases are followed, but neither into themselves nor beyond all measure.
func TestAliases(t *testing.T) {
	bomb := "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"
	for i := range 9 {
		bomb += fmt.Sprintf("a%d: &a%d [%s*a%d]\n", i+1, i+1, strings.Repeat(fmt.Sprintf("*a%d, ", i), 9), i)
	}
	for name, c := range map[string]struct{ text, want string }{
		"itself": {"x: &a [*a]\n", "vars/a.yaml:1:8: alias *a stands inside"}, "merged into itself": {"x: &a {<<: *a}\n", "alias *a stands inside"},
		"a bomb": {bomb, "more than 200000 values"}, "fair use": {"x: &a {b: 1}\ny: *a\nz: {<<: *a}\n", ""},
	} {
		files := map[string]string{"base/vars.yaml": "files: {'*': [{name: a}]}\n", "vars/a.yaml": c.text}
		_, err := repo(files).Compile(web1)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}
