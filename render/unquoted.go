package render

import (
	"fmt"
	"slices"
	"strings"
	"text/template/parse"

	"go.yaml.in/yaml/v4"

	"github.com/pullet/pullet/internal/lazyregexp"
)

// shellLines are the parameters whose text a shell reads. A list is a program and its arguments.
var shellLines = []string{"cmd", "validate", "unless", "onlyif"}

// unquoted warns of values in command lines that a shell would read as more than one word.
func (c *Catalog) unquoted() ErrorList {
	var out ErrorList
	for _, j := range c.Jobs {
		for _, s := range j.Steps {
			for _, name := range shellLines {
				value := s.Params.lookup(name)
				if value == nil || s.broken || resolve(value).Kind != yaml.ScalarNode {
					continue
				}
				out = append(out, c.unquotedIn(s, name, resolve(value))...)
			}
		}
	}
	return out
}

// unquotedIn warns of the values in one line.
func (c *Catalog) unquotedIn(s *Step, name string, n *yaml.Node) ErrorList {
	var what []string
	if n.Style&bareStyle != 0 {
		what = append(what, "a value from a host's facts or from another host")
	}
	for _, number := range placeholders(n) {
		if d := c.scope.waiting[number]; !d.oneWord() {
			what = append(what, strings.Trim(d.text, "{-} "))
		}
	}
	what = append(what, c.unsafeVars(s.Params.doc, n)...)
	var out ErrorList
	for _, one := range what {
		e := s.ErrorAt(
			s.Params.doc.pos(n),
			"%s: %s is not quoted for the shell, which may read it as more than one word",
			name,
			one,
		)
		e.Severity, e.Hint = Warning,
			"write it with shquote, such as {{ shquote vars.name }}, or give a list, or put it into env"
		if name != "cmd" {
			e.Hint = "write it with shquote, such as {{ shquote vars.name }}"
		}
		out = append(out, e)
	}
	return out
}

// oneWord reports an action that can write no more than one word of a shell.
func (d *deferred) oneWord() bool {
	if d.block != "" || d.tmpl == nil || d.tmpl.Root == nil {
		return false
	}
	action, ok := d.tmpl.Root.Nodes[len(d.tmpl.Root.Nodes)-1].(*parse.ActionNode)
	if !ok || len(action.Pipe.Cmds) < 2 {
		return false
	}
	last := action.Pipe.Cmds[len(action.Pipe.Cmds)-2] // before printed
	if callee, ok := last.Args[0].(*parse.IdentifierNode); ok {
		return callee.Ident == "shquote" || callee.Ident == "int" || callee.Ident == "length"
	}
	chain, ok := last.Args[0].(*parse.ChainNode)
	return ok && slices.Contains([]string{"ExitCode", "Changed", "Result"}, chain.Field[len(chain.Field)-1])
}

var (
	variableAction = lazyregexp.New(`\{\{-?\s*(?:vars|variables)((?:\.[A-Za-z_][A-Za-z0-9_]*)+)\s*-?\}\}`)
	shellSafe      = lazyregexp.New(`^[A-Za-z0-9_@%+=:,./-]*$`)
)

// unsafeVars are the variables that stand in a line as they are, and whose values a shell reads as more than a word.
func (c *Catalog) unsafeVars(doc *document, n *yaml.Node) []string {
	var out []string
	from := doc.pos(n)
	for _, m := range variableAction.FindAllStringSubmatch(doc.from.src.scalarAt(from, n), -1) {
		var here any = c.Vars
		for _, key := range strings.Split(m[1][1:], ".") {
			below, _ := mapOf(here)
			here = below[key]
		}
		if text, ok := here.(string); ok && !shellSafe.MatchString(text) && bare(n.Value, text) {
			out = append(out, fmt.Sprintf("vars%s", m[1]))
		}
	}
	return out
}

// bare reports a value in a line that is not between quotes which hold it.
func bare(line, value string) bool {
	before, _, found := strings.Cut(line, value)
	switch {
	case !found:
		return false
	case strings.Count(before, "'")%2 == 1:
		return strings.Contains(value, "'")
	case strings.Count(before, `"`)%2 == 1:
		return strings.ContainsAny(value, "\"$`\\")
	}
	return true
}

// scalarAt is the source of a scalar: its line, and of a block the lines below that are indented further.
func (s *source) scalarAt(pos Position, n *yaml.Node) string {
	first := s.line(pos.Line)
	if n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) == 0 {
		return first[min(max(pos.Col-1, 0), len(first)):]
	}
	indent := len(first) - len(strings.TrimLeft(first, " -"))
	var out strings.Builder
	rest := s.text
	for range pos.Line {
		_, rest, _ = strings.Cut(rest, "\n")
	}
	for n := 1; n < 1000 && rest != ""; n++ {
		var line string
		line, rest, _ = strings.Cut(rest, "\n")
		if text := strings.TrimLeft(line, " "); text != "" && len(line)-len(text) <= indent {
			break
		}
		out.WriteString(line + "\n")
	}
	return out.String()
}
