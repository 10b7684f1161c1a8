package apply_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/pullet/pullet/apply"
)

// readsSource is what a macro reads of a file of the repository.
type readsSource struct {
	Source string `yaml:"source,required"`
	Writes bool   `yaml:"writes"`
	text   string
}

func (a *readsSource) Reads() error {
	if a.Writes {
		return errors.New("it writes")
	}
	return nil
}

func (a *readsSource) Bind(b apply.Binding) error {
	data, err := b.Source(a.Source, false)
	a.text = string(data)
	return err
}

func (a *readsSource) Check(context.Context, *apply.Host) (apply.Change, error) {
	return apply.Change{}, nil
}

func (a *readsSource) Apply(context.Context, *apply.Host, apply.Change) (apply.Output, error) {
	return apply.Output{}, nil
}

func (a *readsSource) Read(context.Context, *apply.Host) (string, error) {
	return " " + a.text + "\n", nil
}

// TestMistakesOfMacros: what cannot be read is told before a step needs it.
func TestMistakesOfMacros(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ macro, want string }{
		"none":                  {"t.source: [{source: text}]", ""},
		"known when it is read": {"t.source: [{source: '{{ .name }}'}]", ""},
		"it changes the host":   {"t.put: [{name: x}]", "macros/m.yaml:1:1: macro \"m\": t.put cannot be a macro: macros only read, with t.ask, t.source, t.value\n"},
		"a reader's name":       {"t.sourc: [{source: text}]", "macros/m.yaml:1:1: macro \"m\": there is no action \"t.sourc\" (did you mean \"t.source\"?)\n"},
		"another's name":        {"u.putt: [{name: x}]", "macros/m.yaml:1:1: macro \"m\": there is no action \"u.putt\" (did you mean \"u.put\"?)\n"},
		"no name at all":        {"zzz.unlike: [{source: text}]", "macros/m.yaml:1:1: macro \"m\": there is no action \"zzz.unlike\"\n"},
		"a parameter":           {"t.source: [{sourc: text}]", "macros/m.yaml:1:"},
		"what it does":          {"t.source: [{source: text}, {writes: true}]", "macros/m.yaml:1:1: macro \"m\": it writes\n"},
		"what it reads":         {"t.source: [{source: no}]", "macros/m.yaml:1:1: macro \"m\": source: there is no files/no in the repository (known: text)\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := withMacro(t, "m: {"+c.macro+"}\n", puts("s"))
			_, err := l.compile()
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.HasPrefix(err.Error(), c.want)) {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
		})
	}
}

// withMacro is a library whose host has a macro.
func withMacro(t *testing.T, macro, step string) *library {
	l := newLibrary(t, list(step), "text", "of the file")
	l.more = append(l.more, apply.Spec{Name: "t.source", New: func() apply.Action { return &readsSource{} }},
		apply.Spec{Name: "t.value", Macro: true, New: func() apply.Action { return &put{lab: l.lab} }})
	l.file("base/macros.yaml", "macros: {'*': [{name: m}]}\n")
	l.file("macros/m.yaml", macro)
	return l
}

// TestMacroOfAFile: a macro has the text of the repository's file, without the space around it.
func TestMacroOfAFile(t *testing.T) {
	t.Parallel()
	l := withMacro(t, "m: {t.source: [{source: text}]}\n", puts("s", when("macro('m') == 'of the file'")))
	l.want(l.pull(), "s changed")
}

// TestMacrosThatFail: the step that needs the macro fails with what the macro said.
func TestMacrosThatFail(t *testing.T) {
	t.Parallel()
	for macro, want := range map[string]string{
		"t.ask: [{cmd: 'echo no >&2; exit 3'}]":      `macro "m": exit code 3: no`,
		"t.ask: [{cmd: 'sleep 60'}, {timeout: 1ms}]": `macro "m": timed out; it was ended with its children`,
		"t.ask: [{cmd: 'true'}, {timeout: 1x}]":      `macro "m": timeout: `,
	} {
		l := withMacro(t, "m: {"+macro+"}\n", puts("s", when("macro('m') == 'x'")))
		l.root = t.TempDir()
		r := l.pull()
		if s := step(t, r, "s"); s.Outcome != apply.Failed || !strings.Contains(s.Reason, want) {
			t.Errorf("%s: %s %s", macro, s.Outcome, s.Reason)
		}
	}
}
