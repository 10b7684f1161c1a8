package pullet

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// insteadOf are phrases that readers stumble over, each with what to write.
var insteadOf = map[string]string{
	"in force":          "a host keeps its current version, and corrects its drift",
	"goes on by itself": "no action needed",
	"that is none":      "invalid",
}

// TestWords: no page, script, message or comment has one of these phrases. The changelog keeps what it said.
func TestWords(t *testing.T) {
	looked := 0
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || path == "house_words_test.go" || path == "CHANGELOG.md" || !slices.Contains([]string{".go", ".md", ".txtar"}, filepath.Ext(path)) {
			return err
		}
		looked++
		text, err := os.ReadFile(path)
		number := 0
		for line := range strings.Lines(strings.ToLower(string(text))) {
			number++
			for phrase, better := range insteadOf {
				if strings.Contains(line, phrase) {
					t.Errorf("%s:%d: %q: write: %s", path, number, phrase, better)
				}
			}
		}
		return err
	})
	if err != nil || looked < 500 {
		t.Error(looked, err)
	}
}
