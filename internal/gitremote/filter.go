package gitremote

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/format/gitattributes"
)

// FilteredFile is a file whose content git changes with a filter at each checkout, such as git-crypt: hosts get what
// the commit holds, which is not what stands in the work tree.
type FilteredFile struct{ Name, Filter string }

// Error names the filter, and not the file.
func (f FilteredFile) Error() string {
	return fmt.Sprintf(
		"the filter %s of .gitattributes makes the content of this file, and hosts run no filters: they would get what the "+
			"commit holds; put the file into the repository as it is, or encrypt it with pullet secrets edit",
		f.Filter,
	)
}

// Filtered finds the first of the files for which gitattributes(5) sets a filter other than LFS.
// attributes are the texts of all .gitattributes files by their paths, which are relative to the repository and have
// slashes, as those of files have. Of LFS it says nothing: a file that LFS was turned on for later is there as it is.
func Filtered(attributes map[string][]byte, files []string) (FilteredFile, bool) {
	var stack []gitattributes.MatchAttribute
	depth := func(name string) int { return strings.Count(name, "/") }
	names, filters := slices.Collect(maps.Keys(attributes)), false
	for _, text := range attributes {
		filters = filters || bytes.Contains(text, []byte("filter="))
	}
	if !filters {
		return FilteredFile{}, false
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(depth(a)-depth(b), strings.Compare(a, b)) })
	for _, name := range names {
		var domain []string
		if dir := path.Dir(name); dir != "." {
			domain = strings.Split(dir, "/")
		}
		for line := range bytes.Lines(attributes[name]) {
			rules, err := gitattributes.ReadAttributes(bytes.NewReader(line), domain, true)
			if err != nil { // a line that git leaves out, too
				continue
			}
			stack = append(stack, rules...)
		}
	}
	matcher := gitattributes.NewMatcher(stack)
	for _, name := range files {
		found, _ := matcher.Match(strings.Split(name, "/"), []string{"filter"})
		if a := found["filter"]; a != nil && a.IsValueSet() && a.Value() != "lfs" {
			return FilteredFile{name, a.Value()}, true
		}
	}
	return FilteredFile{}, false
}
