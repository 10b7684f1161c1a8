package render

import (
	"regexp"
	"slices"

	"go.yaml.in/yaml/v4"
)

// Secrets are host variables that are marked as sensitive: their values stay out of reports. A step is sensitive if it,
// or a template that it executes, names one of them or holds the value of one. The zero value has none.
type Secrets struct{ vars map[string]any }

// sensitiveKey marks all variables of a file as sensitive, at its top.
const sensitiveKey = "sensitive"

// Holds reports that a text which a step of the catalog reads or writes names a secret, or holds one.
func (c *Catalog) Holds(text string) bool { return c.scope.secrets.in(text) }

// Redact is a text for people, with a word in place of every secret that the catalog knows.
func (c *Catalog) Redact(text string) string { return c.scope.secrets.redact(text) }

// Redacted are mistakes of the catalog without the secrets that they quote.
func (c *Catalog) Redacted(list ErrorList) ErrorList {
	c.scope.secrets.redactMistakes(list)
	return list
}

// Quotes reports that a text holds a secret that the catalog knows.
func (c *Catalog) Quotes(text string) bool { return text != "" && c.scope.secrets.within(text) }

// HasSecrets reports that the catalog knows a secret.
func (c *Catalog) HasSecrets() bool { return !c.scope.secrets.none() }

// SecretIn reports a secret in a parameter.
func (c *Catalog) SecretIn(p Params, name string) bool {
	n := p.lookup(name)
	if n == nil {
		return false
	}
	return c.scope.secrets.certainIn(n) ||
		slices.ContainsFunc(placeholders(n), func(number int) bool { return c.scope.secrets.in(c.scope.waiting[number].text) })
}

// Unopened are the encrypted files that were not opened because there are no keys.
func (c *Catalog) Unopened() []string { return c.scope.closed.unknown }

// Holding is the step, sensitive where its parameters hold a secret now that they are known.
func (c *Catalog) Holding(s *Step, secret bool) *Step {
	if s.Secret || !secret && !c.scope.secrets.inNode(nil, s.Params.node()) {
		return s
	}
	out := *s
	out.Sensitive, out.Secret = true, true
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
