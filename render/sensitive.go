package render

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// Secrets are host variables whose values stay out of reports. A step is sensitive if it, or a template that it
// executes, names one of them or holds the value of one. The zero value has none.
type Secrets struct {
	values []string
	named  *regexp.Regexp // vars, and the last key of one of them in the same action or expression
}

// leastSecret is the shortest value that is recognised wherever it stands: shorter ones stand everywhere.
const leastSecret = 4

// sensitiveKey marks all variables of a file as sensitive, at its top.
const sensitiveKey = "sensitive"

// secretsOf are the variables of files that are marked.
func secretsOf(vars map[string]any) Secrets {
	leaves := map[string]bool{}
	var s Secrets
	var visit func(key string, value any)
	visit = func(key string, value any) {
		switch v := value.(type) {
		case map[string]any:
			for k, inner := range v {
				visit(k, inner)
			}
		case []any:
			for _, inner := range v {
				visit(key, inner)
			}
		default:
			leaves[regexp.QuoteMeta(key)] = true
			if text := strings.TrimSpace(fmt.Sprint(v)); len(text) >= leastSecret && text != "true" && text != "false" {
				s.values = append(s.values, text)
			}
		}
	}
	visit("", vars)
	if len(leaves) > 0 {
		keys := strings.Join(slices.Sorted(maps.Keys(leaves)), "|")
		s.named = regexp.MustCompile(`\b(?:vars|variables)\b[^}\n]*[."'\x60\[](?:` + keys + `)(?:$|[^\pL\pN_-])`)
	}
	slices.Sort(s.values)
	return s
}

// In reports that a text names a secret, or holds one.
func (s Secrets) In(text string) bool {
	return s.named != nil && s.named.MatchString(text) ||
		slices.ContainsFunc(s.values, func(value string) bool { return strings.Contains(text, value) })
}

// inNode reports a secret in a value, as it is or as it stands in the source.
func (s Secrets) inNode(doc *document, n *yaml.Node) bool {
	if s.named == nil && len(s.values) == 0 {
		return false
	}
	n = resolve(n)
	if n.Kind == yaml.ScalarNode {
		return s.In(n.Value) || doc != nil && s.In(doc.from.src.scalarAt(doc.pos(n), n))
	}
	return slices.ContainsFunc(n.Content, func(c *yaml.Node) bool { return s.inNode(doc, c) })
}

// Holds reports that a text which a step of the catalog reads or writes names a sensitive variable, or holds its value.
func (c *Catalog) Holds(text string) bool { return c.scope.in.Secrets.In(text) }

// Holding is the step, sensitive where its parameters hold a sensitive variable now that they are known.
func (c *Catalog) Holding(s *Step, secret bool) *Step {
	if s.Sensitive || !secret && !c.scope.in.Secrets.inNode(nil, s.Params.node()) {
		return s
	}
	out := *s
	out.Sensitive = true
	return &out
}

// takeSensitive removes the mark of a file from its variables, and reports it.
func (d *decoder) takeSensitive(root *yaml.Node) (*yaml.Node, bool) {
	flat, marked := *root, false
	flat.Content = nil
	for i := 0; i+1 < len(root.Content); i += 2 {
		if root.Content[i].Value != sensitiveKey {
			flat.Content = append(flat.Content, root.Content[i], root.Content[i+1])
			continue
		}
		if marked = root.Content[i+1].Value == "true"; !marked && root.Content[i+1].Value != "false" {
			d.failf(
				root.Content[i+1],
				"sensitive marks all variables of the file: write true or false, found %s",
				kindName(resolve(root.Content[i+1])),
			)
		}
	}
	return &flat, marked
}

var marked = regexp.MustCompile(`(?m)^` + sensitiveKey + `:[ \t]*true\b`)

// HoldsSecrets reports a file of host variables that nobody else should read: it is marked, or a value in it looks like
// a secret.
func HoldsSecrets(text string) bool {
	f := TextFile{Text: text, src: &source{text: text}}
	return marked.MatchString(text) || len(f.SecretsInClear()) > 0
}
