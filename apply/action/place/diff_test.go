package place

import (
	"testing"

	"github.com/aymanbagabas/go-udiff"
)

// TestDiffOfNewFile: a new file is shown as a search for what differs would show it.
func TestDiffOfNewFile(t *testing.T) {
	for _, text := range []string{"", "a", "a\n", "a\nb\nc\nd\ne\n", "a\n\n\nb", "\n"} {
		want := udiff.Unified("/f (current)", "/f (desired)", "", text)
		if got := Diff("/f", nil, []byte(text)); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
