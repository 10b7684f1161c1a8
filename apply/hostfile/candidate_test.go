package hostfile

import (
	"strings"
	"testing"
)

// TestBesides: the name of a candidate is hidden, keeps the suffix that programs go by, and fits where the name of its
// file does.
func TestBesides(t *testing.T) {
	long := strings.Repeat("x", 250)
	for base, want := range map[string]string{
		"site.conf":          ".site.pullet.conf",
		"motd":               ".motd.pullet",
		".profile":           "..profile.pullet",
		"a.tar.gz":           ".a.tar.pullet.gz",
		long + ".conf":       "." + long[:200] + ".pullet",
		"a." + long:          ".a." + long[:198] + ".pullet",
		long[:195] + ".conf": "." + long[:195] + ".pullet.conf",
	} {
		if got := besides(base); got != want || len(got) > 255 {
			t.Errorf("%s: got %s, want %s", base, got, want)
		}
	}
}
