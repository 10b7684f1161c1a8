package main

import (
	"bytes"
	"io"
	"slices"
	"strings"

	"github.com/pullet/pullet/internal/safetext"
)

// table aligns the cells of its lines, which tabs separate. Where there is no terminal a row is one line, as long as it
// is. On a terminal a row fits:
//
//   - cells that are wide are shortened, but for the last one, until all fit beside each other;
//   - what still does not fit stands below, indented;
//   - the last cell, which is mostly the reason, is folded.
//
// The states in it are in colours. A line without a tab is a line of its own. All of a table is for -o wide.
type table struct {
	to   io.Writer
	rows bytes.Buffer
}

// columns is a table that is written when it is flushed.
func columns(w io.Writer) *table { return &table{to: w} }

func (t *table) Write(p []byte) (int, error) { return t.rows.Write(p) }

// The measures of a table on a terminal.
const (
	leastRoom   = 30 // columns that the last cell needs beside the others: with fewer it is put below them
	shortCell   = 24 // columns that any other cell keeps, however little room there is
	wholeCell   = 40 // columns that an id keeps
	mostOfCell  = 6  // lines of the last cell
	gap         = 2  // blanks behind a cell
	belowMargin = "    "
)

// Flush writes the table, and begins another one.
func (t *table) Flush() error {
	defer t.rows.Reset()
	var rows [][]string
	for text := range strings.Lines(t.rows.String()) {
		cells := strings.Split(strings.TrimSuffix(text, "\n"), "\t")
		for i := range cells {
			cells[i] = safetext.Text(cells[i])
		}
		rows = append(rows, cells)
	}
	if len(rows) == 0 {
		return nil
	}
	l := newLayout(rows, lookOf(t.to).most)
	for _, cells := range rows {
		for _, out := range l.row(cells) {
			if err := emit(t.to, out); err != nil {
				return err
			}
		}
	}
	return nil
}

// layout is where the cells of a table stand.
type layout struct {
	most   int    // columns of the terminal; 0: none
	widths []int  // of the cells but the last one of a row
	least  []int  // to which they are made narrower
	breaks []bool // the cell begins a line below
	states []bool // the cell is a state
	bars   []bool // it is a bar
}

func newLayout(rows [][]string, most int) *layout {
	l, last := &layout{most: most}, 0
	for _, cells := range rows {
		for i, cell := range cells[:len(cells)-1] {
			if i == len(l.widths) {
				l.widths = append(l.widths, 0)
			}
			l.widths[i] = max(l.widths[i], columnsOf(cell))
		}
		if len(cells) > 1 {
			last = max(last, columnsOf(cells[len(cells)-1]))
		}
	}
	for _, heading := range rows[0] {
		l.states, l.bars = append(l.states, stateHeading(heading)), append(l.bars, heading == barHeading)
	}
	for i := range l.widths {
		l.least = append(l.least, leastOf(cellOf(rows[0], i)))
	}
	l.breaks = make([]bool, len(l.widths)+1)
	if most > 0 {
		whole := slices.Clone(l.widths)
		l.shrink(most - min(last, leastRoom))
		l.breakRows(last)
		l.grow(whole, last)
	}
	return l
}

// leastOf is how many columns a column keeps, by its heading: the id of a run or a command is typed.
func leastOf(heading string) int {
	switch heading {
	case "RUN", "ID", "COMMAND", "DIGEST":
		return wholeCell
	}
	return shortCell
}

func cellOf(cells []string, i int) string {
	if i < len(cells) {
		return cells[i]
	}
	return ""
}

// shrink makes the widest cells narrower until all have so many columns together, or are short.
func (l *layout) shrink(room int) {
	for {
		sum, widest := 0, 0
		for i, w := range l.widths {
			if sum += w + gap; w-l.least[i] > l.widths[widest]-l.least[widest] {
				widest = i
			}
		}
		if sum <= room || len(l.widths) == 0 || l.widths[widest] <= l.least[widest] {
			return
		}
		l.widths[widest]--
	}
}

// breakRows says which cells stand below: those behind which there is no room, and the last one where it is narrower
// there than it has to be.
func (l *layout) breakRows(last int) {
	at := 0
	for i, w := range l.widths {
		if at > 0 && at+w > l.most {
			l.breaks[i], at = true, len(belowMargin)
		}
		at += w + gap
	}
	if at > 0 && at+min(last, leastRoom) > l.most {
		l.breaks[len(l.widths)] = true
	}
}

// grow gives the cells of each line the room that is left there.
func (l *layout) grow(whole []int, last int) {
	for from := 0; from < len(l.widths); {
		to, room := from+1, l.most-l.widths[from]-gap
		for ; to < len(l.widths) && !l.breaks[to]; to++ {
			room -= l.widths[to] + gap
		}
		if from > 0 {
			room -= len(belowMargin)
		}
		if room += gap; to == len(l.widths) && !l.breaks[to] {
			room -= gap + min(last, leastRoom)
		}
		for i := from; i < to && room > 0; i++ {
			more := min(whole[i]-l.widths[i], room)
			l.widths[i], room = l.widths[i]+more, room-more
		}
		from = to
	}
}

// row is a row in as many lines as it takes.
func (l *layout) row(cells []string) []line {
	var out []line
	now := line{}
	for i, cell := range cells {
		isLast := i == len(cells)-1
		below := l.breaks[i]
		if isLast && i > 0 {
			below = l.breaks[len(l.widths)] && columnsOf(now.text+cell) > l.most
		}
		if below {
			out, now = append(out, now), line{text: belowMargin}
		}
		if isLast {
			return trimmed(append(out, l.lastCell(now, cell, i)...))
		}
		if l.most > 0 {
			cell = shorten(cell, l.widths[i])
		}
		now = l.add(now, cell, i)
		now.text += strings.Repeat(" ", l.widths[i]-columnsOf(cell)+gap)
	}
	return out
}

// add puts a cell into a line; a state is in its colour.
func (l *layout) add(to line, cell string, column int) line {
	switch i := wordInk(cell); {
	case column >= len(l.states):
	case l.bars[column]:
		to.marks = append(to.marks, barMarks(cell, len(to.text))...)
	case l.states[column] && i != noInk:
		to.marks = append(to.marks, mark{len(to.text), len(to.text) + len(cell), i})
	}
	to.text += cell
	return to
}

// lastCell folds the last cell of a row behind what stands before it. Blanks at its beginning are indentation.
func (l *layout) lastCell(before line, cell string, column int) []line {
	room := l.most - columnsOf(before.text)
	if l.most == 0 || columnsOf(cell) <= room {
		return []line{l.add(before, cell, column)}
	}
	text := strings.TrimLeft(cell, " ")
	before.text += cell[:len(cell)-len(text)]
	margin := columnsOf(before.text)
	parts := fold(text, max(l.most-margin, 1))
	if len(parts) > mostOfCell && column > 0 {
		rest := strings.Join(parts[mostOfCell-1:], " ")
		parts = append(parts[:mostOfCell-1:mostOfCell-1], shorten(rest, l.most-margin))
	}
	out := []line{{before.text + parts[0], before.marks}}
	for _, part := range parts[1:] {
		out = append(out, line{text: strings.Repeat(" ", margin) + part})
	}
	return out
}

// trimmed are lines without the blanks at their ends.
func trimmed(lines []line) []line {
	for i := range lines {
		lines[i].text = strings.TrimRight(lines[i].text, " ")
	}
	return lines
}
