package render

import (
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/pullet/pullet/internal/lazyregexp"
)

// DisplayParams is the step's parameters for people: what only a run can tell is named, <macro load>.
func (c *Catalog) DisplayParams(s *Step) Params {
	out := Params{doc: s.Params.doc}
	for _, e := range s.Params.pairs {
		// Naming cannot fail.
		value, _ := filled(
			s.Params.doc,
			e.value,
			func(number int) (string, error) { return c.scope.waiting[number].placeholder(), nil },
			false,
		)
		showLost(value)
		out.pairs = append(out.pairs, entry{e.key, value})
	}
	return out
}

// whatIsLost is what stands for an action that failed, such as one that reads an encrypted file.
var whatIsLost = lazyregexp.New(lost + `_*`)

// showLost names what is not known.
func showLost(n *yaml.Node) {
	n.Value = whatIsLost.ReplaceAllString(n.Value, "(not known)")
	for _, c := range n.Content {
		showLost(c)
	}
}

// placeholder is what stands for the action until it has a value.
func (d *deferred) placeholder() string {
	switch {
	case len(d.steps) > 0:
		return "<step " + d.steps[0] + ">"
	case len(d.names) > 0:
		return "<macro " + d.names[0] + ">"
	}
	return "<" + strings.Trim(d.text, "{-} ") + ">"
}
