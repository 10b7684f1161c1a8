package render

import (
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"
)

// failureClasses are the words for whose fault a failure is.
var failureClasses = []string{"host", "commit"}

// FailureClass says whose fault it is when a step fails: a word for all of its failures, or words by exit code.
type FailureClass struct {
	all    string
	byCode map[int]string
}

// Of is the word for a failure with an exit code, 0 where there is none; "" where nothing is said about it.
func (f FailureClass) Of(exitCode int) string {
	if word := f.byCode[exitCode]; word != "" {
		return word
	}
	return f.all
}

func (f *FailureClass) decode(d *decoder, n *yaml.Node) {
	if n.Kind != yaml.MappingNode {
		f.all = d.failureClass(n)
		return
	}
	f.byCode = map[int]string{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		code, err := strconv.Atoi(key.Value)
		if err != nil || code < 1 || code > 255 {
			d.failf(key, "failureClass: %q is not an exit code: write a number from 1 to 255", shortened(key.Value))
			continue
		}
		f.byCode[code] = d.failureClass(value)
	}
}

func (d *decoder) failureClass(n *yaml.Node) string {
	if n.Kind != yaml.ScalarNode || !slices.Contains(failureClasses, n.Value) {
		d.failf(
			n,
			"failureClass: expected %s, or one of them for each exit code, found %s",
			strings.Join(failureClasses, " or "),
			kindName(n),
		)
	}
	return n.Value
}

func (f *FailureClass) shape() *Shape {
	word := &Shape{Kind: Text, Words: failureClasses, NotNull: true}
	codes := &Shape{Kind: Object, Keys: `^([1-9][0-9]?|1[0-9][0-9]|2[0-4][0-9]|25[0-5])$`, Elem: word, NotNull: true}
	return &Shape{Kind: Either, Name: "host or commit, or one of them by exit code", Either: []*Shape{word, codes}}
}
