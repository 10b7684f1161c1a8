package house

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// Lines have at most so many columns, a tab counted as one.
const (
	columns   = 120
	wideLines = 9 // lines of code outside of tests that were wider before there was a limit: may only become fewer
)

// TestLines holds comments to their width, and keeps wide lines of code outside of tests from becoming more. Examples
// and tables in comments, which begin with a tab or spaces, are as wide as they have to be.
func TestLines(t *testing.T) {
	wide := 0
	eachFile(t, func(path, text string) {
		for i, line := range strings.Split(text, "\n") {
			comment, isComment := strings.CutPrefix(strings.TrimSpace(line), "// ")
			switch {
			case utf8.RuneCountInString(line) <= columns:
			case isComment && !strings.HasPrefix(comment, " "):
				t.Errorf("%s:%d: the comment has more than %d columns", path, i+1, columns)
			case !isComment && !strings.HasSuffix(path, "_test.go") && !strings.HasPrefix(comment, "//"):
				wide++
			}
		}
	}, ".go")
	if wide > wideLines {
		t.Errorf("%d lines of code have more than %d columns; there were %d", wide, columns, wideLines)
	} else if wide < wideLines {
		t.Errorf("only %d lines of code have more than %d columns: write that into wideLines", wide, columns)
	}
}
