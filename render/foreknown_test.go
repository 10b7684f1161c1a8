package render

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"
)

// TestForeknownConditions: what of a condition is known before a run is evaluated when the catalog is compiled; what
// only a run knows, and what it does not reach, is not.
func TestForeknownConditions(t *testing.T) {
	for _, c := range []struct{ condition, want string }{
		{"vars.n > 2", ""},
		{"vars.n > '2'", "invalid operation: int > string"},
		{"vars.s > 2", "invalid operation: string > int"},
		{"vars.n", "expected true or false, found a number"},
		{"vars.s", "expected true or false, found a text"},
		{"vars.m", "expected true or false, found a map"},
		{"vars.l", "expected true or false, found a list"},
		{"vars.nosuch", `this host has no variable "nosuch"`},
		{"vars.nosuch.x == 1", `this host has no variable "nosuch"`},
		{"vars.nosuch ?? true", ""},
		{"vars.nosuch == 1", `this host has no variable "nosuch"`},
		{"vars.nn == 3", `this host has no variable "nn"`},
		{"not (vars.nosuch == 1)", `this host has no variable "nosuch"`},
		{"vars.m.b == 1", `this host has no variable "b"`},
		{"vars['m']['b'] == 1", `this host has no variable "b"`},
		{"(vars.m.b ?? 1) == 1", ""},
		{"vars.m?.b == 1", ""},
		{"vars?.nosuch == 1", ""},
		{"vars?.nosuch?.x == 1", ""},
		{"'nosuch' in vars && vars.nosuch == 1", ""},
		{"'nosuch' in vars ? vars.nosuch == 1 : true", ""},
		{"not ('nosuch' in vars) || vars.nosuch == 1", ""},
		{"'b' in vars.m && vars.m.b == 1", ""},
		{"vars.n == 4 && vars.nosuch == 1", ""},
		{"vars.n == 3 && vars.nosuch == 1", `this host has no variable "nosuch"`},
		{"vars.n == 3 || vars.nosuch == 1", ""},
		{"vars.n == 4 ? vars.nosuch == 1 : true", ""},
		{"(vars.n == 4 && vars.nosuch == 1) == false", ""},
		{"(vars.n ?? vars.nosuch) == 3", ""},
		{"(vars.other ?? vars.nosuch) == 3", `this host has no variable "nosuch"`},
		{"steps['first'].Changed && vars.nosuch == 1", `this host has no variable "nosuch"`},
		{"steps['first'].Changed && vars.n == 4 && vars.nosuch == 1", ""},
		{"server.memory > 1024 && vars.nosuch == 1", `this host has no variable "nosuch"`},
		{"any(vars.l, # == vars.nosuch)", `this host has no variable "nosuch"`},
		{"any(vars.none, # == vars.nosuch)", ""},
		{"all(vars.l, # > 0 || vars.n == 4)", ""},
		{"let n = vars.n; n == 4 && vars.n == 4", ""},
		{"let n = vars.nosuch; n == 4", `this host has no variable "nosuch"`},
		{"server.memry > 1024", `this host has no fact "memry"`},
		{"(server.memry ?? 1) > 1024", ""},
		{"server?.memry == nil", ""},
		{"'memry' in server && server.memry > 1024", ""},
		{"'memory' in server && server.memry > 1024", `this host has no fact "memry"`},
		{"server.labels.nosuch == 'x'", ""},
		{"server.ObjectMetadata.Nmae == 'x'", `this host has no fact "Nmae"`},
		{"macros['tt'] == 'abc'", `this host has no macro "tt"`},
		{"macros['tt'](1) == 'abc'", `this host has no macro "tt"`},
		{"macro('t', vars.nosuch) == 'abc'", `this host has no variable "nosuch"`},
		{"macro('tt', vars.n) == 'abc'", `this host has no macro "tt"`},
		{"(macros['tt'] ?? 'abc') == 'abc'", ""},
		{"(macro('tt') ?? 'abc') == 'abc'", ""},
		{"macros?.tt == nil", ""},
		{"'tt' in macros && macros['tt'] == 'abc'", ""},
		{"'t' in macros && vars.nosuch == 1", `this host has no variable "nosuch"`},
		{"not vars.n", "int, not bool"},
		{"vars['s'].x == 1", "int(string)"},
		{"vars.l[7] == 1", "out of range"},
		{"len(vars.l) > 7 && vars.l[7] == 1", ""},
		{"macros['t'] > 2", "invalid operation: string > int"},
		{"macros['t'] == 'abc'", ""},
		{"macros['os'] > 2", ""}, // what it says is known on the host alone
		{"server.labels.role > 2", "invalid operation: string > int"},
		{"server.labels.role == 'db'", ""},
		{"server.memory > 1024", ""},
		{"server.memory > 1024 && vars.n > '2'", "invalid operation: int > string"},
		{"steps['first'].Changed && vars.n > '2'", "invalid operation: int > string"},
		{"steps['first'].ExitCode > vars.s", "mismatched types int and string"},
		{"steps['first'].ExitCode > vars.n", ""},
		{"steps['first'].Changed && vars.s", "expected true or false, found a text"},
		{"steps['first'].Changed && (vars.n == 1 && vars.s > 2)", ""},
		{"steps['first'].Changed && vars.n == 1 && vars.s > 2", ""},
		{"steps['first'].Changed || vars.n == 3 || vars.s > 2", ""},
		{"vars.n == 3 ? steps['first'].Changed : vars.s > 2", ""},
		{"vars.n == 1 ? steps['first'].Changed : vars.s > 2", "invalid operation: string > int"},
		{"not (steps['first'].Changed and vars.n < 'x')", "invalid operation: int < string"},
		{"len(services('db')) > vars.n", ""},
		{"len(services('db')) > vars.s", "mismatched types int and string"},
		{"all(services('db'), .port == vars.s)", ""},
		{"now().Hour() > 22 && vars.n == 3", ""},
	} {
		t.Run(c.condition, func(t *testing.T) {
			tree := fstest.MapFS{}
			for name, text := range map[string]string{
				"nodes/m1.yaml":    "nodes: {m1: {labels: {role: db}}}\n",
				"base/vars.yaml":   "files: {'*': [{name: c}]}\n",
				"vars/c.yaml":      "n: 3\ns: abc\nm: {a: 1}\nl: [1]\nnone: []\n",
				"base/macros.yaml": "macros: {'*': [{name: m}]}\n",
				"macros/m.yaml": "t:\n  template.expression: [{content: abc}]\n" +
					"os:\n  template.expression: [{content: '{{ server.os }}'}]\n",
				"base/jobs.yaml": "jobs: {'*': [{name: s}]}\n",
				"jobs/s.yaml": "steps:\n- {name: first, action: test.change}\n- name: a\n  action: test.change\n" +
					"  conditions:\n    success: {condition: " + fmt.Sprintf("%q", c.condition) + "}\n",
			} {
				tree[name] = &fstest.MapFile{Data: []byte(text)}
			}
			_, err := Open(Layer{Name: "main", FS: tree}).Compile(Input{
				Node: Node{Name: "m1"}, Facts: Facts{"os": "debian", "memory": 2048},
			})
			var list ErrorList
			switch {
			case c.want == "" && err != nil:
				t.Error(err)
			case c.want == "":
			case !errors.As(err, &list) || len(list) != 1:
				t.Errorf("got %v, want one mistake", err)
			case !strings.Contains(list[0].Message, c.want) || list[0].Pos.Line != 6:
				t.Errorf("got %s: %s, want %s", list[0].Pos, list[0].Message, c.want)
			}
		})
	}
}

// TestForeknownReached: the conditions of what is known not to run are not held against what the host lacks.
func TestForeknownReached(t *testing.T) {
	when := func(text string) string { return "conditions: {when: {condition: \"" + text + "\"}}" }
	const lacking = "conditions: {success: {condition: \"vars.nosuch == 1\"}}"
	for _, c := range []struct {
		name, job, step string
		refused         bool
	}{
		{"a job that may run", when("vars.n == 3"), lacking, true},
		{"a job that does not run", when("vars.n == 4"), lacking, false},
		{"a job that asks for the variable", when("'nosuch' in vars"), lacking, false},
		{"a job of which only a run knows", when("server.memory > 1"), lacking, true},
		{"a step that does not run", "", "conditions: {when: {condition: vars.n == 4}, success: {condition: vars.nosuch == 1}}", false},
		{"a step that runs", "", "conditions: {when: {condition: vars.n == 3}, continue: {condition: vars.nosuch == 1}}", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			job := "jobs:\n  '*':\n  - name: s\n"
			if c.job != "" {
				job += "    " + c.job + "\n"
			}
			_, err := Open(Layer{Name: "main", FS: fstest.MapFS{
				"base/vars.yaml": {Data: []byte("files: {'*': [{name: c}]}\n")}, "vars/c.yaml": {Data: []byte("n: 3\n")},
				"base/jobs.yaml": {Data: []byte(job)},
				"jobs/s.yaml":    {Data: []byte("steps:\n- name: a\n  action: test.change\n  " + c.step + "\n")},
			}}).Compile(Input{Node: Node{Name: "m1"}, Facts: Facts{"memory": 2048}})
			if refused := err != nil; refused != c.refused {
				t.Errorf("refused %v, want %v: %v", refused, c.refused, err)
			}
		})
	}
}

// TestForeknownUnopened: what an encrypted file may hold is unknown where the file is not opened, and no mistake.
func TestForeknownUnopened(t *testing.T) {
	for condition, refused := range map[string]bool{
		"vars.secret == 'x'": false, "vars.secret": false, "vars.n == 3 && vars.secret > 2": false,
		"vars.n > 'x'": true, "vars.secret == 'x' && vars.n > 'x'": false, "server.nosuch == 1": true,
	} {
		_, err := Open(Layer{Name: "main", FS: fstest.MapFS{
			"base/vars.yaml": {Data: []byte("files: {'*': [{name: c}, {name: s}]}\n")}, "vars/c.yaml": {Data: []byte("n: 3\n")},
			"vars/s.yaml.age": {Data: []byte("age-encryption.org/v1\n")},
			"base/jobs.yaml":  {Data: []byte("jobs: {'*': [{name: s}]}\n")},
			"jobs/s.yaml":     {Data: []byte("steps:\n- name: a\n  action: test.change\n  conditions: {when: {condition: \"" + condition + "\"}}\n")},
		}}).Compile(Input{Node: Node{Name: "m1"}})
		if (err != nil) != refused {
			t.Errorf("%s: %v", condition, err)
		}
	}
}
