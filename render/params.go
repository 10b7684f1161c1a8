package render

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// Params are the parameters of an action, rendered and with their positions, before the action gives them types. They
// are written as a map, or as a list of maps with one key each.
type Params struct {
	doc   *document
	pairs []entry
}

func (p *Params) decode(d *decoder, n *yaml.Node) {
	p.doc = d.doc
	switch {
	case isNull(n):
	case n.Kind == yaml.MappingNode:
		p.pairs = entries(n)
	case n.Kind == yaml.SequenceNode:
		for _, item := range n.Content {
			item = resolve(item)
			if item.Kind != yaml.MappingNode || len(item.Content) != 2 {
				d.failf(item, "expected a map with one key such as \"- name: value\", found %s", kindName(item))
				continue
			}
			p.pairs = append(p.pairs, entries(item)...)
		}
	default:
		d.failf(n, "parameters: expected a map or a list of maps with one key, found %s", kindName(n))
	}
	seen := map[string]bool{}
	for _, e := range p.pairs {
		if seen[e.key.Value] {
			d.failf(e.key, "parameter %q stands here twice", e.key.Value)
		}
		seen[e.key.Value] = true
	}
}

// lookup is the value of one parameter, nil where it is not set.
func (p Params) lookup(name string) *yaml.Node {
	for _, e := range p.pairs {
		if e.key.Value == name {
			return e.value
		}
	}
	return nil
}

// remove removes a parameter and returns its pair.
func (p *Params) remove(name string) (entry, bool) {
	for i, e := range p.pairs {
		if e.key.Value == name {
			p.pairs = append(p.pairs[:i:i], p.pairs[i+1:]...)
			return e, true
		}
	}
	return entry{}, false
}

// defaults adds parameters that are not set.
func (p *Params) defaults(more Params) {
	for _, e := range more.pairs {
		if p.lookup(e.key.Value) == nil {
			p.pairs = append(p.pairs, e)
		}
	}
}

// Or is the parameters with those of more that they do not set.
func (p Params) Or(more Params) Params {
	out := Params{p.doc, append([]entry(nil), p.pairs...)}
	out.defaults(more)
	return out
}

// Text is a parameter that is a single text, or "".
func (p Params) Text(name string) string {
	if n := p.lookup(name); n != nil && n.Kind == yaml.ScalarNode {
		return n.Value
	}
	return ""
}

// Texts is a parameter that is a text, or a list of texts; what is no text is left out.
func (p Params) Texts(name string) []string {
	n := p.lookup(name)
	if n == nil {
		return nil
	}
	items := []*yaml.Node{n}
	if n.Kind == yaml.SequenceNode {
		items = n.Content
	}
	var out []string
	for _, item := range items {
		if item.Kind == yaml.ScalarNode && item.Value != "" {
			out = append(out, item.Value)
		}
	}
	return out
}

// Templated reports a template action in some value: it is executed when the parameters are used.
func (p Params) Templated() bool {
	return slices.ContainsFunc(p.pairs, func(e entry) bool { return holdsAction(e.value) })
}

func holdsAction(n *yaml.Node) bool {
	n = resolve(n)
	return strings.Contains(n.Value, "{{") || slices.ContainsFunc(n.Content, holdsAction)
}

// Position is where a parameter stands, or the fallback where it is not set.
func (p Params) Position(name string, fallback Position) Position {
	for _, e := range p.pairs {
		if e.key.Value == name {
			return p.doc.pos(e.value)
		}
	}
	return fallback
}

// ParamTaker is implemented by what takes its parameters itself, such as an action whose parameters no struct of ours
// describes. They may still wait for steps: see Params.Waits. Mistakes without a place of their own are at the fallback
// position.
type ParamTaker interface {
	Take(p Params, fallback Position) ErrorList
}

// Into fills the struct that v points to, whose fields carry yaml tags, unless v is a ParamTaker. Unknown parameters,
// wrong types and missing required ones are all reported, those without a place of their own at the fallback position.
func (p Params) Into(v any, fallback Position) ErrorList {
	if own, ok := v.(ParamTaker); ok {
		return own.Take(p, fallback)
	}
	root := p.node()
	d := &decoder{doc: p.doc}
	d.object(root, reflect.ValueOf(v).Elem(), "parameters")
	for i, e := range d.errs {
		if e.Pos == p.doc.pos(root) { // what is missing has no place of its own
			d.errs[i] = p.errorAt(fallback, "%s", e.Message)
		}
	}
	return d.errs
}

// Value is the parameters as plain data: maps, lists and scalars.
func (p Params) Value() map[string]any {
	out := map[string]any{}
	d := &decoder{doc: p.doc}
	for _, e := range p.pairs {
		out[e.key.Value] = d.any(e.value)
	}
	return out
}

// Waits reports that the value that a path of keys and numbers leads to holds what other steps return, and is known
// only when its step runs. Without a path it is about all parameters.
func (p Params) Waits(at ...string) bool {
	if len(at) == 0 { // asked of every step, more than once
		return slices.ContainsFunc(
			p.pairs,
			func(e entry) bool { return holdsPlaceholder(e.key) || holdsPlaceholder(e.value) },
		)
	}
	return holdsPlaceholder(below(p.node(), at).value)
}

// Mistake is a mistake in the value that a path of keys and numbers leads to, or as near to it as there is a place;
// with onKey it is the last key of the path that is wrong. Without a path it is at the fallback position.
func (p Params) Mistake(at []string, onKey bool, fallback Position, format string, args ...any) *Error {
	if found := below(p.node(), at); len(at) > 0 && found.value.Line > 0 {
		fallback = p.doc.pos(found.value)
		if onKey && found.key != nil {
			fallback = p.doc.pos(found.key)
		}
	}
	return p.errorAt(fallback, format, args...)
}

// node is the parameters as one map.
func (p Params) node() *yaml.Node {
	out := &yaml.Node{Kind: yaml.MappingNode}
	for _, e := range p.pairs {
		out.Content = append(out.Content, e.key, e.value)
	}
	return out
}

// errorAt is a mistake at a position, with its source line.
func (p Params) errorAt(pos Position, format string, args ...any) *Error {
	if p.doc == nil {
		return &Error{Pos: pos, Message: fmt.Sprintf(format, args...)}
	}
	return p.doc.from.src.errorAt(pos, format, args...)
}

// ParamsOf makes parameters of plain data.
func ParamsOf(values map[string]any) (Params, error) {
	var node yaml.Node
	if err := node.Encode(values); err != nil {
		return Params{}, err
	}
	return Params{doc: &document{from: &rendered{src: &source{}}}, pairs: entries(&node)}, nil
}
