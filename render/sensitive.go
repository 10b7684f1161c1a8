package render

import (
	"go.yaml.in/yaml/v4"

	"github.com/pullet/pullet/internal/lazyregexp"
)

// Secrets are host variables that are marked as sensitive: their values stay out of reports. A step is sensitive if it,
// or a template that it executes, names one of them or holds the value of one. The zero value has none.
type Secrets struct{ vars map[string]any }

// sensitiveKey marks all variables of a file as sensitive, at its top.
const sensitiveKey = "sensitive"

// KnownSecrets are the secrets that a catalog knows: those of sensitive variables and encrypted files, and what
// templates made of them.
type KnownSecrets struct{ c *Catalog }

// Secrets are those that the catalog knows. They grow while steps run.
func (c *Catalog) Secrets() KnownSecrets { return KnownSecrets{c} }

// Any reports that there is one.
func (k KnownSecrets) Any() bool { return !k.c.scope.secrets.none() }

// Hold reports that a text which a step reads or writes names a secret, or holds one.
func (k KnownSecrets) Hold(text string) bool { return k.c.scope.secrets.in(text) }

// Quoted reports that a text holds a secret.
func (k KnownSecrets) Quoted(text string) bool { return text != "" && k.c.scope.secrets.within(text) }

// Redact is a text for people, with a word in place of every secret.
func (k KnownSecrets) Redact(text string) string { return k.c.scope.secrets.redact(text) }

// Redacted are mistakes without the secrets that they quote.
func (k KnownSecrets) Redacted(list ErrorList) ErrorList {
	k.c.scope.secrets.redactMistakes(list)
	return list
}

// In reports a secret in a parameter.
func (k KnownSecrets) In(p Params, name string) bool {
	n := p.lookup(name)
	return n != nil && k.c.scope.secrets.certainIn(n)
}

// Named reports a parameter that is a template and reads a secret variable by its path.
func (k KnownSecrets) Named(p Params, name string) bool {
	n := p.lookup(name)
	return n != nil && k.c.scope.secrets.namesIn(n)
}

// Holding is the step, sensitive where its parameters hold a secret now that they are known, or where it is said to
// read one.
func (k KnownSecrets) Holding(s *Step, reads bool) *Step {
	if s.Secret || !reads && !k.c.scope.secrets.inNode(nil, s.Params.node()) {
		return s
	}
	out := *s
	out.Sensitive, out.Secret = true, true
	return &out
}

// Unopened are the encrypted files that were not opened because there are no keys.
func (k KnownSecrets) Unopened() []string { return k.c.scope.closed.unknown }

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

var marked = lazyregexp.New(`(?m)^` + sensitiveKey + `:[ \t]*true\b`)

// HoldsSecrets reports a file of host variables that nobody else should read: it is marked, or a value in it looks like
// a secret.
func HoldsSecrets(text string) bool {
	f := TextFile{Text: text, src: &source{text: text}}
	return marked.MatchString(text) || len(f.SecretsInClear()) > 0
}
