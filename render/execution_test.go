package render

import "testing"

// TestExecutions: while a macro of one step runs a command, what others execute sees its own scope, and what the first
// executes after it still sees the first's.
func TestExecutions(t *testing.T) {
	cat := compile(t, map[string]string{
		"base/macros.yaml":   "macros: {'*': [{name: m}]}\n",
		"macros/m.yaml":      "read: {cmd.run: [{name: id}]}\nshout: {template.expression: [{content: '{{ .x | upper }}'}], params: [x]}\n",
		"base/services.yaml": "services:\n  '*':\n  - {name: '{{ server.name }}s', port: 80}\n",
		"base/jobs.yaml":     "jobs: {'*': [{name: j}]}\n",
		"jobs/j.yaml": "steps:\n- {name: zero, action: x, parameters: {a: b}}\n" +
			"- {name: one, action: x, parameters: {a: '{{ macro `read` }} {{ (step `zero`).StdOut | upper }} {{ macro `shout` `x` }}'}}\n" +
			"- {name: two, action: x, parameters: {a: '{{ (step `zero`).StdOut }} {{ macro `shout` `y` }}'}}\n",
	})
	results := func(out string) Results {
		return func(string) (StepResult, bool) { return StepResult{StdOut: out}, true }
	}
	steps := cat.Jobs[0].Steps
	var inner, text string
	var again *Catalog
	got, err := cat.Fill(steps[1], results("outer"), func(*Macro) (string, error) {
		p, err := cat.Fill(steps[2], results("inner"), nil)
		if err != nil {
			return "", err
		}
		inner, _ = p.Value()["a"].(string)
		out, err := cat.Template(nil, "t", "{{ (step `zero`).StdOut }} {{ macro `shout` `z` }}", results("third"), nil)
		text = string(out)
		if err != nil {
			return "", err
		}
		other := web1
		other.Node.Name = "web2"
		again, err = cat.repo.Compile(other)
		return "read", err
	})
	if err != nil {
		t.Fatal(err)
	}
	if a := got.Value()["a"]; a != "read OUTER X" || inner != "inner Y" || text != "third Z" {
		t.Errorf("the first %q, the second %q, the third %q", a, inner, text)
	}
	if offers := again.Offers(); again.Digest != cat.Digest || len(offers) != 1 || offers[0].Name != "web2s" {
		t.Errorf("compiled meanwhile it offers %v", offers)
	}
	if n := len(cat.repo.others); n != 1 || cat.repo.others[0].scope != nil || cat.repo.first.scope != nil {
		t.Errorf("%d other executions are left", n)
	}
}
