package main

import (
	"io"
	"os"

	"golang.org/x/term"

	"github.com/pullet/pullet/internal/safetext"
)

// stream is an output of the process. Everything that is written to it is harmless to a terminal.
type stream struct {
	safetext.Writer
	inks     bool // it takes colours
	wide     bool // its lines are as long as they are
	absolute bool // it shows when something was, and not how long ago
}

// newStream is an output as the environment wants it, before the command line is read: mistakes there are in colours,
// too.
func newStream(to io.Writer) *stream {
	s := &stream{Writer: safetext.Writer{To: to}}
	s.inks = s.takesInks("auto")
	return s
}

// takesInks decides on colours: the flag wins, then NO_COLOR, then what forces them, then what the output is.
func (s *stream) takesInks(flag string) bool {
	switch flag {
	case "always":
		return true
	case "never":
		return false
	}
	switch {
	case os.Getenv("NO_COLOR") != "":
		return false
	case forced("CLICOLOR_FORCE"), forced("FORCE_COLOR"):
		return true
	}
	return terminal(s) && os.Getenv("TERM") != "dumb"
}

// forced reports a variable that is set to anything but a no.
func forced(name string) bool {
	value := os.Getenv(name)
	return value != "" && value != "0" && value != "false"
}

// look is how a writer is to show things.
type look struct {
	most     int // columns that a line has; 0: it is not cut, because there is no terminal or -o wide was asked for
	inks     bool
	absolute bool // times are those of the clock
}

// lookOf is how a writer shows things. What stands between a stream and its user looks like the stream.
func lookOf(w io.Writer) look {
	switch w := w.(type) {
	case *page:
		return w.look
	case *table:
		return lookOf(w.to)
	case *stream:
		l := look{inks: w.inks, absolute: w.absolute}
		if !w.wide {
			l.most = widthOf(w)
		}
		return l
	}
	return look{}
}

// terminal reports that a writer is a terminal.
func terminal(w io.Writer) bool {
	f, ok := fileOf(w)
	return ok && term.IsTerminal(int(f.Fd()))
}

// usualWidth is for terminals that do not know their size, and for prose that goes elsewhere.
const usualWidth = 80

// widthOf is how many columns the terminal behind a writer has; 0 where there is none.
func widthOf(w io.Writer) int {
	f, ok := fileOf(w)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return 0
	}
	if columns, _, err := term.GetSize(int(f.Fd())); err == nil && columns > 0 {
		return columns
	}
	return usualWidth
}

// proseWidth is in how many columns paragraphs are written.
func proseWidth(w io.Writer) int {
	if most := widthOf(w); most > 0 {
		return most
	}
	return usualWidth
}
