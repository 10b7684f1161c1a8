package house

import (
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
	eachFile(t, func(path, text string) {
		if path == "internal/house/words_test.go" || path == "CHANGELOG.md" {
			return
		}
		looked++
		number := 0
		for line := range strings.Lines(strings.ToLower(text)) {
			number++
			for phrase, better := range insteadOf {
				if strings.Contains(line, phrase) {
					t.Errorf("%s:%d: %q: write: %s", path, number, phrase, better)
				}
			}
		}
	}, ".go", ".md", ".txtar")
	if looked < 500 {
		t.Error(looked)
	}
}
