package extension

import (
	"encoding/json"
	"strings"
	"testing"
)

// FuzzAnswer: whatever an executable prints, its answer is read or refused, and what is read can be told again.
func FuzzAnswer(f *testing.F) {
	for _, seed := range []string{
		"", "{}", "[]", "null", `{"change": "x", "diff": "+x\n", "state": "s", "protocol": 1}`, `{"state": "s", "stdout": "o", "data": {"a": [1e999, null]}, "changed": false}`,
		`{"chnage": 1}`, `{"protocol": 2}`, `{"change": "\ud800"}`, `{} {}`, `{"data": ` + strings.Repeat("[", 10001), "{\"a\xff\": 1}", `{"change":"x"}` + "\x00",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var check checkAnswer
		if err := decodeAnswer(text, &check); err == nil && check.Change == "" && check.Diff != "" {
			t.Errorf("%q: a diff without a change", text)
		} else if err != nil && err.Error() == "" {
			t.Errorf("%q: nothing is said of what is wrong", text)
		}
		var applied applyAnswer
		if err := decodeAnswer(text, &applied); err != nil {
			return
		}
		again, err := json.Marshal(applied)
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		if err := decodeAnswer(string(again), &applied); err != nil && !strings.HasPrefix(err.Error(), "it speaks") {
			t.Errorf("%q, told again as %q: %v", text, again, err)
		}
	})
}
