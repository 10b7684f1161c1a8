package render

import (
	"strings"
	"testing"
)

// TestLines: a line of a source and of what it renders as is found by its number, with and without an end of the last
// line.
func TestLines(t *testing.T) {
	for _, text := range []string{"", "\n", "a", "a\n", "a\nb", "\n\nb\n", "a\r\nb"} {
		s, r := &source{text: text}, &rendered{text: []byte(text)}
		for number := -1; number < 6; number++ {
			want := lineOf(text, number)
			if got := s.line(number); got != want {
				t.Errorf("line %d of %q: %q, want %q", number, text, got, want)
			}
			if got := r.line(number); got != want {
				t.Errorf("line %d of the output %q: %q, want %q", number, text, got, want)
			}
		}
	}
}

// lineOf is a line of a text, "" where there is none.
func lineOf(text string, number int) string {
	for ; number > 1; number-- {
		_, rest, more := strings.Cut(text, "\n")
		if !more {
			return ""
		}
		text = rest
	}
	line, _, _ := strings.Cut(text, "\n")
	return line
}
