package main

import "strings"

// fold breaks a text between its words into lines of so many columns at most. A longer word is broken, too: the
// terminal would do it at its edge, and lose the indentation.
func fold(text string, most int) []string {
	var lines []string
	line, long := "", 0
	for word := range strings.FieldsSeq(text) {
		n := columnsOf(word)
		if long > 0 && long+1+n > most {
			lines, line, long = append(lines, line), "", 0
		}
		for n > max(most, 1) {
			head := beginning(word, most)
			lines, word = append(lines, head), word[len(head):]
			n = columnsOf(word)
		}
		if long > 0 {
			line, long = line+" ", long+1
		}
		line, long = line+word, long+n
	}
	return append(lines, line)
}

// shorten is as much of a text as has room in so many columns: whole words, unless one is very long.
func shorten(s string, most int) string {
	if columnsOf(s) <= most {
		return s
	}
	cut := beginning(s, max(0, most-3))
	if at := strings.LastIndexByte(cut, ' '); at > len(cut)/2 && s[len(cut)] != ' ' {
		cut = cut[:at]
	}
	return strings.TrimRight(cut, " ") + "..."
}

// hang folds a text behind a margin, which stands before its first line only.
func hang(margin, text string, most int) string {
	columns := columnsOf(margin)
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
