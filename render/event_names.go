package render

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/pullet/pullet/internal/safetext"
)

// EventGlob is the name of an event, or a glob over names: * ? and [] match within one word of the path, ** as the last
// word matches one word or more.
type EventGlob struct {
	words []string
	rest  bool // ** is the last word
}

// ParseEventGlob reads a glob. Its error says what to write.
func ParseEventGlob(text string) (EventGlob, error) {
	if !strings.ContainsAny(text, `*?[\`) {
		if !safetext.EventName(text) {
			return EventGlob{}, errors.New(
				"is no name of an event: write a path such as backup/failed, or a glob such as backup/*",
			)
		}
		return EventGlob{words: strings.Split(text, "/")}, nil
	}
	head, rest := strings.CutSuffix("/"+text, "/**")
	g := EventGlob{rest: rest}
	if head != "" {
		g.words = strings.Split(head[1:], "/")
	}
	for _, word := range g.words {
		_, err := path.Match(word, "")
		switch {
		case strings.Contains(word, "**"):
			return g, errors.New(
				"is no glob over names of events: ** is the last word and matches all that follows, such as backup/**",
			)
		case err != nil:
			return g, fmt.Errorf("is no glob over names of events: %q: %w", word, err)
		case word == "" || !strings.ContainsAny(word, `*?[\`) && !safetext.EventName(word):
			return g, fmt.Errorf("is no glob over names of events: %q is no word of a name", word)
		}
	}
	return g, nil
}

// Matches reports a name that the glob is about, in either of its spellings.
func (g EventGlob) Matches(name string) bool {
	return slices.ContainsFunc(safetext.EventSpellings(name), g.matches)
}

func (g EventGlob) matches(spelled string) bool {
	words := strings.Split(spelled, "/")
	if len(words) < len(g.words) || len(words) > len(g.words) != g.rest {
		return false
	}
	for i, glob := range g.words {
		if ok, err := path.Match(glob, words[i]); err != nil || !ok {
			return false
		}
	}
	return true
}

// example is a name like those that the glob matches, for an event that is made up.
func (g EventGlob) example() string {
	words := append([]string(nil), g.words...)
	for i, word := range words {
		if strings.ContainsAny(word, `*?[\`) {
			words[i] = madeUpWord
		}
	}
	if g.rest {
		words = append(words, madeUpWord)
	}
	return safetext.EventSpellings(strings.Join(words, "/"))[0]
}
