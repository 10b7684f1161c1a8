package claim

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// content is what a file holds, or a part of it.
type content interface {
	want
	// besides reports whether the other content can hold in the same file without this one undoing it.
	besides(other content) bool
}

// contentAspect is the property of a file that is its text.
const contentAspect = "content"

// Digest returns how equal contents are told.
func Digest(data []byte) string {
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// Whole claims all that a file holds, by its digest; "" is a content that is not known yet.
func (t Thing) Whole(digest string) Claim { return t.claim(contentAspect, whole{digest: digest}) }

// Initial claims what a file holds when it is made. Parts of it may change later.
func (t Thing) Initial(digest string) Claim {
	return t.claim(contentAspect, whole{digest: digest, initial: true})
}

// Part claims a part of a file's text that does not touch other parts. What it is stands in words: an entry of fstab.
func (t Thing) Part(what string) Claim { return t.claim(contentAspect, part(what)) }

// Line claims a line of a file, which replaces the one that match finds. If gone is true, the line and all that match
// are not there.
func (t Thing) Line(line string, match *regexp.Regexp, gone bool) Claim {
	return t.claim(contentAspect, oneLine{line, match, gone})
}

// Block claims the lines between two marker lines of a file. If gone is true, neither they nor the markers are there.
func (t Thing) Block(begin, end string, lines []string, gone bool) Claim {
	return t.claim(contentAspect, block{strings.TrimSpace(begin), strings.TrimSpace(end), lines, gone})
}

// whole is all of a file.
type whole struct {
	digest  string // "": not known yet
	initial bool   // only of a new file
}

func (w whole) texts() []string { return nil }

func (w whole) key() string {
	if w.digest == "" {
		return "" // two that are not known are not the same
	}
	return "whole " + strconv.FormatBool(w.initial) + w.digest
}

func (w whole) words(string) (full, bare string) {
	if w.initial {
		return "initial content", "initial content"
	}
	return "whole content", "whole content"
}

func (w whole) besides(other content) bool {
	if other, ok := other.(whole); ok {
		return w.digest == other.digest && w.digest != ""
	}
	return w.initial
}

// part is a part of a text that no other part touches.
type part string

func (w part) key() string                       { return "part " + string(w) }
func (w part) texts() []string                   { return nil }
func (w part) words(string) (full, bare string)  { return string(w), string(w) }
func (w part) besides(other content) (fits bool) { return true }

// oneLine is a line that is in a text, or is not.
type oneLine struct {
	line  string
	match *regexp.Regexp
	gone  bool
}

func (w oneLine) key() string {
	return strings.Join([]string{"line", w.line, w.expr(), strconv.FormatBool(w.gone)}, "\x00")
}

func (w oneLine) texts() []string { return []string{w.line, w.expr()} }

func (w oneLine) expr() string {
	if w.match == nil {
		return ""
	}
	return w.match.String()
}

func (w oneLine) words(string) (full, bare string) {
	switch {
	case w.gone && w.line == "":
		return "no line that matches " + strconv.Quote(w.expr()), "the absence of a line"
	case w.gone:
		return "no line " + strconv.Quote(w.line), "the absence of a line"
	}
	return "line " + strconv.Quote(w.line), "line"
}

// undoes reports a line that would be replaced or removed.
func (w oneLine) undoes(line string) bool {
	if line == w.line {
		return w.gone
	}
	return w.match != nil && w.match.MatchString(line)
}

func (w oneLine) besides(other content) bool {
	switch other := other.(type) {
	case oneLine:
		switch {
		case other.gone || !w.gone && w.line == other.line:
			return true
		case !w.gone && w.match != nil && w.expr() == other.expr():
			return false // which of the two the line becomes depends on the order
		}
		return !w.undoes(other.line)
	case block:
		return other.gone || !slices.ContainsFunc(other.lines, w.undoes) && !w.undoes(other.begin) && !w.undoes(other.end)
	}
	return true
}

// block is what stands between two marker lines.
type block struct {
	begin, end string
	lines      []string
	gone       bool
}

func (w block) texts() []string { return append([]string{w.begin, w.end}, w.lines...) }

func (w block) key() string {
	return strings.Join(append([]string{"block", strconv.FormatBool(w.gone), w.begin, w.end}, w.lines...), "\x00")
}

func (w block) words(string) (full, bare string) {
	if w.gone {
		return "no block " + strconv.Quote(w.begin), "the absence of a block"
	}
	return "block " + strconv.Quote(w.begin), "block"
}

func (w block) besides(other content) bool {
	if other, ok := other.(block); ok && w.begin == other.begin {
		return w.gone == other.gone && w.end == other.end && (w.gone || slices.Equal(w.lines, other.lines))
	}
	return true
}
