package main

import (
	"bytes"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"

	"github.com/pullet/pullet/internal/safetext"
)

// TestYAMLIsPlain: -o yaml prints nothing that a terminal obeys. Where YAML would leave such a character as it is, it
// prints JSON, which is YAML, too.
func TestYAMLIsPlain(t *testing.T) {
	for text, want := range map[string]string{
		"plain": "text: plain\n", "a\u202eb": "{\n  \"text\": \"a\\u202eb\"\n}\n", "a\u009bb": "", "a\x1b[2J\nb": "", "a\u2028b": "",
	} {
		var out bytes.Buffer
		if err := printYAML(&out, map[string]string{"text": text}); err != nil {
			t.Fatal(err)
		}
		var back map[string]string
		if err := yaml.Load(out.Bytes(), &back); err != nil || back["text"] != text {
			t.Errorf("%q comes back as %q, %v", text, back["text"], err)
		}
		if safetext.Text(out.String()) != out.String() || want != "" && out.String() != want || strings.Contains(out.String(), "\x1b") {
			t.Errorf("%q prints %q", text, out.String())
		}
	}
}
