package main

import (
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/term"

	"github.com/pullet/pullet/plain"
)

// screen shows a fleet that changes: on a terminal a table that is redrawn, elsewhere a line for each change.
type screen struct {
	w       io.Writer
	live    bool
	colours bool
	drawn   int // lines of the table that are on the terminal
	last    map[string]string
	started time.Time
}

func newScreen(w io.Writer) *screen {
	return &screen{w: w, live: terminal(w), colours: colour(w), last: map[string]string{}, started: time.Now()}
}

// say prints a paragraph above what follows.
func (s *screen) say(format string, args ...any) {
	text := plain.Text(fmt.Sprintf(format, args...))
	if s.colours {
		text = "\x1b[1m" + text + "\x1b[0m"
	}
	own(s.w, "\n"+text+"\n")
}

// show brings the fleet's picture up to date.
func (s *screen) show(v *fleetStatus) {
	if s.live {
		s.redraw(v)
		return
	}
	for _, n := range v.Nodes {
		line := fmt.Sprintf("%-7s %-7s %-9s %s", n.Node, v.shown(n.Version), n.State, n.Why)
		if s.last[n.Node] != line {
			s.last[n.Node] = line
			fmt.Fprintf(s.w, "%5.1fs  %s\n", time.Since(s.started).Seconds(), strings.TrimSpace(line))
		}
	}
	for _, h := range v.Halted {
		if line := "halted: " + h.Why(); s.last[h.Group+"!"] != line {
			s.last[h.Group+"!"] = line
			fmt.Fprintf(s.w, "%5.1fs  %s\n", time.Since(s.started).Seconds(), line)
		}
	}
}

// redraw writes the table over the one before.
func (s *screen) redraw(v *fleetStatus) {
	width := s.width()
	var b strings.Builder
	t := columns(&b)
	fmt.Fprintln(t, "  NODE\tROLE\tRUNS\tSTATE\tWHY")
	for _, n := range v.Nodes {
		fmt.Fprintf(t, "  %s\t%s\t%s\t%s\t%s\n", n.Node, orDash(n.Role), v.shown(n.Version), n.State, n.Why)
	}
	t.Flush()
	var lines []string
	for line := range strings.Lines(b.String()) {
		lines = append(lines, strings.TrimRight(line, "\n"))
	}
	for _, h := range v.Halted {
		lines = append(lines, wrap("  HALTED  "+h.Why(), width)...)
	}
	s.draw(lines)
}

// draw writes lines over those before. What has no room on the terminal is left out: it could not be drawn over.
func (s *screen) draw(lines []string) {
	for i, line := range lines {
		lines[i] = shorten(strings.TrimRight(line, " "), s.width())
	}
	if room := s.height() - 1; len(lines) > room {
		lines = append(lines[:room-1:room-1], fmt.Sprintf("... %d lines more", len(lines)-room+1))
	}
	if s.drawn > 0 {
		own(s.w, fmt.Sprintf("\x1b[%dA\x1b[J", s.drawn))
	}
	s.drawn = len(lines)
	text := plain.Text(strings.Join(lines, "\n") + "\n")
	if s.colours {
		text = paint(text)
	}
	own(s.w, text)
}

// height is how many lines the terminal has.
func (s *screen) height() int {
	if f, ok := fileOf(s.w); ok {
		if _, h, err := term.GetSize(int(f.Fd())); err == nil && h > 5 {
			return h
		}
	}
	return 1 << 20
}

// width is how many columns a line may have without being broken by the terminal.
func (s *screen) width() int {
	if f, ok := fileOf(s.w); ok {
		if w, _, err := term.GetSize(int(f.Fd())); err == nil && w > 20 {
			return w - 1
		}
	}
	return 79
}

// wrap breaks a text into lines.
func wrap(text string, width int) []string {
	var lines []string
	line := ""
	for word := range strings.FieldsSeq(text) {
		if line != "" && len(line)+1+len(word) > width {
			lines, line = append(lines, shorten(line, width)), "         "
		}
		line += " " + word
	}
	return append(lines, shorten(line, width))
}

// settle leaves the table as it is and goes on below.
func (s *screen) settle() { s.drawn = 0 }

// paint colours the states; the words say the same.
func paint(text string) string {
	return strings.NewReplacer(
		" "+upgrading+" ", " \x1b[33m"+upgrading+"\x1b[0m ", " "+waiting+" ", " \x1b[36m"+waiting+"\x1b[0m ",
		" "+failed+" ", " \x1b[31m"+failed+"\x1b[0m ", "HALTED", "\x1b[31;1mHALTED\x1b[0m", " "+upToDate+" ", " \x1b[32m"+upToDate+"\x1b[0m ",
	).Replace(text)
}

// shorten is as much of a text as has room in so many columns.
func shorten(s string, most int) string {
	if utf8.RuneCountInString(s) <= most {
		return s
	}
	return string([]rune(s)[:max(0, most-3)]) + "..."
}
