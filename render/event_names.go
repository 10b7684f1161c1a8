package render

import (
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/pullet/pullet/safetext"
)

// The name that the source documents have for a step that failed, and ours.
const (
	stepFailedOfOld = "edenconfmgmt/failure/step"
	stepFailed      = "pullet/step/failed"
)

// eventGlob is the name of an event, or a glob over names: * ? and [] match within one word of the path, ** as the last
// word matches one word or more.
type eventGlob struct {
	words []string
	rest  bool // ** is the last word
}

// parseEventGlob reads a glob. Its error says what to write.
func parseEventGlob(text string) (eventGlob, error) {
	if !strings.ContainsAny(text, `*?[\`) {
		if !safetext.EventName(text) {
			return eventGlob{}, errors.New(
				"is no name of an event: write a path such as backup/failed, or a glob such as backup/*",
			)
		}
		return eventGlob{words: strings.Split(text, "/")}, nil
	}
	head, rest := strings.CutSuffix("/"+text, "/**")
	g := eventGlob{rest: rest}
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

// matches reports a name that the glob is about.
func (g eventGlob) matches(name string) bool {
	words := strings.Split(name, "/")
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

// spellings are the names of an event: a step that failed has two.
func spellings(name string) []string {
	if name == stepFailed || name == stepFailedOfOld {
		return []string{stepFailed, stepFailedOfOld}
	}
	return []string{name}
}

// example is a name like those that the glob matches, for an event that is made up.
func (g eventGlob) example() string {
	words := append([]string(nil), g.words...)
	for i, word := range words {
		if strings.ContainsAny(word, `*?[\`) {
			words[i] = madeUpWord
		}
	}
	if g.rest {
		words = append(words, madeUpWord)
	}
	if name := strings.Join(words, "/"); name != stepFailedOfOld {
		return name
	}
	return stepFailed
}
