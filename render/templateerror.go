package render

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/pullet/pullet/internal/lazyregexp"
)

// execErr is a template error taken apart: text/template has no typed form of it.
type execErr struct {
	line, col int
	at        string // the action's text, as text/template shortens it
	msg       string
}

var templateErr = lazyregexp.New(`(?s)^template: (.*?):(\d+)(?::(\d+))?: (?:executing ".*?" at <(.*?)>: )?(.*)$`)

// templateError gives an error of text/template its position in the source.
func (s *source) templateError(in *scope, err error) *Error {
	var known *Error
	if errors.As(err, &known) { // from a macro: it has a better position of its own
		return known
	}
	var limit *limitError
	if errors.As(err, &limit) {
		return s.errorAt(s.pos(limit.at), "%v", limit)
	}
	m := templateErr.FindStringSubmatch(err.Error())
	if m == nil {
		return &Error{Pos: Position{File: s.path}, Message: err.Error()}
	}
	e := &execErr{at: strings.TrimPrefix(m[4], "weighed "), msg: m[5]}
	e.line, _ = strconv.Atoi(m[2])
	e.col, _ = strconv.Atoi(m[3])
	if e.at == "printed" {
		e.at = pipeline(s.line(e.line), e.col)
	}
	if bad := s.escapedQuote(e); bad != nil {
		return bad
	}
	pos := Position{File: s.path, Line: e.line, Col: s.column(e)}
	e.at = s.wholeField(pos, e.at)
	out := s.errorAt(pos, "%s", plainMessage(e))
	out.cause, out.hearsay, out.event = err, s.about(factWays, e.at), s.about(eventWays, e.at)
	out.few = tooFew.MatchString(e.msg)
	out.reads(s.services(e.line, e.col, out.few), s.servers(e.line, e.col, out.few), err)
	in.explain(out, e)
	return out
}

// pipeline returns the text of the action at a column of a line, shortened.
func pipeline(line string, col int) string {
	text, _, _ := strings.Cut(line[min(max(col, 0), len(line)):], "}}")
	text = strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(text), "-"))
	if len(text) > 60 {
		text = strings.ToValidUTF8(text[:60], "") + "..."
	}
	return text
}

var actionWithEscapes = lazyregexp.New(`\{\{[^}]*?(\\")(?:[^}]|\}[^}])*\}\}`)

// escapedQuote explains an action that escapes its quotes because it stands in a double-quoted text: templates are
// executed before the file is read as YAML, so to them the backslash is one too many.
func (s *source) escapedQuote(e *execErr) *Error {
	line := s.line(e.line)
	m := actionWithEscapes.FindStringSubmatchIndex(line)
	if e.at != "" || m == nil {
		return nil
	}
	out := s.errorAt(Position{File: s.path, Line: e.line, Col: m[2] + 1}, `\" has no meaning in a template action`)
	out.Hint = "write " + strings.ReplaceAll(line[m[0]:m[1]], `\"`, "`")
	return out
}

// column is where the failing action stands in its line. Parse errors have none: the line's first action stands in for
// it.
func (s *source) column(e *execErr) int {
	line := s.line(e.line)
	if i := nearest(line, strings.TrimSuffix(e.at, "..."), e.col); e.at != "" && i >= 0 {
		return i + 1
	}
	if e.col > 0 {
		return e.col + 1
	}
	return max(strings.Index(line, "{{")+1, 1)
}

// nearest is where a text stands in a line next to a column, or -1.
func nearest(line, text string, col int) int {
	best := -1
	for i := 0; text != "" && i <= len(line)-len(text); i++ {
		if line[i:i+len(text)] == text && (best < 0 || abs(i-col) < abs(best-col)) {
			best = i
		}
	}
	return best
}

func abs(n int) int { return max(n, -n) }

var fieldChain = lazyregexp.New(`^[A-Za-z_][\w.]*`)

// wholeField is the action's text with its fields: text/template names only the root of vars.a.b.
func (s *source) wholeField(pos Position, at string) string {
	line := s.line(pos.Line)
	if pos.Col < 1 || pos.Col > len(line) {
		return at
	}
	whole := fieldChain.FindString(line[pos.Col-1:])
	if strings.HasPrefix(whole, at+".") {
		return strings.TrimSuffix(whole, ".")
	}
	return at
}

var errorCalling = lazyregexp.New(`^error calling \w+: `)
var missingKey = lazyregexp.New(`^map has no entry for key "(.*)"$`)

// plainMessage says in plain words what text/template says in its own.
func plainMessage(e *execErr) string {
	if m := missingKey.FindStringSubmatch(e.msg); m != nil {
		return fmt.Sprintf("%s: there is no %q", e.at, m[1])
	}
	msg := errorCalling.ReplaceAllString(e.msg, "")
	if m := missingKey.FindStringSubmatch(msg); m != nil {
		return fmt.Sprintf("%s: there is no %q", e.at, m[1])
	}
	if emptyDot.MatchString(e.msg) {
		return fmt.Sprintf(
			"%s: nothing stands before this dot: variables are vars.NAME, facts server.NAME, and braces for another program "+
				"are written {{ `{{` }}",
			e.at,
		)
	}
	if m := macroField.FindStringSubmatch(e.msg); m != nil {
		return fmt.Sprintf("%s: write macro %q", e.at, m[1])
	}
	if servicesBare.MatchString(e.msg) { // services.NAME, or services without a name
		return fmt.Sprintf("%s: write services %q, its instances, as in {{ range services %[2]q }}{{ .address }}{{ end }}",
			e.at, serviceNamed(e.at))
	}
	if m := stepsField.FindStringSubmatch(e.msg); m != nil {
		return fmt.Sprintf("%s: write (step %q).StdOut", e.at, m[1])
	}
	if e.msg == "unexpected EOF" {
		return "the file ends inside a template action: an if, range or with has no end"
	}
	if e.at != "" && !strings.Contains(msg, e.at) {
		return e.at + ": " + msg
	}
	return msg
}
