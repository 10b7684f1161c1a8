package render

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/pullet/pullet/internal/lazyregexp"
)

// jinjaTag is a statement of Jinja, in which other tools write templates. In a text that is quoted it is a text like
// any other.
var jinjaTag = lazyregexp.New(`\{%-?\s*(\w*)[^\n]*?%\}`)

// withoutJinja reports each statement of Jinja in a file that is no YAML with them, and parses the rest, so that its
// other mistakes are told with them.
func withoutJinja(r *rendered) (doc *document, jinja, others ErrorList) {
	rest := *r
	rest.text = bytes.Clone(r.text)
	for _, m := range jinjaTag.FindAllIndex(r.text, -1) {
		line := bytes.Count(r.text[:m[0]], []byte("\n")) + 1
		tag := string(r.text[m[0]:m[1]])
		e := r.errorAt(
			line,
			m[0]-bytes.LastIndexByte(r.text[:m[0]], '\n'),
			"%s is Jinja, and templates here are those of Go",
			shortened(tag),
		)
		e.Hint = jinjaHint(tag)
		jinja = append(jinja, e)
		copy(rest.text[m[0]:m[1]], strings.Repeat(" ", m[1]-m[0]))
	}
	doc, others = parseYAML(&rest)
	return doc, jinja, others
}

var jinjaLoop = lazyregexp.New(`\{%-?\s*for\s+([\w\s,]+?)\s+in\s`)

// loopHint is the hint for a name that a loop of Jinja in the same file gives to its items; "" where none does.
func loopHint(text, name string) string {
	for _, m := range jinjaLoop.FindAllStringSubmatch(text, -1) {
		if slices.Contains(strings.FieldsFunc(m[1], func(r rune) bool { return r == ',' || r == ' ' }), name) {
			return "{% for %} is Jinja, and templates here are those of Go: " + jinjaHint(m[0]+"%}")
		}
	}
	return ""
}

// jinjaHint is how a statement of Jinja is written here.
func jinjaHint(line string) string {
	word := ""
	if m := jinjaTag.FindStringSubmatch(line); m != nil {
		word = m[1]
	}
	ours := map[string]string{
		"for": "{{ range vars.list }} ... {{ end }}; . is the item", "endfor": "{{ end }}", "endif": "{{ end }}",
		"else": "{{ else }}", "elif": "{{ else if ... }}",
		"if": "{{ if eq server.os \"debian\" }} ... {{ end }}", "set": "{{ $name := ... }}",
		"include": "a macro: {{ macro \"name\" }}",
	}
	if ours[word] == "" {
		return "templates are those of Go: {{ range vars.list }} ... {{ end }}, {{ if server.os }} ... {{ end }}"
	}
	return fmt.Sprintf("write %s", ours[word])
}
