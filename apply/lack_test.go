package apply_test

import (
	"context"
	"testing"

	"github.com/pullet/pullet/apply"
)

// needy needs a directory that it does not make.
type needy struct {
	Name string `yaml:"name,required"`
}

func (a *needy) Check(context.Context, *apply.Host) (apply.Change, error) {
	return apply.Change{Summary: "write", Lacks: &apply.LackError{Path: "/d", Text: "there is no directory /d"}}, nil
}

func (a *needy) Apply(context.Context, *apply.Host, apply.Change) (apply.Output, error) {
	return apply.Output{}, nil
}

// topFile is a file in the root directory. Without its name it says that it is that directory.
type topFile struct {
	rootFile `yaml:",inline"`
}

func (a *topFile) Manages() []apply.Resource {
	return []apply.Resource{{ID: "file " + a.Name, Path: "/" + a.Name}}
}

// TestPlanLacks: a plan fails a step for what is not there, unless another step may make it before.
func TestPlanLacks(t *testing.T) {
	t.Parallel()
	needs := thing("t.needy", "n")
	notes := thing("t.note", "c")
	file := func(path string) string { return "{name: f, action: t.file, parameters: {name: " + path + "}}" }
	const free = "runOptions: {ordering: justdoit}\n"
	for name, c := range map[string]struct {
		job   string
		fails bool
	}{
		"nothing makes it":           {list(needs), true},
		"a file below it":            {list(file("/d/x"), needs), false},
		"the directory":              {list(file("/d"), needs), false},
		"a file elsewhere":           {list(file("/dd"), needs), true},
		"a command":                  {list(cmds("c"), needs), false},
		"a step that only waits":     {list(thing("t.wait", "c"), needs), true},
		"a step that makes no files": {list(notes, needs), true},
		"a path that is not known":   {list(notes, "{name: f, action: t.top, parameters: {name: \"{{ (step `c`).StdOut }}\"}}", needs), false},
		"a step that is skipped":     {list("{name: f, action: t.file, parameters: {name: /d/x}, "+when("false")+"}", needs), true},
		"behind it":                  {list(needs, file("/d/x")), true},
		"in any order":               {free + list(needs, file("/d/x")), false},
		"in any order, but after it": {free + list(needs, "{name: f, action: t.file, parameters: {name: /d/x}, require: [n]}"), true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newAssets(t)
			a.root = t.TempDir()
			a.more = append(a.more, apply.Spec{Name: "t.top", New: func() apply.Action { return &topFile{rootFile{lab: a.lab}} }},
				apply.Spec{Name: "t.needy", New: func() apply.Action { return &needy{} }},
				apply.Spec{Name: "t.note", NoFiles: true, New: func() apply.Action { return &command{lab: a.lab} }})
			n := step(t, a.program(jobs{{"a", c.job}}).Plan(t.Context(), a.options()), "n")
			if c.fails != (n.Outcome == apply.Failed && n.Reason == "there is no directory /d") || !c.fails && n.Outcome != apply.Changed {
				t.Errorf("%s %s", n.Outcome, n.Reason)
			}
		})
	}
}
