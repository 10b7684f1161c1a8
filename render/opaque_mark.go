package render

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"text/template"
	"text/template/parse"
)

// carrier holds the opaque texts that the actions of one template print. In YAML it gives a mark for each; in a text
// that is executed when it is used, it gives the text, and remembers that there was one.
type carrier struct {
	yaml    bool
	secrets *secretTexts // nil: none
	touched bool
	secret  bool // it printed one
	texts   []carried
}

// carried is an opaque text that a mark stands for.
type carried struct {
	text    string
	escaped string // as the encoder wrote it, for a scalar in which the encoder's quotes are part of the value
	form    form
	secret  bool
}

// form is how the text was written.
type form int

const (
	asText   form = iota // printed; alone in a plain scalar it can be a number or a boolean
	asScalar             // written by toYaml: a string
	inQuotes             // between quotes that the encoder wrote
	asWord               // written by shquote: one word of a shell
)

// carry is what stands for an opaque text in the output.
func (c *carrier) carry(one carried) string {
	c.touched = true
	one.secret = c.secrets != nil && c.secrets.has(one.text)
	c.secret = c.secret || one.secret
	if !c.yaml {
		return one.text
	}
	one.text, one.escaped = strings.ToValidUTF8(one.text, "\uFFFD"), strings.ToValidUTF8(one.escaped, "\uFFFD")
	c.texts = append(c.texts, one)
	return fmt.Sprintf("\uE000f%d\uE001", len(c.texts)-1)
}

func (c *carrier) quoted(text, escaped string) string {
	return c.carry(carried{text: text, escaped: escaped, form: inQuotes})
}

func (c *carrier) scalar(text string) string {
	escaped, err := toYAML(text)
	if err != nil || strings.Contains(escaped, "\n") {
		escaped = `"` + insideJSON(text, "toRawJson") + `"`
	}
	return c.carry(carried{text: text, escaped: escaped, form: asScalar})
}

// printed is the last function of every action that prints: it refuses what has no text, and keeps opaque texts out of
// what is read as YAML.
func (x *execution) printed(v any) (any, error) {
	if err := textless(v); err != nil {
		return nil, err
	}
	c := x.scope.carrier
	if c == nil {
		c = &carrier{}
	}
	switch v := v.(type) {
	case bool, int, int64:
		return v, nil
	case opaque:
		return c.carry(carried{text: string(v)}), nil
	case fleetRoot:
		return c.carry(carried{text: v.String()}), nil
	case encoded:
		if !c.yaml {
			return c.carry(carried{text: v.text}), nil
		}
		return v.mark(c)
	case string:
		if c.yaml && holdsMarks(v) {
			return c.carry(carried{text: v}), nil
		}
		return v, nil
	}
	text := fmt.Sprint(asNumeral(revealed(v)))
	if holds(v) || c.yaml && holdsMarks(text) {
		return c.carry(carried{text: text}), nil
	}
	return text, nil
}

// keyed makes a range over a map with opaque keys give opaque keys.
func keyed(v any) any {
	m, ok := v.(opaqueMap)
	if !ok {
		return v
	}
	var each iter.Seq2[opaque, any] = func(yield func(opaque, any) bool) {
		for _, key := range slices.Sorted(maps.Keys(m)) {
			if !yield(opaque(key), m[key]) {
				return
			}
		}
	}
	return each
}

// guardTree makes every action of a template that prints end in printed, and every range with a key end in keyed.
func guardTree(t *template.Template) {
	walkNodes(t.Root, func(n parse.Node) {
		switch n := n.(type) {
		case *parse.ActionNode:
			if len(n.Pipe.Decl) == 0 && !isDeferred(n.Pipe) {
				endIn("printed", n.Pipe)
			}
		case *parse.RangeNode:
			if len(n.Pipe.Decl) == 2 {
				endIn("keyed", n.Pipe)
			}
		}
	})
}

// endIn appends the call of a function to a pipeline.
func endIn(name string, pipe *parse.PipeNode) {
	call := *pipe.Cmds[0] // which knows its tree
	call.Args = []parse.Node{parse.NewIdentifier(name).SetPos(pipe.Pos)}
	pipe.Cmds = append(pipe.Cmds, &call)
}

// isDeferred reports the call that stands for an action which may have to wait: what it gives was printed before.
func isDeferred(pipe *parse.PipeNode) bool {
	callee, ok := pipe.Cmds[0].Args[0].(*parse.IdentifierNode)
	return ok && callee.Ident == "deferred"
}
