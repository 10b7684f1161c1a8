package main

import (
	"io"
	"strings"

	"github.com/pullet/pullet/internal/safetext"
)

// mark is a part of a line, in bytes, that is in a colour.
type mark struct {
	from, to int
	ink      ink
}

// line is what stands in one line of a terminal.
type line struct {
	text  string
	marks []mark
}

// emit writes a line, in colours where these are taken.
func emit(w io.Writer, l line) error {
	switch to := w.(type) {
	case *page:
		first, rest, more := strings.Cut(l.text, "\n")
		to.lines = append(to.lines, line{first, l.marks})
		if !more {
			return nil
		}
		_, err := io.WriteString(to, rest+"\n")
		return err
	case *stream:
		if to.inks && len(l.marks) > 0 {
			own(w, l.painted()+"\n")
			return nil
		}
	}
	_, err := io.WriteString(w, l.text+"\n")
	return err
}

// painted is a line with its colours. What a terminal would obey is made harmless.
func (l line) painted() string {
	var b strings.Builder
	at := 0
	for _, m := range l.marks {
		m.to = min(m.to, len(l.text))
		b.WriteString(safetext.Text(l.text[at:m.from]) + m.ink.on(l.text[m.from:m.to]))
		at = m.to
	}
	return b.String() + safetext.Text(l.text[at:])
}

// page is what is about to be shown, line after line.
type page struct {
	look  look
	lines []line
	rest  string // the beginning of a line
}

func (p *page) Write(text []byte) (int, error) {
	for part := range strings.Lines(p.rest + string(text)) {
		p.rest = part
		if whole, ended := strings.CutSuffix(part, "\n"); ended {
			p.lines, p.rest = append(p.lines, line{text: whole}), ""
		}
	}
	return len(text), nil
}

// onPage prints something whose lines are free, but for its tables, which fit. On a terminal its long lines are folded.
func onPage(w io.Writer, print func(io.Writer)) error {
	for _, l := range linesOf(lookOf(w), print) {
		if err := emit(w, l); err != nil {
			return err
		}
	}
	return nil
}

// linesOf are the lines of what is printed, as long as the look has room for them.
func linesOf(l look, print func(io.Writer)) []line {
	p := &page{look: l}
	print(p)
	if p.rest != "" {
		p.lines = append(p.lines, line{text: p.rest})
	}
	if l.most == 0 {
		return p.lines
	}
	var out []line
	for _, one := range p.lines {
		out = append(out, one.folded(l.most)...)
	}
	return out
}

// folded is a line in as many as it needs. A colour stays where its text still stands in the first one.
func (l line) folded(most int) []line {
	l.text = safetext.Text(l.text)
	if columnsOf(l.text) <= most {
		return []line{l}
	}
	text := strings.TrimLeft(l.text, " ")
	margin := strings.Repeat(" ", min(len(l.text)-len(text), most/2))
	var out []line
	for i, part := range fold(text, most-len(margin)-2) {
		if i > 0 {
			part = "  " + part
		}
		out = append(out, line{text: margin + part})
	}
	for _, m := range l.marks {
		if m.to <= len(out[0].text) && out[0].text[m.from:m.to] == l.text[m.from:m.to] {
			out[0].marks = append(out[0].marks, m)
		}
	}
	return out
}
