package trust

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/pullet/pullet/internal/lazyregexp"
)

// RulesFile is where a repository keeps its rules.
const RulesFile = ".pullet/signers"

// Rules say who may change which paths. No rules let every signer change everything.
type Rules struct {
	file  string
	rules []rule
}

// rule is a line.
type rule struct {
	line    int
	pattern *regexp.Regexp
	names   []string
}

// maxRules bounds the lines of a file: each changed path is held against all of them.
const maxRules = 1000

// ReadRules reads lines of the form
//
//	PATTERN : NAME[, NAME ...]
//
// In a pattern ** stands for any characters, * and ? for those within one name of a path. A name is one of a Signer.
// Like in a file of code owners, the last line that matches a path counts. Lines that begin with # are comments.
func ReadRules(f File) (*Rules, error) {
	r := &Rules{file: f.Name}
	number := 0
	for line := range bytes.Lines(f.Content) {
		number++
		text := strings.TrimSpace(string(line))
		if text == "" || text[0] == '#' {
			continue
		}
		one, err := parseRule(text)
		if err != nil {
			return nil, &LineError{f.Name, number, err}
		}
		one.line = number
		if r.rules = append(r.rules, one); len(r.rules) > maxRules {
			return nil, &LineError{f.Name, number, fmt.Errorf("more than %d rules", maxRules)}
		}
	}
	return r, nil
}

// parseRule reads a line.
func parseRule(text string) (r rule, err error) {
	pattern, names, ok := strings.Cut(text, ":")
	if pattern = strings.TrimSpace(pattern); !ok || pattern == "" {
		return r, fmt.Errorf("invalid rule %q: write PATTERN : NAME, NAME", text)
	}
	if strings.HasPrefix(pattern, "/") {
		return r, fmt.Errorf("pattern %q: paths begin at the top of the repository, without a slash", pattern)
	}
	for name := range strings.SplitSeq(names, ",") {
		if name = strings.TrimSpace(name); name == "" {
			return r, fmt.Errorf("rule for %q: a name is missing", pattern)
		}
		r.names = append(r.names, name)
	}
	r.pattern, err = regexp.Compile(expression(pattern))
	return r, err
}

// wildcards takes a pattern apart.
var wildcards = lazyregexp.New(`\*\*|\*|\?|[^*?]+`)

// expression is a pattern as a regular expression.
func expression(pattern string) string {
	var b strings.Builder
	b.WriteString(`(?s)\A`)
	for _, part := range wildcards.FindAllString(pattern, -1) {
		switch part {
		case "**":
			b.WriteString(`.*`)
		case "*":
			b.WriteString(`[^/]*`)
		case "?":
			b.WriteString(`[^/]`)
		default:
			b.WriteString(regexp.QuoteMeta(part))
		}
	}
	b.WriteString(`\z`)
	return b.String()
}

// Empty reports rules that restrict nothing.
func (r *Rules) Empty() bool { return r == nil || len(r.rules) == 0 }

// RuleError is a path that a signer may not change.
type RuleError struct {
	Path   string
	Signer Signer
	Names  []string // of those who may
	Rule   string   // file:line
}

func (e *RuleError) Error() string {
	return fmt.Sprintf("changes %q, which is for %s (%s), and is signed by %s",
		e.Path, strings.Join(e.Names, ", "), e.Rule, e.Signer)
}

// Allow is a *RuleError for a path that a signer may not change, else nil.
func (r *Rules) Allow(s Signer, path string) error {
	if r.Empty() {
		return nil
	}
	for _, rule := range slices.Backward(r.rules) {
		if !rule.pattern.MatchString(path) {
			continue
		}
		if slices.ContainsFunc(s.Names, func(name string) bool { return slices.Contains(rule.names, name) }) {
			return nil
		}
		return &RuleError{Path: path, Signer: s, Names: rule.names, Rule: fmt.Sprintf("%s:%d", r.file, rule.line)}
	}
	return nil
}
