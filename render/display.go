package render

import "strings"

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
		out.pairs = append(out.pairs, entry{e.key, value})
	}
	return out
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
