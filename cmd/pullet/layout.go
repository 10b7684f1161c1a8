package main

import (
	"bytes"
	"io"
	"strings"
	"text/tabwriter"
	"unicode/utf8"

	"golang.org/x/term"
)

// usualWidth is for terminals that do not know their size, and for prose that goes elsewhere.
const usualWidth = 80

// widthOf is how many columns the terminal behind a writer has; 0 where there is none: such output is not cut.
func widthOf(w io.Writer) int {
	if p, ok := w.(*page); ok {
		return p.most
	}
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

// fold breaks a text between its words into lines of so many columns at most. A longer word has a line of its own, and
// is whole.
func fold(text string, most int) []string {
	var lines []string
	line, long := "", 0
	for word := range strings.FieldsSeq(text) {
		n := utf8.RuneCountInString(word)
		if long > 0 && long+1+n > most {
			lines, line, long = append(lines, line), "", 0
		}
		if long > 0 {
			line, long = line+" ", long+1
		}
		line, long = line+word, long+n
	}
	return append(lines, line)
}

// page is what is about to be shown on a terminal.
type page struct {
	bytes.Buffer
	most int // columns
}

// onPage prints something whose lines are free, but for its tables, which fit. On a terminal its long lines are folded,
// unless it is to be wide.
func onPage(w io.Writer, wide bool, print func(io.Writer)) error {
	p := &page{most: widthOf(w)}
	if p.most == 0 || wide {
		print(w)
		return nil
	}
	print(p)
	for line := range strings.Lines(p.String()) {
		if utf8.RuneCountInString(line) > p.most+1 {
			text := strings.TrimLeft(line, " ")
			margin := strings.Repeat(" ", len(line)-len(text))
			line = margin + strings.Join(fold(text, p.most-len(margin)-2), "\n  "+margin) + "\n"
		}
		if _, err := io.WriteString(w, line); err != nil {
			return err
		}
	}
	return nil
}

// hang folds a text behind a margin, which stands before its first line only.
func hang(margin, text string, most int) string {
	columns := utf8.RuneCountInString(margin)
	return margin + strings.Join(fold(text, most-columns), "\n"+strings.Repeat(" ", columns))
}

// paragraphs folds each paragraph of a text. Lines that begin with blanks, such as those of a list, stay lines of their
// own; what of them does not fit is put below their last column.
func paragraphs(text string, most int) string {
	var out, prose []string
	flush := func() {
		if len(prose) > 0 {
			out = append(out, fold(strings.Join(prose, " "), most)...)
		}
		prose = nil
	}
	for line := range strings.SplitSeq(text, "\n") {
		switch {
		case strings.TrimSpace(line) == "":
			flush()
			out = append(out, "")
		case strings.HasPrefix(line, " "), strings.HasPrefix(line, "\t"):
			flush()
			margin := line[:lastColumn(line)]
			out = append(out, hang(margin, line[len(margin):], most))
		default:
			prose = append(prose, line)
		}
	}
	flush()
	return strings.Join(out, "\n")
}

// lastColumn is where the text of a line begins, behind its indentation and the first cell that two blanks end.
func lastColumn(line string) int {
	start := len(line) - len(strings.TrimLeft(line, " \t"))
	cell, text, ok := strings.Cut(line[start:], "  ")
	if !ok {
		return start
	}
	return start + len(cell) + 2 + len(text) - len(strings.TrimLeft(text, " "))
}

// table aligns the cells of its lines, which tabs separate. On a terminal what does not fit of the last cell is put
// below it.
type table struct {
	to   io.Writer
	most int // columns of the terminal; 0: none
	rows bytes.Buffer
}

// columns is a table that is written when it is flushed.
func columns(w io.Writer) *table { return &table{to: w, most: widthOf(w)} }

func (t *table) Write(p []byte) (int, error) { return t.rows.Write(p) }

// Flush writes the table, and begins another one.
func (t *table) Flush() error {
	defer t.rows.Reset()
	var aligned strings.Builder
	tabs := tabwriter.NewWriter(&aligned, 0, 0, 2, ' ', 0)
	var last []string
	for line := range strings.Lines(t.rows.String()) {
		line = strings.TrimSuffix(line, "\n")
		cells := strings.LastIndexByte(line, '\t') + 1
		last = append(last, line[cells:])
		if _, err := io.WriteString(tabs, oneLine.Replace(line[:cells])+"\n"); err != nil {
			return err
		}
	}
	if err := tabs.Flush(); err != nil {
		return err
	}
	i := 0
	for margin := range strings.Lines(aligned.String()) {
		row := beside(strings.TrimSuffix(margin, "\n"), last[i], t.most)
		if _, err := io.WriteString(t.to, row+"\n"); err != nil {
			return err
		}
		i++
	}
	return nil
}

// leastRoom is how many columns a cell needs beside the others: with fewer it is put below them.
const leastRoom = 30

// below is what stands before the cells that a row puts below its first line.
const below = "    "

// beside puts the last cell of a row behind the others, in so many columns in all; 0 is in one line.
func beside(margin, cell string, most int) string {
	columns := utf8.RuneCountInString(margin)
	if most == 0 || columns+utf8.RuneCountInString(cell) <= most {
		return margin + cell
	}
	if first, rest := cutRow(margin, most); first != "" {
		return first + "\n" + beside(below+rest, cell, most)
	}
	if most-columns >= leastRoom {
		text := strings.TrimLeft(cell, " ")
		return hang(margin+cell[:len(cell)-len(text)], text, most)
	}
	return strings.TrimRight(margin, " ") + "\n" + hang(below, cell, most)
}

// cutRow cuts a row before the first cell that has no room on the terminal; first is "" where nothing has to be cut, or
// nothing can be. Two blanks at least are behind each cell.
func cutRow(row string, most int) (first, rest string) {
	runes := []rune(row)
	if utf8.RuneCountInString(strings.TrimRight(row, " ")) <= most {
		return "", ""
	}
	for at := min(most+2, len(runes)-1); at > len(below)+2; at-- {
		if runes[at] != ' ' && runes[at-1] == ' ' && runes[at-2] == ' ' {
			return strings.TrimRight(string(runes[:at]), " "), string(runes[at:])
		}
	}
	return "", ""
}

// oneLine takes out what a tabwriter makes lines or cells of.
var oneLine = strings.NewReplacer("\f", " ", "\v", " ")
