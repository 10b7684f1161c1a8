package newcomer

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pullet/pullet/internal/lazyregexp"
)

// jinjaTag is a statement of Jinja, in which other tools write templates. In a text that is quoted it is a text like
// any other.
var jinjaTag = lazyregexp.New(`\{%-?\s*(\w*)[^\n]*?%\}`)

// JinjaTags returns where statements of Jinja stand in a text, whatever they are.
func JinjaTags(text []byte) [][]int { return jinjaTag.FindAllIndex(text, -1) }

// jinjaWords are the statements of Jinja. Other texts between {% and %} may be anything.
var jinjaWords = strings.Fields("if elif else endif for endfor set endset include import from extends block endblock " +
	"macro endmacro call endcall filter endfilter raw endraw with endwith do")

// JinjaTag is a statement of Jinja in a text.
type JinjaTag struct {
	Text, Word string // {% if x %}, if
	At         int    // offset in the text
	Hint       string // how it is written here
}

// JinjaIn returns the statements of Jinja in a template. One inside of an action is meant as it is written.
func JinjaIn(text string) []JinjaTag {
	var out []JinjaTag
	for _, m := range jinjaTag.FindAllStringSubmatchIndex(text, -1) {
		before, tag, word := text[:m[0]], text[m[0]:m[1]], text[m[2]:m[3]]
		if slices.Contains(jinjaWords, word) && strings.LastIndex(before, "{{") <= strings.LastIndex(before, "}}") {
			out = append(out, JinjaTag{tag, word, m[0], JinjaHint(tag)})
		}
	}
	return out
}

var jinjaLoop = lazyregexp.New(`\{%-?\s*for\s+([\w\s,]+?)\s+in\s`)

// LoopHint is the hint for a name that a loop of Jinja in the same file gives to its items; "" where none does.
func LoopHint(text, name string) string {
	for _, m := range jinjaLoop.FindAllStringSubmatch(text, -1) {
		if slices.Contains(strings.FieldsFunc(m[1], func(r rune) bool { return r == ',' || r == ' ' }), name) {
			return "{% for %} is Jinja, and templates here are those of Go: " + JinjaHint(m[0]+"%}")
		}
	}
	return ""
}

// JinjaHint is how a statement of Jinja is written here.
func JinjaHint(line string) string {
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
