package trust

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// sopsWalk makes a document of the values of a file.
type sopsWalk struct {
	rule *sopsRule
	open *sopsOpening
}

// sopsPlace is where a value stands. The place of a list is that of its items: SOPS does not tell them apart.
type sopsPlace struct {
	up      *sopsPlace // nil: the top of the document
	key     string
	matches bool // the rule matches one of the keys, or a comment above one of them
}

// keys lead to a place.
func (p *sopsPlace) keys() (keys []string) {
	for ; p.up != nil; p = p.up {
		keys = append(keys, p.key)
	}
	slices.Reverse(keys)
	return keys
}

// String is the place for messages, quoted.
func (p *sopsPlace) String() string { return fmt.Sprintf("%.200q", strings.Join(p.keys(), ".")) }

// authenticated is what SOPS authenticates together with an encrypted value. A key with a colon in it could stand for
// two keys.
func (p *sopsPlace) authenticated() (string, error) {
	keys := p.keys()
	for _, key := range keys {
		if strings.Contains(key, ":") {
			return "", fmt.Errorf("the key %.50q of an encrypted value has a colon in it,"+
				" which SOPS does not tell from a map in a map", key)
		}
	}
	return strings.Join(keys, ":") + ":", nil
}

// walk makes the document, with its values decrypted.
func (f *sopsFile) walk(o *sopsOpening) (*yaml.Node, error) {
	w := &sopsWalk{rule: f.meta.rule, open: o}
	l := w.level(&sopsPlace{})
	l.see(f.document.HeadComment, f.document.LineComment, f.root.HeadComment, f.root.LineComment)
	return w.pairs(f.root, l)
}

// sopsLevel is a map or list that is walked through. Rules over comments count those since the value before.
type sopsLevel struct {
	rule      *sopsRule
	at        *sopsPlace
	commented bool // a comment since the value before matches
}

func (w *sopsWalk) level(at *sopsPlace) *sopsLevel { return &sopsLevel{rule: w.rule, at: at} }

// see takes in comments.
func (l *sopsLevel) see(comments ...string) {
	l.commented = l.commented || l.rule.comment(comments...)
}

// next is the place of the next value of a map.
func (l *sopsLevel) next(key string) *sopsPlace {
	matches := l.at.matches || l.commented || l.rule.key(key)
	l.commented = false
	return &sopsPlace{up: l.at, key: key, matches: matches}
}

// item is the place of the next value of a list.
func (l *sopsLevel) item() *sopsPlace {
	at := *l.at
	at.matches = at.matches || l.commented
	l.commented = false
	return &at
}

// pairs makes a map. Which comments belong to what is as SOPS sees it: those of a map or list as a value are within it.
func (w *sopsWalk) pairs(n *yaml.Node, l *sopsLevel) (*yaml.Node, error) {
	out := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		l.see(key.HeadComment, key.LineComment)
		if value.Kind == yaml.ScalarNode {
			l.see(value.HeadComment, value.LineComment)
		}
		if l.at.up == nil && key.Value == sopsKey {
			continue
		}
		made, err := w.value(value, l.next(key.Value), false)
		if err != nil {
			return nil, err
		}
		if made == nil {
			return nil, fmt.Errorf("line %d: a comment stands where a value belongs", value.Line)
		}
		out.Content = append(out.Content, textNode(key.Value), made)
		if value.Kind == yaml.ScalarNode {
			l.see(value.FootComment)
		}
		l.see(key.FootComment)
	}
	return out, nil
}

// items makes a list, without encrypted comments: SOPS writes them as items.
func (w *sopsWalk) items(n *yaml.Node, l *sopsLevel) (*yaml.Node, error) {
	out := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
	for _, item := range n.Content {
		l.see(item.HeadComment, item.LineComment)
		made, err := w.value(item, l.item(), true)
		if err != nil {
			return nil, err
		}
		if made != nil {
			out.Content = append(out.Content, made)
		}
		l.see(item.FootComment)
	}
	return out, nil
}

// value makes a value, nil of a comment. The comments of an item were seen in its list.
func (w *sopsWalk) value(n *yaml.Node, at *sopsPlace, isItem bool) (*yaml.Node, error) {
	l := w.level(at)
	if !isItem {
		l.see(n.HeadComment, n.LineComment)
	}
	switch n.Kind {
	case yaml.MappingNode:
		return w.pairs(n, l)
	case yaml.SequenceNode:
		return w.items(n, l)
	}
	v, err := w.leaf(n, at)
	if err != nil {
		return nil, fmt.Errorf("line %d: %v: %w", n.Line, at, err)
	}
	if v == (sopsComment{}) {
		return nil, nil
	}
	return valueNode(v)
}

// sopsComment is what an encrypted comment decrypts to.
type sopsComment struct{}

// leaf is what stands for a value that is neither map nor list.
func (w *sopsWalk) leaf(n *yaml.Node, at *sopsPlace) (any, error) {
	isText, isEncrypted := n.ShortTag() == "!!str", strings.HasPrefix(n.Value, sopsBegin)
	switch encrypted := w.rule.encrypted(at.matches); {
	case n.ShortTag() == "!!null" || isText && n.Value == "": // SOPS encrypts neither
	case encrypted && isText && isEncrypted:
		c, err := parseSOPSCipher(n.Value)
		if err != nil {
			return nil, err
		}
		return w.open.encrypted(at, c)
	case encrypted:
		return nil, errors.New("it stands in clear and has to be encrypted")
	case isEncrypted:
		return nil, errors.New("it is encrypted and has to stand in clear")
	}
	var v any
	if n.Decode(&v) != nil {
		return nil, fmt.Errorf("it is not of its YAML type %s", n.ShortTag())
	}
	return v, w.open.plain(v)
}
