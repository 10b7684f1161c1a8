package place

import (
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/internal/safetext"
)

// Kind is what a path is, in a word.
func Kind(info fs.FileInfo) string {
	switch {
	case info.IsDir():
		return "a directory"
	case info.Mode()&fs.ModeSymlink != 0:
		return "a symbolic link"
	case info.Mode().IsRegular():
		return "a file"
	}
	return info.Mode().Type().String()
}

// Tally sums up what is to be done to many files.
type Tally struct {
	created, changed, removed int
	lines                     int
	diff                      strings.Builder
	gone                      []string
}

// Count takes one file into account.
func (c *Tally) Count(summary, name, diff string) {
	switch {
	case summary == "":
		return
	case summary == "create" || strings.HasPrefix(summary, "create, "):
		c.created++
	default:
		c.changed++
	}
	if diff == "" {
		diff = safetext.OneLine(name+": "+summary) + "\n"
	}
	c.add(diff)
}

// Remove takes paths below a directory into account that are to be removed.
func (c *Tally) Remove(name string, extra []string) {
	for _, rel := range extra {
		c.removed++
		c.gone = append(c.gone, path.Join(name, rel))
		c.add(safetext.OneLine(path.Join(name, rel)) + ": remove\n")
	}
}

func (c *Tally) add(diff string) {
	before := c.lines
	c.lines += strings.Count(diff, "\n")
	if c.lines <= maxDiffLines {
		c.diff.WriteString(diff)
	} else if before <= maxDiffLines {
		c.diff.WriteString("... and more\n")
	}
}

// Change is all of it as one change.
func (c *Tally) Change() apply.Change {
	var parts []string
	for _, p := range []struct {
		word  string
		count int
	}{{"create", c.created}, {"change", c.changed}, {"remove", c.removed}} {
		if p.count > 0 {
			parts = append(parts, fmt.Sprintf("%s %d", p.word, p.count))
		}
	}
	return apply.Change{Summary: strings.Join(parts, ", "), Diff: c.diff.String(), Lost: c.removed > 0, Removes: c.gone}
}
