package main

import (
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/term"

	"github.com/pullet/pullet/safetext"
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
	text := safetext.Text(fmt.Sprintf(format, args...))
	if s.colours {
		text = bold.on(text)
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
		line := fmt.Sprintf("%-7s %-7s %-9s %s", n.Node, v.versionName(n.Version), n.State, n.Why)
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
		fmt.Fprintf(t, "  %s\t%s\t%s\t%s\t%s\n", n.Node, orDash(n.Role), v.versionName(n.Version), n.State, n.Why)
	}
	t.Flush()
	var lines []string
	for line := range strings.Lines(b.String()) {
		lines = append(lines, strings.TrimRight(line, "\n"))
	}
	for _, h := range v.Halted {
		lines = append(lines, strings.Split(hang("  HALTED  ", h.Why(), width), "\n")...)
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
	text := safetext.Text(strings.Join(lines, "\n") + "\n")
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
func (s *screen) width() int { return proseWidth(s.w) - 1 }

// detach leaves the table as it is and goes on below.
func (s *screen) detach() { s.drawn = 0 }

// paint colours the states; the words say the same.
func paint(text string) string {
	of := []string{"HALTED", red.on("HALTED")}
	for state, i := range map[string]ink{upgrading: yellow, waiting: cyan, failed: red, upToDate: green} {
		of = append(of, " "+state+" ", " "+i.on(state)+" ")
	}
	return strings.NewReplacer(of...).Replace(text)
}

// shorten is as much of a text as has room in so many columns: whole words, unless one is very long.
func shorten(s string, most int) string {
	if utf8.RuneCountInString(s) <= most {
		return s
	}
	cut := string([]rune(s)[:max(0, most-3)])
	if at := strings.LastIndexByte(cut, ' '); at > len(cut)/2 && s[len(cut)] != ' ' {
		cut = cut[:at]
	}
	return strings.TrimRight(cut, " ") + "..."
}
