package main

import (
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/width"
)

// columnsOf is how many columns of a terminal a text takes, which are neither its bytes nor its characters: those of
// East Asia and pictures take two, accents that are put on the character before take none.
func columnsOf(text string) int {
	n := 0
	for _, r := range text {
		n += columnsOfRune(r)
	}
	return n
}

// pictured is the mark that makes a picture, two columns wide, of the character before it.
const pictured = 0xfe0f

func columnsOfRune(r rune) int {
	switch {
	case r < utf8.RuneSelf, r == pictured:
		return 1
	case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		return 0
	}
	if kind := width.LookupRune(r).Kind(); kind == width.EastAsianWide || kind == width.EastAsianFullwidth {
		return 2
	}
	return 1
}

// beginning is as much of a text as has room in so many columns, and one character at least.
func beginning(text string, most int) string {
	n := 0
	for i, r := range text {
		if n += columnsOfRune(r); n > most && i > 0 {
			return text[:i]
		}
	}
	return text
}
