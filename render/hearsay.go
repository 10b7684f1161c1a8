package render

import (
	"slices"
	"strings"

	"github.com/pullet/pullet/internal/lazyregexp"
)

// What hosts say of themselves is their word: facts, labels and services that they registered. A mistake that rests
// on it may be a lie, or be gone with the next word; so it is kept apart from the mistakes of the repository itself.

var (
	factWays   = waysTo("[sS]erver")
	eventWays  = waysTo("event")
	variableIn = lazyregexp.New(`\$\w*`)
)

// ways are those in which a template reads a root: by its name, by a variable, by the dot.
type ways struct{ reads, named, inDot *lazyregexp.Regexp }

func waysTo(root string) ways {
	return ways{
		reads: lazyregexp.New(`\b` + root + `\b`),
		named: lazyregexp.New(`(\$\w+)\s*:?=[^}]*\b` + root + `\b`),
		inDot: lazyregexp.New(`\{\{-?\s*(?:else\s+)?(?:with|range)\b[^}]*\b` + root + `\b`),
	}
}

// about reports a failing action that reads a root: by its name, by a variable that was set to one, or by the dot where
// it may be one.
func (s *source) about(root ways, at string) bool {
	if root.reads.MatchString(at) || strings.Contains(" "+at, " .") && root.inDot.MatchString(s.text) {
		return true
	}
	for _, m := range root.named.FindAllStringSubmatch(s.text, -1) {
		if slices.Contains(variableIn.FindAllString(at, -1), m[1]) {
			return true
		}
	}
	return false
}

// hear notes that what stands in a file rests on the fleet, if something was asked of it since the last note.
func (f *documents) hear(file string) {
	if f.c.scope.asked {
		if f.heard == nil {
			f.heard = map[string]bool{}
		}
		f.heard[file] = true
	}
	f.c.scope.asked = false
}

// Hearsay reports a mistake that may have its cause in what hosts say of themselves: its file reads other hosts or
// services, or it is about a fact.
func (c *Catalog) Hearsay(e *Error) bool { return e.hearsay || c.heard[e.Pos.File] }
