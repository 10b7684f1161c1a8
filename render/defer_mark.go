package render

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"
)

// waitingMark stands for a deferred action in the text of a node. Its first and last bytes are no UTF-8, so that no
// text of a document can hold it: insert puts it where the mark of the rendered text stood.
func waitingMark(number int) string { return fmt.Sprintf("\xff%d\xfe", number) }

// waits reports a text with a mark of a deferred action.
func waits(text string) bool { return strings.Contains(text, "\xff") }

// Known is the part of a text before what is known only when its step runs, and whether that is all of it.
func Known(text string) (start string, all bool) {
	start, _, more := strings.Cut(text, "\xff")
	return start, !more
}

// fillMarks puts values in the place of the marks of deferred actions.
func fillMarks(text string, value func(number int) (string, error)) (string, error) {
	var out strings.Builder
	for {
		before, after, open := strings.Cut(text, "\xff")
		out.WriteString(before)
		if !open {
			return out.String(), nil
		}
		digits, rest, _ := strings.Cut(after, "\xfe")
		number, _ := strconv.Atoi(digits) // as waitingMark wrote it
		filled, err := value(number)
		if err != nil {
			return "", err
		}
		out.WriteString(filled)
		text = rest
	}
}

// holdsPlaceholder reports a deferred action in a node or below it.
func holdsPlaceholder(n *yaml.Node) bool {
	n = resolve(n)
	return waits(n.Value) || slices.ContainsFunc(n.Content, holdsPlaceholder)
}

// placeholders are the numbers of the deferred actions in a node and below it.
func placeholders(n *yaml.Node) []int {
	var out []int
	n = resolve(n)
	if waits(n.Value) {
		_, _ = fillMarks(
			n.Value,
			func(number int) (string, error) { out = append(out, number); return "", nil },
		) // without an error
	}
	for _, c := range n.Content {
		out = append(out, placeholders(c)...)
	}
	return out
}
