package main

import (
	"io"
	"strings"

	"github.com/pullet/pullet/internal/safetext"
)

// ink is a colour of a terminal. The words and marks say the same without it.
type ink string

const (
	noInk  ink = ""
	bold   ink = "1"
	red    ink = "31"
	green  ink = "32"
	yellow ink = "33"
	cyan   ink = "36"
)

// on is a text in this colour, if a writer takes colours. What a terminal would obey is made harmless first.
func (i ink) on(text string) string {
	if i == noInk || text == "" {
		return safetext.Text(text)
	}
	return "\x1b[" + string(i) + "m" + safetext.Text(text) + "\x1b[0m"
}

// span is a part of a line in one colour.
type span struct {
	ink  ink
	text string
}

// inked writes a line that is made of parts.
func inked(w io.Writer, parts ...span) error { return emit(w, lineOfSpans(parts)) }

func lineOfSpans(parts []span) (l line) {
	for _, s := range parts {
		if from := len(l.text); s.ink != noInk && s.text != "" {
			l.marks = append(l.marks, mark{from, from + len(s.text), s.ink})
		}
		l.text += s.text
	}
	return l
}

// wordInk is the colour of a state, wherever it is shown: of a node, a group, a rollout, a step, a run, a member. Of
// several words, such as "closed, opens 08:00", the first one counts.
func wordInk(state string) ink {
	word, rest, _ := strings.Cut(state, " ")
	switch strings.TrimRight(word, ",:") {
	case "ok", "done", "success", "finished", "current", "joined", "alive", "ready", "complete", "answers":
		return green
	case "changed", "change", "upgrading", "running", "open", "warn", "comes", "invited", "paused", "parked":
		return yellow
	case "waiting", "pending", "closed":
		return cyan
	case "failed", "unmet", "lost", "missing", "halted", "bad", "away", "undone", "fails", "unknown", "refused", "stopped":
		return red
	case "not": // answering, complete
		if rest != "begun" {
			return red
		}
	}
	return noInk
}

// stateHeading reports a column of states by its heading.
func stateHeading(heading string) bool {
	switch strings.TrimSpace(heading) {
	case "STATE", "RESULT", "ENDED", "PROVISIONED", "CONFIGURED", "VALIDATED", "ROLLOUT", "NODE IS":
		return true
	}
	return false
}

// counted are the parts of a text such as "3 ok, 1 failed in 2s", each number in the colour of what it counts. Nothing
// is as if it were not there.
func counted(text string) []span {
	var out []span
	for i, part := range strings.Split(text, ", ") {
		if i > 0 {
			out = append(out, span{noInk, ", "})
		}
		number, what, _ := strings.Cut(part, " ")
		said, rest, more := strings.Cut(what, " in ")
		if more {
			rest = " in " + rest
		}
		paint := wordInk(strings.TrimPrefix(said, "to "))
		if number == "0" {
			paint = noInk
		}
		out = append(out, span{paint, number + " " + said}, span{noInk, rest})
	}
	return out
}

// printDiff shows a unified diff, added lines and removed ones in colours.
func printDiff(w io.Writer, diff string) {
	for line := range strings.Lines(diff) {
		line = strings.TrimSuffix(line, "\n")
		_ = inked(w, span{diffInk(line), line}) // as with every line for people
	}
}

func diffInk(line string) ink {
	switch {
	case strings.HasPrefix(line, "--- "), strings.HasPrefix(line, "+++ "):
		return bold
	case strings.HasPrefix(line, "+"):
		return green
	case strings.HasPrefix(line, "-"):
		return red
	case strings.HasPrefix(line, "@@"):
		return cyan
	}
	return noInk
}
