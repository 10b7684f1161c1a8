package house

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#{1,6} +(.+?) *$`)
	fenced  = regexp.MustCompile("(?ms)^ *```.*?^ *```")
	code    = regexp.MustCompile("`[^`\n]*`")
	dropped = regexp.MustCompile(`[^\p{L}\p{N}\- _]`)
)

// documents returns the text of each Markdown page of the project, by path.
func documents(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/*/*.md", "example-repo/*.md"} {
		files, _ := filepath.Glob(pattern) // the pattern is good
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			out[file] = string(text)
		}
	}
	return out
}

// anchors returns the anchors of the headings of a page, as forges make them.
func anchors(text string) (out []string) {
	for _, m := range heading.FindAllStringSubmatch(fenced.ReplaceAllString(text, ""), -1) {
		title := link.ReplaceAllString(m[1], "]")
		one := strings.ReplaceAll(dropped.ReplaceAllString(strings.ToLower(title), ""), " ", "-")
		out = append(out, one)
	}
	return out
}

// TestLinks checks that each relative link of the documents names a file of the project, and each anchor a heading.
func TestLinks(t *testing.T) {
	pages, links := documents(t), 0
	for name, text := range pages {
		text = code.ReplaceAllString(fenced.ReplaceAllString(text, ""), "")
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			if strings.Contains(m[1], ":") { // an address
				continue
			}
			links++
			file, anchor, _ := strings.Cut(m[1], "#")
			if file = path.Join(path.Dir(name), file); strings.HasPrefix(m[1], "#") {
				file = name
			}
			if _, err := os.Stat(file); err != nil {
				t.Errorf("%s: the link %s leads nowhere", name, m[1])
			} else if anchor != "" && !slices.Contains(anchors(pages[file]), anchor) {
				t.Errorf("%s: %s has no heading for the link %s", name, file, m[1])
			}
		}
	}
	if links < 100 {
		t.Errorf("only %d links were found", links)
	}
}

// TestIndex checks that docs/README.md leads to each page of docs.
func TestIndex(t *testing.T) {
	pages := documents(t)
	index := pages["docs/README.md"]
	for name := range pages {
		page, isDoc := strings.CutPrefix(name, "docs/")
		if isDoc && page != "README.md" && !strings.HasPrefix(page, "examples/") && !strings.Contains(index, "]("+page+")") {
			t.Errorf("docs/README.md has no link to %s", page)
		}
	}
}
