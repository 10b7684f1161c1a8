package render

import (
	"fmt"
	"io/fs"
	"maps"
	"path"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// SecretsFile says who may read the encrypted files of a repository.
const SecretsFile = "secrets.yaml"

// SealedSuffix ends the names of encrypted files.
const SealedSuffix = ".age"

// SecretRules is secrets.yaml: the keys of hosts and people, and who may read which encrypted files.
type SecretRules struct {
	Metadata *Metadata          `yaml:"metadata"` // names the file; it changes nothing
	Hosts    map[string]Strings `yaml:"hosts"`    // host name -> its public SSH host key, or an age key
	People   map[string]Strings `yaml:"people"`   // name -> public keys of SSH or age
	Files    secretFiles        `yaml:"files"`    // by pattern; the last one that matches a path counts

	doc *document
}

// SecretRule says who may read the files that a pattern matches.
type SecretRule struct {
	Targets Strings `yaml:"targets"` // of hosts
	People  Strings `yaml:"people"`  // names below people

	Pattern string   `yaml:"-"`
	targets []Target // parsed
	key     *yaml.Node
}

// secretFiles are rules in the order of the file.
type secretFiles []SecretRule

func (f *secretFiles) decode(d *decoder, n *yaml.Node) {
	if n.Kind != yaml.MappingNode {
		d.failf(
			n,
			"expected a map of patterns such as 'vars/db/**': {targets: [role=db], people: [ada]}, found %s",
			kindName(n),
		)
		return
	}
	for _, e := range entries(n) {
		rule := SecretRule{Pattern: e.key.Value, key: e.key}
		d.into(e.value, &rule)
		if _, err := path.Match(withoutBelow(rule.Pattern), ""); err != nil || strings.HasPrefix(rule.Pattern, "/") {
			d.failf(
				e.key,
				"invalid pattern %q: paths begin at the top of the repository, as in vars/db/** or files/*.age",
				rule.Pattern,
			)
		}
		for _, text := range rule.Targets {
			target, err := ParseTarget(text)
			if err != nil {
				d.failf(e.value, "%v", err)
				continue
			}
			rule.targets = append(rule.targets, target)
		}
		*f = append(*f, rule)
	}
}

func (f *secretFiles) shape() *Shape {
	return &Shape{Kind: Table, Name: "rules by pattern", Elem: ShapeOf(reflect.TypeFor[SecretRule]()), NotNull: true}
}

// withoutBelow is a pattern without the /** at its end.
func withoutBelow(pattern string) string { return strings.TrimSuffix(pattern, "/**") }

// covers reports a path that the pattern matches: * and ? stand for characters of one name, /** at the end for all
// below.
func (r SecretRule) covers(name string) bool {
	pattern := withoutBelow(r.Pattern)
	if pattern == "**" {
		return true
	}
	if pattern != r.Pattern {
		names := strings.Split(name, "/")
		depth := strings.Count(pattern, "/") + 1
		if len(names) <= depth {
			return false
		}
		name = strings.Join(names[:depth], "/")
	}
	ok, err := path.Match(pattern, name)
	return err == nil && ok
}

// Meant reports a node that may read the files of the rule.
func (r SecretRule) Meant(n Node) bool {
	return slices.ContainsFunc(r.targets, func(t Target) bool { return t.Matches(n.Name, n.Labels) })
}

// For is the rule of an encrypted file; false where none covers it.
func (s *SecretRules) For(name string) (SecretRule, bool) {
	if s == nil {
		return SecretRule{}, false
	}
	for _, rule := range slices.Backward(s.Files) {
		if rule.covers(name) {
			return rule, true
		}
	}
	return SecretRule{}, false
}

// ErrorAt is a mistake at the entry of a host, a person or a file; without a name it is about the file as a whole.
func (s *SecretRules) ErrorAt(section, name, format string, args ...any) *Error {
	if s == nil || s.doc.root == nil {
		return (&source{path: SecretsFile}).errorAt(Position{File: SecretsFile}, format, args...)
	}
	return s.doc.errorAt(s.doc.find(section, name), format, args...)
}

// SecretRules reads secrets.yaml of a layer; nil where it has none. It is no template.
func (r *Repository) SecretRules(l Layer) (*SecretRules, error) {
	p, found := locateIn(l, SecretsFile)
	if !found {
		return nil, nil
	}
	text, err := fs.ReadFile(l.FS, SecretsFile)
	if err != nil {
		return nil, ErrorList{
			{Pos: Position{File: r.displayName(p)}, Message: fmt.Sprintf("cannot be read: %v", plainFSError(err))},
		}
	}
	return ParseSecretRules(r.displayName(p), text)
}

// ParseSecretRules reads the text of a secrets.yaml. The error is an ErrorList.
func ParseSecretRules(name string, text []byte) (*SecretRules, error) {
	doc, errs := parseYAML(&rendered{src: &source{path: name, text: string(text)}, text: text})
	if len(errs) > 0 {
		return nil, errs.Err()
	}
	out := &SecretRules{doc: doc}
	if doc.root == nil {
		return out, nil
	}
	d := &decoder{doc: doc}
	d.into(fileBody(doc.root, reflect.TypeFor[SecretRules]()), out)
	out.checkNames(d)
	return out, d.errs.Err()
}

// checkNames finds people without a key.
func (s *SecretRules) checkNames(d *decoder) {
	for _, rule := range s.Files {
		for _, name := range rule.People {
			if _, known := s.People[name]; !known {
				d.failf(rule.key, "there is no %q below people", name)
				d.errs[len(d.errs)-1].Hint = DidYouMean(name, slices.Collect(maps.Keys(s.People)))
			}
		}
	}
}
