package render

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"

	"go.yaml.in/yaml/v4"
)

// secretTexts are the texts of one catalog that come from secrets: the values of secret variables and files, and what
// template functions made of them. It is safe for concurrent use.
type secretTexts struct {
	mu    sync.RWMutex
	keys  map[string]bool
	named *regexp.Regexp  // vars, and the last key of a secret variable in the same action or expression
	exact map[string]bool // all of them
	found []string        // those that are recognised as a part of a text, too; longer ones first
}

const (
	leastSecret = 4  // bytes of the shortest value that is recognised in a text: shorter ones stand everywhere
	leastMade   = 8  // the same of what a function made of one: it may be a word of any text
	leastLine   = 12 // the same of a line of a value
)

func newSecretTexts() *secretTexts {
	return &secretTexts{keys: map[string]bool{}, exact: map[string]bool{}}
}

// none reports that there is no secret at all.
func (s *secretTexts) none() bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.named == nil && len(s.exact) == 0
}

// addVars adds the values of secret variables, and their names.
func (s *secretTexts) addVars(vars map[string]any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.visit("", vars)
	if len(s.keys) > 0 {
		keys := strings.Join(slices.Sorted(maps.Keys(s.keys)), "|")
		s.named = regexp.MustCompile(`\b(?:vars|variables)\b[^}\n]*[."'\x60\[](?:` + keys + `)(?:$|[^\pL\pN_-])`)
	}
}

func (s *secretTexts) visit(key string, value any) {
	if m, ok := mapOf(value); ok {
		for k, inner := range m {
			s.visit(k, inner)
		}
		return
	}
	if list, ok := value.([]any); ok {
		for _, inner := range list {
			s.visit(key, inner)
		}
		return
	}
	s.keys[regexp.QuoteMeta(key)] = true
	text, isText := textOf(value)
	if !isText {
		text = fmt.Sprint(value)
	}
	s.learn(text, leastSecret)
}

// addText adds the text of a secret file.
func (s *secretTexts) addText(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.learn(text, leastSecret)
}

// learn adds a text, which is recognised within others from a length on, and its lines.
func (s *secretTexts) learn(text string, least int) {
	s.learnOne(text, 1<<30)
	text = strings.TrimSpace(text)
	s.learnOne(text, least)
	if strings.Contains(text, "\n") {
		for line := range strings.SplitSeq(text, "\n") {
			s.learnOne(strings.TrimSpace(line), leastLine)
		}
	}
}

func (s *secretTexts) learnOne(text string, least int) {
	if text == "" || text == "true" || text == "false" {
		return
	}
	s.exact[text] = true
	if len(text) < least {
		return
	}
	at, known := slices.BinarySearchFunc(s.found, text, longerFirst)
	if !known {
		s.found = slices.Insert(s.found, at, text)
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

// within reports that a text holds a secret.
func (s *secretTexts) within(text string) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.holds(text)
}

func (s *secretTexts) holds(text string) bool {
	return s.exact[text] || slices.ContainsFunc(s.found, func(known string) bool { return strings.Contains(text, known) })
}

// made notes what a function made of its arguments, if one of them is a secret.
func (s *secretTexts) made(args []any, out any) {
	if s == nil || s.none() || !slices.ContainsFunc(args, s.holdsValue) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	replaced(foreign(out), func(text string) string {
		s.learn(text, leastMade)
		return text
	})
}

// addMade adds a text that was made of secrets.
func (s *secretTexts) addMade(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.learn(text, leastMade)
}

// holdsValue reports a secret among the opaque texts of a value.
func (s *secretTexts) holdsValue(v any) bool {
	if !holds(v) {
		return false
	}
	found := false
	replaced(v, func(text string) string {
		found = found || s.within(text)
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
	return isSecret(n) || s.names(n.Value) ||
		slices.ContainsFunc(
			s.found,
			func(text string) bool { return len(text) >= leastMade && strings.Contains(n.Value, text) },
		)
}

// names reports a text that names a secret variable, such as an action that is executed later.
func (s *secretTexts) names(text string) bool { return s.named != nil && s.named.MatchString(text) }

// redactMistakes keeps secrets out of what is said of a mistake.
func (s *secretTexts) redactMistakes(list ErrorList) {
	if s.none() {
		return
	}
	for _, e := range list {
		e.Message, e.Hint, e.Excerpt = s.redact(e.Message), s.redact(e.Hint), s.redact(e.Excerpt)
	}
}

// sealed is a value of a secret with every text in it opaque: what a secret holds is never read as YAML or as a
// template.
func sealed(v any) any {
	switch v := v.(type) {
	case string:
		return opaque(v)
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
