package render

import "go.yaml.in/yaml/v4"

// Fill is the step's parameters with what other steps returned in its place. Results are those so far; run executes the
// command of a macro, nil where nothing may be executed.
func (c *Catalog) Fill(s *Step, results Results, run func(*Macro) (string, error)) (Params, error) {
	scope := c.scope.at(results, run)
	release := c.repo.enter(scope)
	defer release()
	out := Params{doc: s.Params.doc}
	for _, e := range s.Params.pairs {
		value, err := filled(
			s.Params.doc,
			e.value,
			func(number int) (string, error) { return c.scope.waiting[number].execute(scope) },
			false,
		)
		if err != nil {
			return out, err
		}
		out.pairs = append(out.pairs, entry{e.key, value})
	}
	return out, nil
}

// filled is a copy of a node with its placeholders replaced.
// With written, an item that is the whole of a text can be more than text.
func filled(doc *document, n *yaml.Node, value func(number int) (string, error), written bool) (*yaml.Node, error) {
	n = resolve(n)
	out := *n
	var err error
	if waits(n.Value) {
		out.Value, err = fillMarks(n.Value, value)
	}
	if err != nil {
		return nil, err
	}
	if out.Value != n.Value {
		out.Value = doc.unindented(n, out.Value)
		if more := doc.written(n, out.Value); written && more != nil {
			return more, nil
		}
		out.Tag = "!!str" // it is text, whatever it looks like
		if bad := doc.insertItem(&out); written && bad != nil {
			return nil, bad
		}
	}
	out.Content = nil
	for _, c := range n.Content {
		child, err := filled(doc, c, value, written)
		if err != nil {
			return nil, err
		}
		out.Content = append(out.Content, child)
	}
	if written && n.Kind == yaml.MappingNode && len(n.Content) > 2 {
		out.Content = leftOut(n.Content, out.Content)
	}
	return &out, nil
}
