package render

import (
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/pullet/pullet/internal/safetext"
	"github.com/pullet/pullet/render/newcomer"
)

// Position is a place in a file of a state repository. Line and Col count from 1; a zero Line means the file as a
// whole.
type Position struct {
	File string `json:"file"`
	Line int    `json:"line,omitempty"`
	Col  int    `json:"col,omitempty"`
}

// String is "file:line:col", which editors and terminals make clickable.
func (p Position) String() string {
	if p.Line == 0 {
		return p.File
	}
	return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Col)
}

// Severity says whether a finding stops a version. The zero Severity does.
type Severity int

// The severities. A Warning is about what works, and still is most likely not what was meant. A Note says what will
// happen.
const (
	Mistake Severity = iota
	Warning
	Note
)

// String is "error", "warning" or "note", also as JSON.
func (s Severity) String() string { return [...]string{"error", "warning", "note"}[s] }

// MarshalText is String.
func (s Severity) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Error is one mistake in a state repository.
type Error struct {
	Pos      Position `json:"pos"`
	Severity Severity `json:"severity"`
	Message  string   `json:"message"`
	Hint     string   `json:"hint,omitempty"`  // what to do about it
	Hosts    []string `json:"hosts,omitempty"` // for which it was found, where others do not have it
	Excerpt  string   `json:"-"`               // the source line, with a caret below the place
	// Services that the failing action or expression reads; "" is one whose name it computes.
	Services []string `json:"-"`
	// Servers are targets of the nodes that it reads; "" is one that it computes, or all nodes.
	Servers []string `json:"-"`
	few     bool     // more instances of a service, or more nodes, may end it
	line    string   // of the source, whole
	cause   error    // what the message tells, for those who decide; nil: nothing but the message
	hearsay bool     // it is about a fact
	event   bool     // it is about what an event says
	lost    bool     // it is about a value that a template which failed would have made
}

// Unwrap is the cause, such as ErrNotYet; nil where there is none but the message.
func (e *Error) Unwrap() error { return e.cause }

// Error is the mistake in one line, whatever the names in it are.
func (e *Error) Error() string {
	msg := e.Message
	if e.Severity != Mistake {
		msg = e.Severity.String() + ": " + msg
	}
	if e.Pos != (Position{}) { // else it is about no file
		msg = e.Pos.String() + ": " + msg
	}
	if e.Hint != "" {
		msg += " (" + e.Hint + ")"
	}
	if len(e.Hosts) > 0 {
		msg += " [" + SomeHosts(e.Hosts) + "]"
	}
	return safetext.OneLine(msg)
}

// SomeHosts are the first hosts, and how many there are beside them.
func SomeHosts(hosts []string) string { return safetext.Some(hosts, 3) }

// ErrorList is every mistake that was found, in the order of the files.
type ErrorList []*Error

// Error shows all mistakes, each with its source line.
func (l ErrorList) Error() string {
	var b strings.Builder
	for i, e := range l {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(e.Error())
		if e.Excerpt != "" {
			b.WriteString("\n" + e.Excerpt)
		}
	}
	return b.String()
}

// Unwrap gives the mistakes one by one, for errors.Is and errors.As.
func (l ErrorList) Unwrap() []error {
	out := make([]error, len(l))
	for i, e := range l {
		out[i] = e
	}
	return out
}

// Err is the list as an error: nil when it is empty.
func (l ErrorList) Err() error {
	if len(l) == 0 {
		return nil
	}
	return l.Sorted()
}

// Mistakes are the findings that stop a version: the list without warnings and notes.
func (l ErrorList) Mistakes() ErrorList {
	return slices.DeleteFunc(slices.Clone(l), func(e *Error) bool { return e.Severity != Mistake })
}

// Count is how many findings are of a severity.
func (l ErrorList) Count(s Severity) int {
	n := 0
	for _, e := range l {
		if e.Severity == s {
			n++
		}
	}
	return n
}

// Sorted orders by position and drops what was said twice.
func (l ErrorList) Sorted() ErrorList {
	out := append(ErrorList(nil), l...)
	sort.SliceStable(out, func(i, j int) bool {
		a, b := out[i].Pos, out[j].Pos
		if a.File != b.File {
			return a.File < b.File
		}
		if a.Line != b.Line {
			return a.Line < b.Line
		}
		return a.Col < b.Col
	})
	seen := map[string]bool{}
	kept := out[:0]
	for _, e := range out {
		if !seen[e.Error()] {
			seen[e.Error()] = true
			kept = append(kept, e)
		}
	}
	return kept
}

// excerpt is a line with a caret under col. Tabs become single blanks so that the caret stands right.
func excerpt(line string, number, col int) string {
	const most = 160
	src := strings.ReplaceAll(strings.TrimRight(line, "\r"), "\t", " ")
	src = strings.ToValidUTF8(src, "?")
	if len(src) > most || col < 1 {
		return ""
	}
	before := fmt.Sprintf("%5d | ", number)
	return before + src + "\n" + strings.Repeat(" ", len(before)+min(col-1, len(src))) + "^"
}

// Nearest is the known name that a misspelt one most likely means, or "" when none is near.
func Nearest(name string, known []string) string { return newcomer.Nearest(name, known) }

// nearHint returns the hint for a misspelled name; "" if no known one is like it.
func nearHint(name string, known []string) string {
	if near := Nearest(name, known); near != "" {
		return fmt.Sprintf("did you mean %q?", near)
	}
	return ""
}

// DidYouMean is the hint for a name that is not known: the nearest one, or else the names that are, if they are few.
func DidYouMean(name string, known []string) string {
	if near := nearHint(name, known); near != "" {
		return near
	}
	if len(known) == 0 || len(known) > 24 {
		return ""
	}
	sort.Strings(known)
	return "known: " + strings.Join(known, ", ")
}
