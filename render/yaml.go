package render

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
	"go.yaml.in/yaml/v4/plugin/loaderlimits"

	"github.com/pullet/pullet/internal/lazyregexp"
	"github.com/pullet/pullet/render/newcomer"
)

// document is a rendered file as a YAML tree.
type document struct {
	from   *rendered
	root   *yaml.Node // nil: an empty file
	values int        // how many there are, with aliases followed
	waits  bool       // values of parameters may wait for steps
	shown  bool       // no field of it is kept from anybody
	broken bool       // keys stand twice in it, or a block was left out

	partial, cut bool // its template failed: marks stand for values, or a block was left out
}

// parseYAML reads the output of a template, which holds one YAML document. It reports every key that stands twice in a
// map.
func parseYAML(r *rendered) (*document, ErrorList) {
	doc, bad := loadYAML(r)
	if bad != nil {
		return nil, ErrorList{bad}
	}
	var errs ErrorList
	if doc.root != nil {
		if bad := doc.checkAliases(); bad != nil {
			return nil, ErrorList{bad}
		}
		doc.duplicates(doc.root, &errs)
		doc.unreadable(doc.root, &errs)
	}
	return doc, errs
}

// tags lists the tags that repeat the form of a value.
var tags = []string{
	"", "!!str", "!!int", "!!float", "!!bool", "!!null", "!!map", "!!seq", "!!timestamp", "!!merge",
}

// unreadable finds nodes that would be left out: keys that are not texts, unknown tags, and merges of anything but
// maps.
func (d *document) unreadable(n *yaml.Node, errs *ErrorList) {
	if !slices.Contains(tags, n.Tag) {
		bad := d.errorAt(n, "unknown tag %s", n.Tag)
		bad.Hint = fmt.Sprintf("for YAML a tag begins with !: put a text in quotes, '%s'", strings.TrimSuffix(n.Tag, ":"))
		if n.Tag == "!vault" {
			bad.Hint = "pullet does not read Ansible's vault: pullet secrets edit writes encrypted variables"
		}
		*errs = append(*errs, bad)
	}
	for i, c := range n.Content {
		if n.Kind == yaml.MappingNode && i%2 == 0 {
			switch value := resolve(n.Content[i+1]); {
			case resolve(c).Kind != yaml.ScalarNode:
				*errs = append(*errs, d.errorAt(c, "a key has to be a text, and this is %s", kindName(resolve(c))))
			case resolve(c).Value == "" && isNull(c):
				*errs = append(*errs, d.errorAt(c, "a key is missing before this colon"))
			case c.Tag == "!!merge" && !isMerge(value):
				*errs = append(*errs, d.errorAt(value, "<< merges maps, and this is %s", kindName(value)))
			}
		}
		d.unreadable(c, errs)
	}
}

// isMerge reports a map or a list of maps.
func isMerge(n *yaml.Node) bool {
	return !slices.ContainsFunc(mergeSources(n), func(one *yaml.Node) bool { return one.Kind != yaml.MappingNode })
}

// duplicates finds keys that stand twice in a map. Aliases are not followed: what they name was looked at where it
// stands.
func (d *document) duplicates(n *yaml.Node, errs *ErrorList) {
	seen := map[string]int{}
	for i, c := range n.Content {
		if n.Kind == yaml.MappingNode && i%2 == 0 && c.Kind == yaml.ScalarNode && c.Tag != "!!merge" {
			if line, again := seen[c.Value]; again {
				*errs = append(*errs, d.errorAt(c, "key %q stands here twice: first in line %d", c.Value, line))
			} else {
				seen[c.Value] = d.pos(c).Line
			}
		}
		if len(c.Content) > 0 {
			d.duplicates(c, errs)
		}
	}
}

func loadYAML(r *rendered) (*document, *Error) {
	var n yaml.Node
	if len(r.text) > maxDocument {
		return nil, r.errorAt(1, 1, "the document is larger than %d MiB", maxDocument>>20)
	}
	err := yaml.Load(anyVersion(r.text), &n, shallow())
	if err != nil && strings.Contains(err.Error(), "no documents in stream") {
		return &document{from: r}, nil
	}
	var bad *yaml.LoadError
	var several *yaml.LoadErrors
	if errors.As(err, &several) && len(several.Errors) > 0 {
		bad = several.Errors[0]
	}
	switch {
	case bad != nil || errors.As(err, &bad):
		at := yamlPlace(r, bad)
		message := yamlMessage(bad)
		line, col := newcomer.RealPlace(string(r.text), message, at.Line, at.Column)
		e := r.errorAt(line, col, "%s", message)
		e.Hint = cmp.Or(blockHint(r, line), newcomer.SyntaxHint(message, r.line(line), col), yamlHint(r, line))
		return nil, e
	case err != nil:
		message := strings.TrimPrefix(err.Error(), "yaml: ")
		line, col := newcomer.RealPlace(string(r.text), message, 1, 1)
		e := r.errorAt(line, col, "invalid YAML: %s", message)
		e.Hint = newcomer.SyntaxHint(message, "", 1)
		return nil, e
	}
	doc := &document{from: r, root: &n}
	if n.Kind == yaml.DocumentNode && len(n.Content) > 0 {
		doc.root = n.Content[0]
	}
	if doc.root.Kind == yaml.ScalarNode && doc.root.Tag == "!!null" {
		doc.root = nil
	}
	if doc.root != nil {
		if bad := doc.insert(doc.root, map[string]bool{}); bad != nil {
			return nil, bad
		}
	}
	return doc, nil
}

var version12 = lazyregexp.New(`(?m)\A(?:[ \t]*#.*\n|[ \t]*\n)*%YAML 1\.2\b`)

// anyVersion changes the directive of YAML 1.2, which the library refuses although it reads such files.
func anyVersion(text []byte) []byte {
	if !bytes.Contains(text, []byte("%YAML 1.2")) {
		return text
	}
	at := version12.FindStringSubmatchIndex(string(text))
	if at == nil {
		return text
	}
	out := slices.Clone(text)
	out[at[1]-1] = '1'
	return out
}

// shallow bounds the depth of a document.
func shallow() yaml.Option {
	return yaml.WithPlugin(loaderlimits.New(loaderlimits.DepthValue(maxDepth)))
}

// yamlPlace is where a mistake is best shown: what is not closed is noticed only at the end of the file, where there is
// nothing to see.
func yamlPlace(r *rendered, e *yaml.LoadError) yaml.Mark {
	lines := strings.Split(string(r.text), "\n")
	atEnd := e.Mark.Line >= len(lines) ||
		strings.TrimSpace(strings.Join(lines[max(e.Mark.Line, 1)-1:], "")) == "" // some mistakes have no line
	if atEnd && e.ContextMark.Line > 0 {
		return e.ContextMark
	}
	return e.Mark
}

// yamlMessage is the library's message without its stage and position, which stand elsewhere.
func yamlMessage(e *yaml.LoadError) string {
	if e.ContextMsg != "" && !strings.Contains(e.Message, e.ContextMsg) {
		return "invalid YAML: " + e.ContextMsg + ": " + e.Message
	}
	return "invalid YAML: " + strings.TrimPrefix(e.Message, "yaml: ")
}

// yamlHint shows the rendered line where it is not what stands in the source.
func yamlHint(r *rendered, line int) string {
	text := strings.TrimSpace(r.line(line))
	if text == "" || strings.Contains(r.src.text, text) {
		return ""
	}
	return fmt.Sprintf("rendered: %.100s", r.readable(text))
}

// line is a line of the output, "" where there is none.
func (r *rendered) line(number int) string {
	r.split()
	return lineAt(r.text, r.lines, number)
}

// errorAt is a mistake at a node.
func (d *document) errorAt(n *yaml.Node, format string, args ...any) *Error {
	return d.from.errorAt(n.Line, n.Column, format, args...)
}

// pos is where a node stands in the source.
func (d *document) pos(n *yaml.Node) Position { return d.from.position(n.Line, n.Column) }

// entry is one key of a mapping with its value.
type entry struct{ key, value *yaml.Node }

// entries are the pairs of a mapping in the file's order, with merge keys (<<) resolved.
func entries(n *yaml.Node) []entry {
	var out, merged []entry
	own := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], resolve(n.Content[i+1])
		if key.Tag == "!!merge" {
			for _, m := range mergeSources(value) {
				merged = append(merged, entries(m)...)
			}
			continue
		}
		own[key.Value] = true
		out = append(out, entry{key, value})
	}
	for _, e := range merged {
		if !own[e.key.Value] {
			own[e.key.Value] = true
			out = append(out, e)
		}
	}
	return out
}

// mergeSources are the mappings that a merge key names: one, or a list of them.
func mergeSources(n *yaml.Node) []*yaml.Node {
	if n.Kind != yaml.SequenceNode {
		return []*yaml.Node{n}
	}
	var out []*yaml.Node
	for _, c := range n.Content {
		out = append(out, resolve(c))
	}
	return out
}

// resolve follows an alias to what it stands for.
func resolve(n *yaml.Node) *yaml.Node {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n
}

// isNull reports an empty value, such as what follows "runOptions:" with nothing behind it.
func isNull(n *yaml.Node) bool {
	return n == nil || n.Kind == 0 || n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null"
}

// kindName is a node's kind in the words of the documentation.
func kindName(n *yaml.Node) string {
	switch {
	case isNull(n):
		return "nothing"
	case n.Kind == yaml.MappingNode:
		return "a map"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	}
	return fmt.Sprintf("%q", n.Value)
}
