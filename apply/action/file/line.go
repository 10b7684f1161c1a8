package file

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"github.com/pullet/pullet/apply"
)

// Line is a line that is in a text file, or is not. All other bytes stay as they are, the ends of lines included. A
// byte order mark is no part of the first line.
//
// With match, the one line that matches becomes this line; where none matches and the line is not there, it is added.
// Several lines that match are an error: which one is meant cannot be told. A place (after, before) that no line
// matches is an error, too, but in a new file. With state: absent, every line that is equal, or that matches, is
// removed.
//
// Example:
//
//	steps:
//	  - name: no root login
//	    action: file.line
//	    parameters:
//	      name: /etc/ssh/sshd_config
//	      line: PermitRootLogin no
//	      match: '^#?PermitRootLogin\b'
//	      validate: sshd -t -f %s
type Line struct {
	Editing `yaml:",inline"`
	Line    string `yaml:"line"` // the whole line
	// a regular expression for the line that it replaces, or that is removed
	Match string `yaml:"match"`
	State string `yaml:"state" words:"present absent"` // whether the line is there
	Where `yaml:",inline"`

	match *regexp.Regexp
}

// Bind checks the parameters.
func (a *Line) Bind(apply.Binding) (err error) {
	if err := apply.AbsPath("name", a.Name); err != nil {
		return err
	}
	if err := a.Placing.CheckParams(); err != nil {
		return err
	}
	if a.match, err = pattern("match", a.Match); err != nil {
		return err
	}
	gone := a.State == absent
	switch {
	case strings.ContainsAny(a.Line, "\n\r"):
		return apply.BadParam("line", "this is more than one line: use file.block")
	case a.Line == "" && !gone:
		return apply.BadParam("line", "is missing")
	case a.Line == "" && a.match == nil:
		return apply.BadParam("line", "line and match are missing: one of them says what is removed")
	case gone && a.Create:
		return apply.BadParam("create", "makes no sense with state: absent")
	}
	return a.Where.bind()
}

// Manages is the line, where it can be told from others: one that replaced another cannot be removed without it.
func (a *Line) Manages() []apply.Resource {
	return a.part(
		"line "+a.Line,
		"file.line",
		a.State == absent || a.Line == "" || a.Match != "",
		map[string]any{"line": a.Line},
	)
}

// Check says how the text would change.
func (a *Line) Check(_ context.Context, h *apply.Host) (apply.Change, error) {
	return a.check(h, a.edit)
}

// Apply changes the text.
func (a *Line) Apply(ctx context.Context, h *apply.Host, _ apply.Change) (apply.Output, error) {
	return apply.Output{}, a.apply(ctx, h, a.edit)
}

func (a *Line) edit(t *text) (string, error) {
	if a.State == absent {
		return a.remove(t), nil
	}
	equal := len(t.matching(func(l string) bool { return l == a.Line })) > 0
	var other []int
	if a.match != nil {
		other = t.matching(func(l string) bool { return l != a.Line && a.match.MatchString(l) })
	}
	switch {
	case len(other) > 1 || len(other) == 1 && equal:
		return "", a.ambiguous(t, other, equal)
	case len(other) == 1:
		t.lines[other[0]].text = a.Line
		return "replace the line", nil
	case equal:
		return "", nil
	}
	at, err := a.place(t)
	if err == nil {
		t.insert(at, a.Line)
	}
	return "add the line", err
}

func (a *Line) ambiguous(t *text, other []int, equal bool) error {
	first := other[0]
	if equal {
		return fmt.Errorf(
			"the line is there, and match also finds line %d (%s): make match find one line, or remove the other",
			first+1,
			t.lines[first].text,
		)
	}
	second := other[1]
	return fmt.Errorf("match finds %d lines, such as line %d (%s) and line %d (%s): make it find one",
		len(other), first+1, t.lines[first].text, second+1, t.lines[second].text)
}

func (a *Line) remove(t *text) string {
	var kept []textLine
	for _, l := range t.lines {
		if a.Line != "" && l.text == a.Line || a.match != nil && a.match.MatchString(l.text) {
			continue
		}
		kept = append(kept, l)
	}
	removed := len(t.lines) - len(kept)
	t.lines = kept
	switch removed {
	case 0:
		return ""
	case 1:
		return "remove the line"
	}
	return fmt.Sprintf("remove %d lines", removed)
}
