package render

// starts are the offsets of the source's lines.
func (s *source) starts() []int {
	if s.lines == nil {
		s.lines = lineStarts(s.text)
	}
	return s.lines
}

// lineStarts are the offsets at which the lines of a text begin.
func lineStarts[T string | []byte](text T) []int {
	out := []int{0}
	for i := range len(text) {
		if text[i] == '\n' {
			out = append(out, i+1)
		}
	}
	return out
}

// lineAt is a line of a text whose lines begin at these offsets, "" where there is none.
func lineAt[T string | []byte](text T, starts []int, number int) string {
	number = max(number, 1)
	switch {
	case number > len(starts):
		return ""
	case number == len(starts):
		return string(text[starts[number-1]:])
	}
	return string(text[starts[number-1] : starts[number]-1])
}

// quote gives a mistake its line in the source, where it has one.
func (s *source) quote(e *Error) {
	e.line, e.Excerpt = s.line(e.Pos.Line), ""
	if e.Pos.Line >= 1 && e.Pos.Line <= len(s.starts()) {
		e.Excerpt = excerpt(e.line, e.Pos.Line, e.Pos.Col)
	}
}
