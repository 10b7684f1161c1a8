package gitrules

import (
	"bytes"
	"context"
	"path"
	"slices"
	"strings"
)

// Ignore is the rules of gitignore(5) that hold in a directory, those that count more last. Add and Ignores do not
// change it, so directories can share those of the directory above.
type Ignore struct {
	rules []ignoreRule
	size  int // bytes of all texts
}

type ignoreRule struct {
	pattern
	not bool
}

// Add returns the rules with those of another file, which count more; dir is the directory whose paths they are about,
// "." is the top.
func (r Ignore) Add(dir string, text []byte) (Ignore, error) {
	if r.size += len(text); r.size > maxRules {
		return r, tooLarge("gitignore")
	}
	r.rules = slices.Clip(r.rules)
	for line := range bytes.Lines(bytes.TrimPrefix(text, byteOrderMark)) {
		text := strings.TrimSuffix(strings.TrimSuffix(string(line), "\n"), "\r")
		if strings.HasPrefix(text, "#") {
			continue
		}
		for strings.HasSuffix(text, " ") && !strings.HasSuffix(text, `\ `) {
			text = text[:len(text)-1]
		}
		text, not := strings.CutPrefix(text, "!")
		if text != "" {
			r.rules = append(r.rules, ignoreRule{parsePattern(prefix(dir), text), not})
		}
	}
	return r, nil
}

// Ignores reports whether git ignores a path whose directory it does not ignore. An error is that of the context.
func (r Ignore) Ignores(ctx context.Context, name string, isDir bool) (bool, error) {
	for _, rule := range slices.Backward(r.rules) {
		if err := ctx.Err(); err != nil {
			return false, err
		}
		if rule.matches(name, isDir) {
			return !rule.not, nil
		}
	}
	return false, nil
}

// byteOrderMark may stand before the text of a file.
var byteOrderMark = []byte("\ufeff")

// prefix returns the start of the paths below a directory.
func prefix(dir string) string {
	if dir = path.Clean(dir); dir != "." {
		return dir + "/"
	}
	return ""
}
