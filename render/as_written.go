package render

import (
	"bytes"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"

	"github.com/pullet/pullet/internal/lazyregexp"
)

// asWritten reports a key with a scalar that are on every node what the file says: templates neither wrote nor chose
// any of it.
func (r *rendered) asWritten(key, value *yaml.Node) bool {
	start := r.offset(value.Line, value.Column)
	start += len(properties.Find(r.text[start:]))
	size := scalarSize(r.text[start:], value)
	from := start
	if at := r.offset(key.Line, key.Column); at < start { // else an alias: its anchor stands further up
		from = at
	}
	return size >= 0 && r.literal(from, start+size)
}

// properties are an anchor and a tag before a value.
var properties = lazyregexp.New(`^([&!]\S*\s+)*`)

// itemNumber is what the name of an instance of a forEach has at its end.
var itemNumber = lazyregexp.New(`\[\d+\]$`)

// scalarSize is how much of a text a scalar takes that stands at its beginning, or -1 where something else stands
// there.
func scalarSize(text []byte, n *yaml.Node) int {
	switch {
	case n.Style&yaml.DoubleQuotedStyle != 0:
		return quotedSize(text, '"')
	case n.Style&yaml.SingleQuotedStyle != 0:
		return quotedSize(text, '\'')
	case n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0:
		header := bytes.IndexByte(text, '\n') + 1
		if size := wordsSize(text[header:], n.Value); size >= 0 {
			return header + size
		}
		return -1
	}
	if size := wordsSize(text, n.Value); size >= 0 {
		return size
	}
	return wordsSize(text, itemNumber.ReplaceAllString(n.Value, ""))
}

// quotedSize is the size of a text in quotes, or -1.
func quotedSize(text []byte, quote byte) int {
	for i := 1; i < len(text); i++ {
		switch {
		case text[i] == '\\' && quote == '"':
			i++
		case text[i] == quote && quote == '\'' && i+1 < len(text) && text[i+1] == quote:
			i++
		case text[i] == quote:
			return i + 1
		}
	}
	return -1
}

// wordsSize is what the words take at the beginning of a text, with any blanks between them, or -1 where the text has
// others.
func wordsSize(text []byte, words string) int {
	at := 0
	for _, c := range words {
		if unicode.IsSpace(c) {
			continue
		}
		for at < len(text) && unicode.IsSpace(rune(text[at])) {
			at++
		}
		if !bytes.HasPrefix(text[at:], utf8.AppendRune(nil, c)) {
			return -1
		}
		at += utf8.RuneLen(c)
	}
	return at
}
