package render

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// Target says which nodes something is for. It is written as a text of terms joined by commas, all of which must hold:
//
//   - every node
//     web*         a glob over the node's name; a word that is the key of a label matches where the label is there
//     key=glob     the label's value matches; key=  matches only an empty value
//     key!=glob    the label is absent or its value does not match
//     !key         the label is absent
type Target struct{ terms []term }

type term struct {
	kind termKind
	key  string // the label's key
	glob string
}

type termKind int

const (
	nodeName termKind = iota
	labelIs
	labelIsNot
	labelAbsent
)

// ParseTarget reads a target. Its error names the term at fault.
func ParseTarget(text string) (Target, error) {
	var t Target
	for part := range strings.SplitSeq(text, ",") {
		one, err := parseTerm(strings.TrimSpace(part))
		if err != nil {
			return Target{}, fmt.Errorf("target %q: %w", text, err)
		}
		t.terms = append(t.terms, one)
	}
	return t, nil
}

func parseTerm(s string) (term, error) {
	t := term{kind: nodeName, glob: s}
	if key, glob, ok := strings.Cut(s, "!="); ok {
		t = term{labelIsNot, strings.TrimSpace(key), strings.TrimSpace(glob)}
	} else if key, glob, ok := strings.Cut(s, "="); ok {
		t = term{labelIs, strings.TrimSpace(key), strings.TrimPrefix(strings.TrimSpace(glob), "=")}
	} else if key, ok := strings.CutPrefix(s, "!"); ok {
		t = term{labelAbsent, strings.TrimSpace(key), "*"}
	}
	if t.kind == nodeName && t.glob == "" || t.kind != nodeName && t.key == "" {
		return t, fmt.Errorf("a term is empty: write *, a node name, key=value, key!=value or !key")
	}
	if t.kind == nodeName && strings.ContainsAny(t.glob, " \t@(){}|;&<>$`'\"") {
		return t, fmt.Errorf("%q is no host name: terms are joined by commas, such as os=debian,web*", t.glob)
	}
	if _, err := path.Match(slashless(t.glob), ""); err != nil {
		return t, fmt.Errorf("%q is not a pattern: %w", t.glob, err)
	}
	return t, nil
}

// Matches reports whether a node belongs to the target.
func (t Target) Matches(name string, labels map[string]string) bool {
	for _, one := range t.terms {
		if !one.matches(name, labels) {
			return false
		}
	}
	return len(t.terms) > 0
}

func (t term) matches(name string, labels map[string]string) bool {
	value, present := labels[t.key]
	switch t.kind {
	case labelIs:
		return present && glob(t.glob, value)
	case labelIsNot:
		return !present || !glob(t.glob, value)
	case labelAbsent:
		return !present
	}
	_, isLabel := labels[t.glob]
	return glob(t.glob, name) || isLabel
}

// Selector is a target as a value, or a list of targets of which any will do.
type Selector struct {
	Text    string // as people read it; "" is not set
	targets []Target
}

func (s *Selector) decode(d *decoder, n *yaml.Node) {
	var list Strings
	list.decode(d, n)
	for _, one := range append([]*yaml.Node{n}, n.Content...) {
		if !d.named(one, "a target", "a target reads labels itself: role=web") {
			return
		}
	}
	for _, text := range list {
		t, err := ParseTarget(text)
		if err != nil {
			d.failf(n, "%v", err)
			return
		}
		s.targets = append(s.targets, t)
	}
	s.Text = strings.Join(list, " or ")
}

func (s *Selector) shape() *Shape {
	one := &Shape{Kind: Text, NotNull: true}
	return &Shape{Kind: Either, Name: "target, or list of targets", Either: []*Shape{one, {Kind: List, Elem: one}}}
}

// Matches reports whether a node belongs to one of the targets.
func (s Selector) Matches(name string, labels map[string]string) bool {
	return slices.ContainsFunc(s.targets, func(t Target) bool { return t.Matches(name, labels) })
}

// glob matches with * ? and []; a slash is an ordinary character.
func glob(pattern, value string) bool {
	ok, err := path.Match(slashless(pattern), slashless(value))
	return err == nil && ok
}

func slashless(s string) string { return strings.ReplaceAll(s, "/", "\x00") }
