package state

import (
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/pullet/pullet/internal/safetext"
)

// checks gathers what is wrong with a record: the first thing counts.
type checks struct{ err error }

// unless notes what is wrong unless a condition holds.
func (c *checks) unless(holds bool, format string, args ...any) {
	if !holds && c.err == nil {
		c.err = fmt.Errorf(format, args...)
	}
}

// also notes an error.
func (c *checks) also(err error) {
	if c.err == nil {
		c.err = err
	}
}

// The bounds of texts in records, in bytes, and of lists.
const (
	maxText  = 4 << 10 // a reason, a command that helps, a name of a step
	maxNames = 100_000 // nodes
	maxList  = 1000
)

// line makes free text one harmless line.
func line(texts ...*string) {
	for _, t := range texts {
		*t = safetext.Line(*t, maxText)
	}
}

// lines does so with a list.
func lines(list []string) {
	for i := range list {
		line(&list[i])
	}
}

func (c *checks) node(name string) {
	c.unless(safetext.Name(name), "%s is no name of a node", quoted(name))
}

func (c *checks) nodes(names []string) {
	c.unless(len(names) <= maxNames, "it names %d nodes, of %d at most", len(names), maxNames)
	for _, name := range names {
		c.node(name)
	}
}

// version checks an id, which may be missing.
func (c *checks) version(id string) {
	c.unless(id == "" || versionID(id), "%s is no version", quoted(id))
}

// word checks one word, which may be missing.
func (c *checks) word(what, text string) {
	c.unless(text == "" || safetext.Word(text), "%s: %s is no word", what, quoted(text))
}

// times checks that times are in a century of which JSON and clocks can speak; year 1 is none.
func (c *checks) times(all ...time.Time) {
	for _, t := range all {
		c.unless(t.Year() <= 1 || t.Year() >= 1970 && t.Year() < 2200, "the time %s is absurd", t.Format(time.RFC3339))
	}
}

// count checks a number from 0 on.
func (c *checks) count(what string, n, most int) {
	c.unless(n >= 0 && n <= most, "%s: %d is not between 0 and %d", what, n, most)
}

func quoted(text string) string { return fmt.Sprintf("%+q", safetext.Cut(text, 60)) }

// Title is a text for people in one line.
type Title string

func (t *Title) decode(value []byte) error {
	*t = Title(safetext.Line(string(value), maxText))
	return nil
}

func (t *Title) check(Key) error { return nil }

// Output is what a command wrote.
type Output string

func (o *Output) decode(value []byte) error {
	*o = Output(safetext.Text(string(value)))
	return nil
}

func (o *Output) check(Key) error { return nil }

// Word is a short text without control characters: how a node came to a barrier.
type Word string

func (w *Word) decode(value []byte) error {
	*w = Word(value)
	return nil
}

func (w *Word) check(Key) error {
	var c checks
	c.unless(
		len(*w) <= 200 && !safetext.Obeyed(string(*w)),
		"%s is not one line of 200 letters at most",
		quoted(string(*w)),
	)
	return c.err
}

// NodeName is the name of a node.
type NodeName string

func (n *NodeName) decode(value []byte) error {
	*n = NodeName(value)
	return nil
}

func (n *NodeName) check(Key) error {
	var c checks
	c.node(string(*n))
	return c.err
}

// Count is a number of nodes.
type Count int

func (n *Count) check(Key) error {
	var c checks
	c.count("nodes", int(*n), maxNames)
	return c.err
}

// Moment is a point in time.
type Moment struct{ time.Time }

func (m *Moment) check(Key) error {
	var c checks
	c.times(m.Time)
	return c.err
}

// digest reports the digest of content; none is "".
func digest(text string) bool {
	_, err := hex.DecodeString(text)
	return text == "" || err == nil && len(text) == 64 && text == strings.ToLower(text)
}

var errOtherNode = errors.New("it is about another node than its key")
