package render

import (
	"strings"
	"testing"
)

// TestParseTarget: what cannot be the name of a host is a mistake in a target; the value of a label may be what it
// likes.
func TestParseTarget(t *testing.T) {
	for text, want := range map[string]string{
		"web*":          "",
		"rack=a b":      "", // labels come from files in which they are free text
		"owner=ada@ops": "",
		"!gone":         "",
		"os=debian,web": "",
		"web 1":         `"web 1" is no host name: terms are joined by commas`,
		"web\t1":        "is no host name",
		"I@os:Debian":   `"I@os:Debian" is no host name`,
		"(":             `"(" is no host name: terms are joined by commas, such as os=debian,web*`,
		"web(":          `"web(" is no host name`,
		"os=debian,(":   `"(" is no host name`,
		"web,":          "a term is empty",
		"=x":            "a term is empty",
		"web[":          `"web[" is not a pattern`,
	} {
		_, err := ParseTarget(text)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}
