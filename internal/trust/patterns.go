package trust

import (
	"path"
	"strings"
)

// patterns are those of ssh_config(5): * and ? stand for characters, and one that begins with ! takes out what it
// matches. None match everything.
type patterns []string

func (p patterns) match(name string) bool {
	if len(p) == 0 {
		return true
	}
	found := false
	for _, pattern := range p {
		pattern, not := strings.CutPrefix(pattern, "!")
		ok, err := path.Match(literal.Replace(pattern), name)
		switch {
		case err != nil || !ok:
		case not:
			return false
		default:
			found = true
		}
	}
	return found
}

// literal takes from path.Match what ssh does not know.
var literal = strings.NewReplacer(`\`, `\\`, `[`, `\[`)
