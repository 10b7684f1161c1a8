package puller

import (
	"slices"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"
	"pgregory.net/rapid"
)

// TestParseDirectory: what git writes is read, and anything else is a mistake.
func TestParseDirectory(t *testing.T) {
	entry := func(mode, name string) string { return mode + " " + name + "\x00" + strings.Repeat("x", 20) }
	for text, want := range map[string]string{
		"":                   "",
		entry("100644", "a"): "",
		entry("100644", "a.b") + entry("40000", "a") + entry("100755", "ab"): "",
		entry("100664", "a") + entry("120000", "b") + entry("160000", "c"):   "",
		entry("100644", "a") + entry("40000", "a"):                           "exists twice",
		entry("40000", "a") + entry("40000", "a"):                            "exists twice",
		entry("40000", "a") + entry("100644", "a.b"):                         "not sorted",
		entry("100644", ""):       "not a file name",
		entry("100644", ".git"):   "reserved for git",
		entry("", "a"):            `unknown mode ""`,
		entry("040000", "a"):      "unknown mode",
		entry("100644", "a")[:20]: "truncated",
		"100644 a":                "truncated",
		"100644":                  "truncated",
		"100644 a\x00" + strings.Repeat("\x00", 20): "object ID is zero",
	} {
		_, err := parseDirectory([]byte(text))
		if (err == nil) != (want == "") || err != nil && (!strings.Contains(err.Error(), want) || !atFault(err)) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// TestParseDirectoryReadsAll: whatever go-git agrees to write is read as it was.
func TestParseDirectoryReadsAll(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.StringMatching(`[a-c.\-]{1,3}`).Filter(func(s string) bool { return s != "." && s != ".." })
		tree := &object.Tree{}
		for _, name := range rapid.SliceOfDistinct(name, rapid.ID[string]).Draw(t, "names") {
			mode := rapid.SampledFrom([]filemode.FileMode{filemode.Dir, filemode.Regular, filemode.Symlink}).Draw(t, "mode")
			tree.Entries = append(tree.Entries, object.TreeEntry{Name: name, Mode: mode, Hash: plumbing.NewHash(strings.Repeat("ab", 20))})
		}
		slices.SortFunc(tree.Entries, func(a, b object.TreeEntry) int { return strings.Compare(sortName(a), sortName(b)) })
		o := &plumbing.MemoryObject{}
		if err := tree.Encode(o); err != nil {
			t.Fatal(err)
		}
		r, _ := o.Reader()
		text := make([]byte, o.Size())
		if _, err := r.Read(text); err != nil && o.Size() > 0 {
			t.Fatal(err)
		}
		got, err := parseDirectory(text)
		if err != nil || !slices.Equal(got, tree.Entries) {
			t.Errorf("%v, %v, want %v", got, err, tree.Entries)
		}
	})
}
