package newcomer

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/pullet/pullet/internal/lazyregexp"
)

// SyntaxHint is the hint for a line that is no YAML, at a column; "" where nothing is known.
func SyntaxHint(message, line string, col int) string {
	rest := line[min(max(col-1, 0), len(line)):]
	switch {
	case strings.Contains(line, "{%"):
		return JinjaHint(line)
	case strings.HasPrefix(line, "\t"):
		return "indent with blanks: YAML does not allow tabs there"
	case strings.Contains(message, "cannot start any token") && rest != "":
		return fmt.Sprintf("put a text that begins with %c in quotes", []rune(rest)[0])
	case strings.Contains(message, "scanning an alias"):
		return "a star begins an alias: put the text in quotes, such as '*'"
	case strings.Contains(message, "scanning an anchor"):
		return "an ampersand begins an anchor: put the text in quotes"
	case strings.Contains(message, "did not find expected key") && quotedStart.MatchString(line):
		return "the text goes on behind its closing quote: put all of it in quotes of the other kind"
	case strings.Contains(message, "expected ',' or '}'") && strings.HasPrefix(rest, ":"):
		return "a text with a colon and a blank has to be in quotes"
	case strings.Contains(message, "mapping values are not allowed"):
		return "keys of one map stand in one column, and a text with a colon and a blank in quotes"
	case strings.Contains(message, "found multiple"):
		return "a file is one document: put what stands behind the --- into a file of its own"
	case strings.Contains(message, "UTF-8"):
		return "save the file as UTF-8"
	}
	return ""
}

// quotedStart is a value that begins with a quoted text and goes on behind it: key: 'a' in list.
var quotedStart = lazyregexp.New(`:\s+('[^']*'|"[^"]*")\s*[^\s#,}\]]`)

// RealPlace is where something is that the parser of YAML gives no place for: what is no UTF-8, what nobody can read, a
// second document.
func RealPlace(text, message string, line, col int) (int, int) {
	at := -1
	switch {
	case strings.Contains(message, "UTF-8"):
		for i := 0; i < len(text) && at < 0; {
			r, size := utf8.DecodeRuneInString(text[i:])
			if r == utf8.RuneError && size == 1 {
				at = i
			}
			i += size
		}
	case strings.Contains(message, "control characters"):
		at = strings.IndexFunc(
			text,
			func(r rune) bool { return r < ' ' && r != '\n' && r != '\r' && r != '\t' || r == 0x7f },
		)
	case strings.Contains(message, "found multiple"):
		if m := documentMark.FindAllStringIndex(text, -1); len(m) > 0 {
			at = m[len(m)-1][0]
			if m[0][0] > 0 && strings.TrimSpace(text[:m[0][0]]) != "" { // the first one ends the first document
				at = m[0][0]
			}
		}
	}
	if at < 0 {
		return line, col
	}
	return strings.Count(text[:at], "\n") + 1, at - strings.LastIndexByte(text[:at], '\n')
}

var documentMark = lazyregexp.New(`(?m)^---`)

// ParseHint is the hint for a template that does not parse.
func ParseHint(message, line string) string {
	switch {
	case strings.HasPrefix(message, "bad character U+005B"):
		return bracketHint(line)
	case strings.HasPrefix(message, "bad character U+002D"):
		return `a name with a dash is read by: index vars "my-name"`
	case strings.HasPrefix(message, `unexpected "(" in operand`):
		return `arguments follow a function with blanks: macro "name" "argument"`
	case strings.HasPrefix(message, `unexpected "}" in operand`):
		return "an action ends with }}"
	case strings.HasPrefix(message, "bad character U+0027"), strings.Contains(message, "malformed character constant"):
		return "texts in templates stand in double quotes or backquotes"
	}
	return ""
}

// bracketed is an element of a map as other languages read it.
var bracketed = lazyregexp.New(`([\w.]+)\[\s*['"\x60]([^'"\x60\]]+)['"\x60]\s*\](\(\s*(?:['"]([^'"]*)['"])?)?`)

// bracketHint is how an element in brackets is written here.
func bracketHint(line string) string {
	const none = "there are no brackets in templates: write "
	m := bracketed.FindStringSubmatch(line)
	switch {
	case m == nil:
		return none + `vars.name, or index vars "name"`
	case m[1] == "steps":
		return fmt.Sprintf("%s(step %q)", none, m[2])
	case m[1] == "macros" && m[4] != "":
		return fmt.Sprintf("%smacro %q %q", none, m[2], m[4])
	case m[1] == "macros":
		return fmt.Sprintf("%smacro %q", none, m[2])
	case strings.HasPrefix(m[1], "services"):
		return fmt.Sprintf("%sservices %q", none, m[2])
	case slices.Contains([]string{"vars", "variables", "server", "servervars"}, strings.SplitN(m[1], ".", 2)[0]):
		return fmt.Sprintf("%sindex %s %q", none, m[1], m[2])
	}
	return none + `vars.name, or index vars "name"`
}

// EntryHint shows how an entry of a list is written where a map is expected.
func EntryHint(first string, text bool) string {
	if key, value, ok := strings.Cut(first, "="); ok && text {
		return fmt.Sprintf("write {%s: %s}", key, value)
	}
	if text {
		return fmt.Sprintf("write {%s: ...}", first)
	}
	return fmt.Sprintf("write {%s: {}}", first)
}
