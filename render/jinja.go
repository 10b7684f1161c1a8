package render

import (
	"bytes"
	"strings"

	"github.com/pullet/pullet/render/newcomer"
)

// withoutJinja reports each statement of Jinja in a file that is no YAML with them, and parses the rest, so that its
// other mistakes are told with them.
func withoutJinja(r *rendered) (doc *document, jinja, others ErrorList) {
	rest := *r
	rest.text = bytes.Clone(r.text)
	for _, m := range newcomer.JinjaTags(r.text) {
		line := bytes.Count(r.text[:m[0]], []byte("\n")) + 1
		tag := string(r.text[m[0]:m[1]])
		e := r.errorAt(
			line,
			m[0]-bytes.LastIndexByte(r.text[:m[0]], '\n'),
			"%s is Jinja, and templates here are those of Go",
			shortened(tag),
		)
		e.Hint = newcomer.JinjaHint(tag)
		jinja = append(jinja, e)
		copy(rest.text[m[0]:m[1]], strings.Repeat(" ", m[1]-m[0]))
	}
	doc, others = parseYAML(&rest)
	return doc, jinja, others
}
