package render

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"go.yaml.in/yaml/v4"

	"github.com/pullet/pullet/internal/lazyregexp"
)

// secretTexts are the texts of one catalog that come from secrets: the values of secret variables and files, and what
// template functions made of them. It is safe for concurrent use.
type secretTexts struct {
	mu    sync.RWMutex
	keys  map[string]bool // the last keys of secret variables
	paths map[string]bool // their whole paths: db.password
	exact map[string]bool // all texts: opaque ones are compared with them
	found []string        // those that are recognised as a part of a text, too; longer ones first
	fresh []string        // not merged into found yet
}

const (
	leastSecret = 4        // bytes of the shortest value that is recognised in a text: shorter ones stand everywhere
	leastMade   = 8        // the same of what a function made of one: it may be a word of any text
	leastLine   = 8        // the same of a line of a value
	mostLines   = 64 << 10 // bytes of a value whose lines are recognised each for itself
	mostSecrets = 10_000   // texts that are recognised in others, which every text is searched for
)

func newSecretTexts() *secretTexts {
	return &secretTexts{keys: map[string]bool{}, paths: map[string]bool{}, exact: map[string]bool{}}
}

// none reports that there is no secret at all.
func (s *secretTexts) none() bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return len(s.keys) == 0 && len(s.exact) == 0
}

// addVars adds the values of secret variables, and their names. There may be too many.
func (s *secretTexts) addVars(vars map[string]any) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.visit("", "", vars)
	return s.merge()
}

// merge orders the texts that learn found. There may be too many.
func (s *secretTexts) merge() error {
	if len(s.fresh) > 100 {
		s.found = append(s.found, s.fresh...)
		slices.SortFunc(s.found, longerFirst)
		s.found = slices.Compact(s.found)
	} else {
		for _, text := range s.fresh {
			if at, known := slices.BinarySearchFunc(s.found, text, longerFirst); !known {
				s.found = slices.Insert(s.found, at, text)
			}
		}
	}
	s.fresh = nil
	if len(s.found) > mostSecrets || len(s.exact) > mostSecrets {
		return fmt.Errorf(
			"more than %d secrets and lines of secrets: keep data that is no secret out of encrypted files",
			mostSecrets,
		)
	}
	return nil
}

func (s *secretTexts) visit(path, key string, value any) {
	if len(s.exact) > mostSecrets {
		return
	}
	if m, ok := mapOf(value); ok {
		for k, inner := range m {
			s.visit(path+"."+k, k, inner)
		}
		return
	}
	if list, ok := value.([]any); ok {
		for _, inner := range list {
			s.visit(path, key, inner)
		}
		return
	}
	s.keys[key], s.paths[strings.TrimPrefix(path, ".")] = true, true
	for _, text := range textsIn(revealed(value), nil) {
		s.learn(text, leastSecret)
	}
}

// addText adds the text of a secret file.
func (s *secretTexts) addText(text string) error { return s.add(text, leastSecret) }

// addMade adds a text that was made of secrets.
func (s *secretTexts) addMade(text string) error { return s.add(text, leastMade) }

func (s *secretTexts) add(text string, least int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.learn(text, least)
	return s.merge()
}

// learn adds a text, which is recognised within others from a length on, as it is and as JSON has it; and its lines.
func (s *secretTexts) learn(text string, least int) {
	if text == "" || text == "true" || text == "false" {
		return
	}
	s.exact[text] = true
	text = strings.TrimSpace(text)
	s.learnPart(text, least)
	if !strings.Contains(text, "\n") || len(text) > mostLines {
		return
	}
	for line := range strings.SplitSeq(text, "\n") {
		if line = strings.TrimSpace(line); !strings.HasPrefix(line, "-----") { // every PEM file has such lines
			s.learnPart(line, leastLine)
		}
	}
}

func (s *secretTexts) learnPart(text string, least int) {
	if len(text) < least {
		return
	}
	s.fresh = append(s.fresh, text)
	for _, escaped := range []string{insideJSON(text, "toJson"), insideJSON(text, "toRawJson")} {
		if escaped != text {
			s.fresh = append(s.fresh, escaped)
		}
	}
}

// longerFirst orders texts so that one stands before those that are parts of it.
func longerFirst(a, b string) int {
	if len(a) != len(b) {
		return len(b) - len(a)
	}
	return strings.Compare(a, b)
}

// in reports that a text names a secret, or holds one.
func (s *secretTexts) in(text string) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.names(text) || s.holds(text)
}

// What an action or expression reads of variables: the whole action, the keys in it, a path.
var (
	readsOfVars = lazyregexp.New(`\b(?:vars|variables)\b[^}\n]*`)
	keyOfVars   = lazyregexp.New(`[."'\x60\[]([\pL\pN_-]+)`)
	pathOfVars  = lazyregexp.New(`\b(?:vars|variables)((?:\.[\pL\pN_]+)+)`)
)

// names reports a text that reads a variable with the last key of a secret one. It may be another one.
func (s *secretTexts) names(text string) bool {
	if len(s.keys) == 0 || !strings.Contains(text, "var") {
		return false
	}
	for _, read := range readsOfVars.FindAllString(text, -1) {
		for _, key := range keyOfVars.FindAllStringSubmatch(read, -1) {
			if s.keys[key[1]] {
				return true
			}
		}
	}
	return false
}

// namesPath reports a text that reads a secret variable by its path.
func (s *secretTexts) namesPath(text string) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, m := range pathOfVars.FindAllStringSubmatch(text, -1) {
		if s.paths[strings.TrimPrefix(m[1], ".")] {
			return true
		}
	}
	return false
}

// within reports that a text holds a secret.
func (s *secretTexts) within(text string) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.holds(text)
}

func (s *secretTexts) holds(text string) bool {
	return slices.ContainsFunc(s.found, func(known string) bool { return strings.Contains(text, known) })
}

// has reports an opaque text that is a secret, however short, or holds one.
func (s *secretTexts) has(text string) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.exact[text] || s.holds(text)
}

// made notes what a function made of its arguments, if one of them is a secret.
func (s *secretTexts) made(args []any, out any) error {
	if s == nil || s.none() || !slices.ContainsFunc(args, s.holdsValue) {
		return nil
	}
	for _, text := range textsIn(revealed(out), nil) {
		if err := s.addMade(text); err != nil {
			return err
		}
	}
	return nil
}

// hasAny is has for one of several texts.
func (s *secretTexts) hasAny(texts []string) bool {
	return !s.none() && slices.ContainsFunc(texts, s.has)
}

// holdsValue reports a secret among the opaque texts of a value.
func (s *secretTexts) holdsValue(v any) bool {
	if !holds(v) {
		return false
	}
	found := false
	replaced(v, func(text string) string {
		found = found || s.has(text)
		return text
	})
	return found
}

// redact is a text with a word in place of every secret.
func (s *secretTexts) redact(text string) string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, known := range s.found {
		text = strings.ReplaceAll(text, known, shownSecret)
	}
	return text
}

// shownSecret stands where a secret would.
const shownSecret = "(secret)"

// namesIn is namesPath for a value.
func (s *secretTexts) namesIn(n *yaml.Node) bool {
	n = resolve(n)
	return s.namesPath(n.Value) || slices.ContainsFunc(n.Content, s.namesIn)
}

// inNode reports a secret in a value, as it is or as it stands in the source.
func (s *secretTexts) inNode(doc *document, n *yaml.Node) bool {
	if s.none() {
		return false
	}
	n = resolve(n)
	if n.Kind == yaml.ScalarNode {
		return isSecret(n) || s.in(n.Value) || doc != nil && s.in(doc.from.src.scalarAt(doc.pos(n), n))
	}
	return slices.ContainsFunc(n.Content, func(c *yaml.Node) bool { return s.inNode(doc, c) })
}

// certainIn reports a secret in a value that is no word of any text by chance.
func (s *secretTexts) certainIn(n *yaml.Node) bool {
	if s.none() {
		return false
	}
	n = resolve(n)
	if n.Kind != yaml.ScalarNode {
		return slices.ContainsFunc(n.Content, s.certainIn)
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	return isSecret(n) ||
		slices.ContainsFunc(
			s.found,
			func(text string) bool { return len(text) >= leastMade && strings.Contains(n.Value, text) },
		)
}

// redactMistakes keeps secrets out of what is said of a mistake.
func (s *secretTexts) redactMistakes(list ErrorList) {
	if s.none() {
		return
	}
	for _, e := range list {
		e.Message, e.Hint, e.Excerpt = s.redact(e.Message), s.redact(e.Hint), s.redact(e.Excerpt)
	}
}

// opaqueInt and opaqueFloat are numbers of secrets. Templates count and compare with them as with any number.
type (
	opaqueInt   int64
	opaqueFloat float64
)

// sealed is a value of a secret with every text and number in it opaque: what a secret holds is never read as YAML or
// as a template.
func sealed(v any) any {
	switch v := v.(type) {
	case string:
		return opaque(v)
	case int:
		return opaqueInt(v)
	case int64:
		return opaqueInt(v)
	case float64:
		return opaqueFloat(v)
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, value := range v {
			out[key] = sealed(value)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, value := range v {
			out[i] = sealed(value)
		}
		return out
	}
	return v
}
