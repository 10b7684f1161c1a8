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
		{"vars.nosuch", `this node has no variable "nosuch"`},
		{"vars.nosuch.x == 1", `this node has no variable "nosuch"`},
		{"vars.nosuch ?? true", ""},
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
				"vars/c.yaml":      "n: 3\ns: abc\nm: {a: 1}\nl: [1]\n",
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
