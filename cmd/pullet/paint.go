package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/safetext"
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

// inked writes a line of which the beginning is coloured.
func inked(w io.Writer, i ink, begin, rest string) {
	if colour(w) {
		own(w, i.on(begin)+safetext.Text(rest)+"\n")
		return
	}
	fmt.Fprintln(w, begin+rest)
}

// outcomeInk is the colour of what became of a step.
func outcomeInk(o apply.Outcome) ink {
	switch o {
	case apply.Changed:
		return yellow
	case apply.Failed, apply.Unmet:
		return red
	case apply.Pending:
		return cyan
	}
	return noInk
}

// printDiff shows a unified diff, added lines and removed ones in colours.
func printDiff(w io.Writer, diff string) {
	for line := range strings.Lines(diff) {
		line = strings.TrimSuffix(line, "\n")
		inked(w, diffInk(line), line, "")
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
