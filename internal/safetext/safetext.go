// Package safetext says which characters names may have, and makes texts harmless to a terminal. A terminal obeys
// control characters, and what directs the order of writing hides what stands there: a value that others chose may hold
// either.
package safetext

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// obeyed reports a character that a terminal does not just show: the control characters C0, DEL and C1, the marks,
// embeddings and isolates of bidirectional text (Unicode Standard Annex 9), and the separators of lines and paragraphs.
func obeyed(r rune) bool {
	switch {
	case r < ' ', r >= 0x7f && r <= 0x9f:
		return true
	case r == 0x61c, r == 0x200e, r == 0x200f, r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069:
		return true
	}
	return r == 0x2028 || r == 0x2029
}

// Obeyed reports a text with a character that a terminal obeys, newlines and tabs among them, or with bytes that are no
// UTF-8.
func Obeyed(text string) bool { return !utf8.ValidString(text) || strings.ContainsFunc(text, obeyed) }

// Text is a text for a terminal: newlines and tabs stay, another control character becomes its picture (U+2400 and
// following), and what has none becomes U+FFFD.
func Text(text string) string { return strings.Map(picture, text) }

func picture(r rune) rune {
	switch {
	case r == '\n', r == '\t', !obeyed(r):
		return r
	case r < ' ':
		return 0x2400 + r
	case r == 0x7f:
		return 0x2421
	}
	return utf8.RuneError
}

// OneLine returns a text without line breaks: each is shown as it is written in a quoted text. A name that others chose
// cannot pretend to be the next line of what is printed.
func OneLine(text string) string { return lineBreaks.Replace(text) }

var lineBreaks = strings.NewReplacer(
	"\n", `\n`, "\r", `\r`, "\v", `\v`, "\f", `\f`, "\u0085", `\u0085`, "\u2028", `\u2028`, "\u2029", `\u2029`)

// Line is a text in one line of so many bytes at most.
func Line(text string, most int) string {
	text = strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' {
			return ' '
		}
		return picture(r)
	}, Cut(text, most))
	return Cut(text, most) // pictures are longer
}

// Cut is a text of so many bytes at most, with dots where something is left out.
func Cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	end := max(0, most-len("..."))
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + "..."
}

// Headline is the first line of a text, with the line that follows where the first one is a heading, and whether there
// is more.
func Headline(text string) (line string, more bool) {
	line, rest, more := strings.Cut(text, "\n")
	if more && strings.HasSuffix(line, ":") {
		var next string
		next, _, more = strings.Cut(rest, "\n")
		line += " " + next
	}
	return line, more
}

// shellPlain are the characters that a shell leaves alone wherever they stand in a word.
const shellPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./:@%+,-"

// ShellWord is a text as it is typed into a shell as one word: in quotes where it needs them.
func ShellWord(text string) string {
	if text != "" && strings.Trim(text, shellPlain) == "" {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// Some are the first names of a list, at most so many, and how many there are beside them.
func Some(names []string, most int) string {
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}
