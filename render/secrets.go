package render

import (
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/pullet/pullet/internal/lazyregexp"
)

// secretPattern is one way in which a secret looks. Its first group, or all of it, is what must not be shown.
type secretPattern struct {
	what    string
	pattern *regexp.Regexp
	literal bool     // only a literal value counts
	words   []string // of which a line with one has at least one, in small letters
}

// secretPatterns: the key names are those that people give to secrets; a long text of base64 under some of them is what
// they look like. They are compiled when something is searched first.
var secretPatterns = sync.OnceValue(func() []secretPattern {
	value := `["']?[ \t]*[:=][ \t]*(?:!!str[ \t]+)?("[^"\n]+"|'[^'\n]+'|[^\s"',}\]#][^\s,}\]]*)`
	return []secretPattern{
		{"a private key", regexp.MustCompile(`-----BEGIN [A-Z ]*PRIVATE KEY-----`), false, []string{"-----begin"}},
		{"an AWS access key", regexp.MustCompile(`\b((?:AKIA|ASIA)[0-9A-Z]{16})\b`), false, []string{"akia", "asia"}},
		{
			"a password",
			regexp.MustCompile(`(?i)\b[\w.-]*(?:password|passwd|passphrase)` + value),
			true,
			[]string{"passw", "passphrase"},
		},
		{
			"a secret",
			regexp.MustCompile(
				`(?i)\b[\w.-]*(?:token|secret|secret_?key|access_?key|api_?key|private_?key)["']?[ \t]*[:=][ ` +
					`\t]*["']?([A-Za-z0-9+/_-]{20,}=*)`,
			),
			true,
			[]string{"token", "secret", "key"},
		},
	}
})

// SecretsInClear are warnings about secrets that stand in the file. No message shows the value.
func (f TextFile) SecretsInClear() ErrorList {
	var out ErrorList
	for _, p := range secretPatterns() {
		out = append(out, p.find(f)...)
	}
	return out
}

// maxSecretLine bounds what is searched of a line: what is longer is data.
const maxSecretLine = 20_000

// matches are those of all lines. The pattern is slow: it sees only lines in which it may find something.
func (p secretPattern) matches(text string) [][]int {
	var out [][]int
	at := 0
	for line := range strings.Lines(text) {
		part := line[:min(len(line), maxSecretLine)]
		lower := strings.ToLower(part)
		if slices.ContainsFunc(p.words, func(w string) bool { return strings.Contains(lower, w) }) {
			for _, m := range p.pattern.FindAllStringSubmatchIndex(part, -1) {
				for i := range m {
					m[i] += at
				}
				out = append(out, m)
			}
		}
		at += len(line)
	}
	return out
}

func (p secretPattern) find(f TextFile) ErrorList {
	var out ErrorList
	for _, m := range p.matches(f.Text) {
		from, to := m[len(m)-2], m[len(m)-1]
		if p.literal && (!literalSecret(strings.Trim(f.Text[from:to], `"'`)) || isComment(f.Text, from)) {
			continue
		}
		if strings.HasPrefix(f.Text[m[0]:m[1]], "NOPASSWD") { // a word of sudoers
			continue
		}
		pos := f.Pos(from)
		e := &Error{
			Pos:      pos,
			Severity: Warning,
			Message:  p.what + " stands here in clear, for everybody who can read the repository",
		}
		e.Hint = "encrypt it with pullet secrets edit vars/NAME.yaml.age, or give it to the hosts as a variable of their " +
			"own, in /etc/pullet/vars.d"
		e.Excerpt = excerpt(
			f.Text[from-(pos.Col-1):from]+"...",
			pos.Line,
			pos.Col,
		) // what follows on the line may belong to the secret
		out = append(out, e)
	}
	return out
}

// literalSecret reports that a value is a secret itself, not a reference to one, a hash of one, or a switch.
func literalSecret(value string) bool {
	lower := strings.ToLower(value)
	for _, known := range []string{
		"true", "false", "yes", "no", "null", "none", "~", "|", ">", "|-", ">-", "prompt", "ask",
	} {
		if lower == known {
			return false
		}
	}
	// ENC[ is encrypted by SOPS, $ is a shell's variable or a crypt hash, * an alias, & an anchor, / a path, < a hint to
	// fill something in.
	return value != "" && !strings.HasPrefix(value, "ENC[") && !strings.ContainsAny(value[:1], "$*&!/<%@|>{[") &&
		!strings.ContainsAny(value, "{}()")
}

// isComment reports that an offset stands behind a # in its line.
func isComment(text string, at int) bool {
	line := text[strings.LastIndexByte(text[:at], '\n')+1 : at]
	return comment.MatchString(line)
}

var comment = lazyregexp.New(`(^|\s)#.*$`)
