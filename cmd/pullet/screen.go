package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/pullet/pullet/internal/safetext"
)

// picture is something of the fleet as it is at a moment.
type picture interface {
	print(w io.Writer) // all of it, for a terminal
	changes() []change // its lines elsewhere
}

// change is a line about something. It is written when it is another than the one before.
type change struct{ about, line string }

// screen shows a picture that changes: on a terminal it is drawn over, elsewhere each change is a line.
type screen struct {
	w       io.Writer
	live    bool
	whole   bool // it has the terminal for itself
	drawn   int  // lines of the picture that are on the terminal
	frame   string
	last    map[string]string
	started time.Time
}

func newScreen(w io.Writer) *screen {
	return &screen{w: w, live: drawable(w), last: map[string]string{}, started: time.Now()}
}

// drawable reports a terminal on which lines can be drawn over.
func drawable(w io.Writer) bool { return terminal(w) && os.Getenv("TERM") != "dumb" }

// open takes the terminal for the picture alone; close gives it back as it was.
func (s *screen) open() {
	s.whole = true
	own(s.w, "\x1b[?1049h\x1b[?25l\x1b[H\x1b[2J")
}

func (s *screen) close() {
	if s.whole {
		own(s.w, "\x1b[?25h\x1b[?1049l")
	}
	s.whole, s.drawn, s.frame = false, 0, ""
}

// say prints a paragraph above what follows.
func (s *screen) say(format string, args ...any) {
	for text := range strings.SplitSeq("\n"+fmt.Sprintf(format, args...), "\n") {
		_ = inked(s.w, span{bold, text}) // as with every line for people
	}
}

// show brings the picture up to date. The foot stands at the bottom of a terminal.
func (s *screen) show(p picture, foot ...span) {
	if s.live {
		s.draw(linesOf(s.look(), p.print), foot)
		return
	}
	for _, c := range p.changes() {
		if s.last[c.about] != c.line {
			s.last[c.about] = c.line
			fmt.Fprintf(s.w, "%5.1fs  %s\n", time.Since(s.started).Seconds(), strings.TrimSpace(c.line))
		}
	}
}

// look is that of the terminal, less a column: a line that fills the last one may move the cursor on.
func (s *screen) look() look {
	l := lookOf(s.w)
	l.most = max(0, l.most-1)
	return l
}

// draw writes lines over those before, all at once, and nothing where nothing changed. What has no room on the terminal
// is left out: it could not be drawn over.
func (s *screen) draw(lines []line, foot []span) {
	columns, rows := s.size()
	room := rows - 1
	if len(lines) > room {
		more := line{text: fmt.Sprintf("... %s more", count(len(lines)-room+1, "line"))}
		lines = append(lines[:room-1:room-1], more)
	}
	var b strings.Builder
	for _, l := range lines {
		b.WriteString(s.text(l, columns-1) + "\x1b[K\r\n")
	}
	if s.whole {
		fmt.Fprintf(&b, "\x1b[J\x1b[%d;1H%s\x1b[K", rows, s.text(lineOfSpans(foot), columns-1))
	}
	if b.String() == s.frame {
		return
	}
	s.frame = b.String()
	switch {
	case s.whole:
		own(s.w, "\x1b[H"+s.frame)
	case s.drawn > 0:
		own(s.w, fmt.Sprintf("\x1b[%dA\x1b[J", s.drawn)+s.frame)
	default:
		own(s.w, s.frame)
	}
	s.drawn = len(lines)
}

// text is a line in so many columns, in colours where these are taken.
func (s *screen) text(l line, most int) string {
	if columnsOf(l.text) > most {
		l.text = shorten(l.text, most)
		for len(l.marks) > 0 && l.marks[len(l.marks)-1].to > len(l.text) {
			l.marks = l.marks[:len(l.marks)-1]
		}
	}
	if !lookOf(s.w).inks {
		return safetext.Text(l.text)
	}
	return l.painted()
}

// size is how many columns and lines the terminal has.
func (s *screen) size() (columns, rows int) {
	if f, ok := fileOf(s.w); ok {
		if w, h, err := term.GetSize(int(f.Fd())); err == nil && w > 0 && h > 5 {
			return w, h
		}
	}
	return usualWidth, 24
}

// detach leaves the picture as it is and goes on below.
func (s *screen) detach() { s.drawn, s.frame = 0, "" }
