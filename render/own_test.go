package render

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"text/template"
	"text/template/parse"
	"time"
)

// TestFilesDoNotChangeEachOther: what a file does to the value of a root is seen in that file only.
func TestFilesDoNotChangeEachOther(t *testing.T) {
	probe := "steps:\n- {name: one, action: x, parameters: {a: '{{ get vars `x` }}{{ get vars.map `x` }}{{ get server `x` }}{{ vars.map.kept }}{{ vars.list | toJson }}', b: '{{ macro `probe` }}'}}\n"
	for name, change := range map[string]string{
		"set": "{{ $_ := set vars `x` 1 }}", "set below": "{{ $_ := set vars.map `x` 1 }}", "set on a fact": "{{ $_ := set server `x` 1 }}",
		"unset": "{{ $_ := unset vars.map `kept` }}", "merge": "{{ $_ := merge vars.map (dict `x` 1) }}", "mergeOverwrite": "{{ $_ := mergeOverwrite vars.map (dict `kept` 9) }}",
		"mustMerge": "{{ $_ := mustMerge vars.map (dict `x` 1) }}", "in a macro": "{{ $_ := macro `change` vars.map }}", "in a list": "{{ $_ := set (first vars.list) `x` 1 }}",
		"of an item": "- name: each\n  forEach: vars.list\n  action: x\n  parameters: {a: '{{ (set item `x` 1).x }}'}\n", "in a branch": "{{ with vars.map }}{{ $_ := set . `x` 1 }}{{ end }}",
	} {
		t.Run(name, func(t *testing.T) {
			first := "steps:\n" + change + "- {name: zero, action: x}\n"
			cat := compile(t, map[string]string{
				"base/jobs.yaml": "jobs: {'*': [{name: a}, {name: b}]}\n", "jobs/a.yaml": first, "jobs/b.yaml": probe,
				"base/vars.yaml": "files: {'*': [{name: v}]}\n", "vars/v.yaml": "map: {kept: 1}\nlist: [{a: 1}]\n", "base/macros.yaml": "macros: {'*': [{name: m}]}\n",
				"macros/m.yaml": "change: {template.expression: [{content: '{{ $_ := set .m `x` 1 }}{{ $_ := set vars.map `x` 1 }}x'}], params: [m]}\n" +
					"probe: {template.expression: [{content: '{{ get vars.map `x` }}{{ vars.map.kept }}'}]}\n",
			})
			got := cat.Jobs[1].Steps[0].Params.Value()
			if got["a"] != `1[{"a":1}]` || got["b"] != "1" {
				t.Errorf("another file sees %q and %q", got["a"], got["b"])
			}
		})
	}
}

// TestChangesAreSeenInTheFile: within a file a change is kept.
func TestChangesAreSeenInTheFile(t *testing.T) {
	cat := compile(t, map[string]string{"base/jobs.yaml": "jobs: {'*': [{name: a}]}\n",
		"jobs/a.yaml": "{{ $_ := set vars `x` 1 }}{{ $_ := set server `y` 2 }}steps:\n- {name: one, action: x, parameters: {a: '{{ vars.x }}{{ server.y }}'}}\n"})
	if got := cat.Jobs[0].Steps[0].Params.Value()["a"]; got != "12" {
		t.Errorf("got %v", got)
	}
}

// TestEveryFunctionHasACost: a new function says what it does, and what a call costs, or is left out. Those that are
// listed are there.
func TestEveryFunctionHasACost(t *testing.T) {
	r := Open()
	for name := range r.first.funcs {
		_, known := classes[base(name)]
		if _, root := roots(nil)[name]; !known && !root && !slices.Contains(internals, name) {
			t.Errorf("%s is in no class: see classes in opaque_call.go", name)
		}
		if slices.Contains(impure, name) {
			t.Errorf("%s is impure", name)
		}
	}
	for name := range classes {
		if r.first.funcs[name] == nil && r.first.funcs["must"+strings.ToUpper(name[:1])+name[1:]] == nil {
			t.Errorf("there is no function %s", name)
		}
	}
	// Those of text/template itself that are not replaced: they count through weighed, or hand on.
	rest := []string{"and", "or", "not", "call", "eq", "ne", "lt", "le", "gt", "ge"}
	for _, name := range []string{"and", "or", "not", "call", "eq", "ne", "lt", "le", "gt", "ge", "html", "index", "slice", "js", "len", "print", "printf", "println", "urlquery"} {
		if _, err := template.New("").Parse("{{ " + name + " 1 1 }}"); err != nil {
			t.Errorf("text/template has no %s: %v", name, err)
		}
		if r.first.funcs[name] == nil && !slices.Contains(rest, name) {
			t.Errorf("%s is text/template's own: it does not count", name)
		}
	}
}

// TestInternalFunctionsCannotBeCalled: with them a template would have all the work that it wants.
func TestInternalFunctionsCannotBeCalled(t *testing.T) {
	for _, name := range internals {
		for path, text := range map[string]string{"jobs/a.yaml": "steps: []\n# {{ " + name + " 0 -1000 }}", "jobs/b.yaml": "{{ define `t` }}{{ if (" + name + ") }}{{ end }}{{ end }}steps: []\n"} {
			_, err := repo(map[string]string{"base/jobs.yaml": "jobs: {'*': [{name: " + strings.TrimSuffix(strings.TrimPrefix(path, "jobs/"), ".yaml") + "}]}\n", path: text}).Compile(web1)
			if err == nil || !strings.Contains(err.Error(), "there is no function \""+name+"\"") {
				t.Errorf("%s in %s: %v", name, path, err)
			}
		}
	}
	if _, err := parse.Parse("t", "{{ tick }}", "", "", map[string]any{"tick": 1}); err != nil {
		t.Fatal(err)
	}
}

// TestNothingRefillsABudget: work is never negative.
func TestNothingRefillsABudget(t *testing.T) {
	m, b, p := &meter{left: 10}, &budget{left: 10}, &pool{work: 10}
	_, _, _ = m.spend(-1000), b.spend(-1000), p.spend(-1000)
	if m.left != 10 || b.left != 10 || p.work != 10 {
		t.Errorf("negative work gave %d, %d and %d", m.left, b.left, p.work)
	}
	for text, want := range map[string]string{
		`count(1..3000, get($env, 'vars') != nil) == 1`: "there is no $env: name what is meant, such as vars or server", "keys($env) == []": "there is no $env",
		"let e = $env; e.vars != nil": "there is no $env", "'vars' in $env": "there is no $env",
	} {
		if _, err := asked(t, strings.ReplaceAll(text, `"`, `\"`)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

// TestStopped: who stops a pull ends its templates, expressions and loops at once, and learns that, not that the
// repository has mistakes.
func TestStopped(t *testing.T) {
	why := errors.New("stopped for the test")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	in := web1
	in.Context = ctx
	for name, job := range map[string]string{
		"template": "{{ range until 100 }}{{ end }}steps: []\n", "forEach": "steps:\n- {name: a, forEach: 'filter(1..100, # > 1)', action: x}\n",
		"nothing": "steps: []\n",
	} {
		cat, err := repo(map[string]string{"base/jobs.yaml": "jobs: {'*': [{name: a}]}\n", "jobs/a.yaml": job}).Compile(in)
		if cat != nil || err != why {
			t.Errorf("%s: %v, %v", name, cat, err)
		}
	}
	cat := compile(t, map[string]string{"base/jobs.yaml": "jobs: {'*': [{name: a}]}\n",
		"jobs/a.yaml": "steps:\n- {name: a, action: x, conditions: {when: {condition: 'all(1..100, # > 0)'}}}\n"})
	if _, err := cat.Eval(cat.Jobs[0].Steps[0].Conditions.When.Expression, Judged{Context: ctx}); err != why {
		t.Errorf("condition: %v", err)
	}
	late, end := within(t.Context(), time.Nanosecond, errExpressionTime)
	defer end()
	<-late.Done()
	if err := (&budget{left: 10, ctx: late}).spend(1); err != errExpressionTime || err.Error() != "the expression takes longer than 10s" {
		t.Errorf("late: %v", err)
	}
	if err := (&meter{left: 10, ctx: late}).spend(1); err != errExpressionTime || stopped(late) != nil {
		t.Errorf("late: %v", err)
	}
}
