package safetext

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestCut(t *testing.T) {
	for _, c := range []struct {
		text string
		most int
		want string
	}{{"abcdef", 6, "abcdef"}, {"abcdefg", 6, "abc..."}, {"äöüß", 8, "äöüß"}, {"äöüß", 7, "äö..."}, {"äöüß", 6, "ä..."}, {"abc", 0, "..."}} {
		if got := Cut(c.text, c.most); got != c.want || !utf8.ValidString(got) {
			t.Errorf("%q to %d: %q, want %q", c.text, c.most, got, c.want)
		}
	}
}

// TestNames: what names of nodes, words, labels and hosts may be, and what they may not.
func TestNames(t *testing.T) {
	long := strings.Repeat("a", 254)
	for name, want := range map[string]bool{"web1": true, "a.b-c_d": true, "": false, "-a": false, "a-": false, "a b": false, "a/b": false, "ä": false, "a\n": false, long: false} {
		if Name(name) != want {
			t.Errorf("Name(%q) is %v", name, !want)
		}
	}
	for word, want := range map[string]bool{"web": true, "größe": true, "*": true, "": false, "a b": false, "a\u00a0b": false, "a/b": false, "a\u202eb": false,
		"a\u200bb": false, "a\x1b": false, "\xff": false, long: false} {
		if Word(word) != want {
			t.Errorf("Word(%q) is %v", word, !want)
		}
	}
	for host, want := range map[string]bool{"db1.example.org": true, "_srv": true, "-a": false, "a b": false, "a\n10.0.0.1 bank": false, "{{x}}": false, "": false} {
		if Host(host) != want {
			t.Errorf("Host(%q) is %v", host, !want)
		}
	}
	for label, want := range map[[2]string]bool{{"role", "web"}: true, {"example.org/rack", "r 1"}: true, {"role", "a/b"}: false, {"role", "a b"}: false, {"a=b", "c"}: false,
		{"a b", "c"}: false, {"", "c"}: false, {"a", "b\nc"}: false, {"a", strings.Repeat("b", 1001)}: false, {"a", ""}: true} {
		if err := Label(label[0], label[1]); (err == nil) != want {
			t.Errorf("Label(%q): %v", label, err)
		}
	}
}

// TestText: nothing that a terminal obeys is left, and newlines and tabs are; of a line not even those.
func TestText(t *testing.T) {
	for text, want := range map[string]string{
		"a\tb\nc": "a\tb\nc", "a\x1b[31mb": "a\u241b[31mb", "a\rb": "a\u240db", "\x7f\u009b": "\u2421\ufffd", "\xff": "\ufffd", "a\u202eb\u2066": "a\ufffdb\ufffd", "größe": "größe",
	} {
		if got := Text(text); got != want {
			t.Errorf("Text(%q) is %q, want %q", text, got, want)
		}
	}
	if got := Line("a\nb\tc\r", 100); got != "a b c\u240d" || Obeyed(got) {
		t.Errorf("Line: %q", got)
	}
}

// FuzzOneLine: no line break is left, and a text without one stays as it is.
func FuzzOneLine(f *testing.F) {
	f.Add("a\nb\r\n\u2028\u2029\u0085\v\f\tc")
	f.Fuzz(func(t *testing.T, text string) {
		if got := OneLine(text); strings.ContainsAny(got, "\n\r\v\f\u0085\u2028\u2029") || !strings.ContainsAny(text, "\n\r\v\f\u0085\u2028\u2029") && got != text {
			t.Errorf("%q becomes %q", text, got)
		}
	})
}

func FuzzText(f *testing.F) {
	f.Add("a\x1b]0;x\a", 10)
	f.Fuzz(func(t *testing.T, text string, most int) {
		if got := Text(text); Obeyed(strings.NewReplacer("\n", "", "\t", "").Replace(got)) || Text(got) != got {
			t.Errorf("%q becomes %q", text, got)
		}
		most = max(3, most%1000)
		if got := Line(text, most); Obeyed(got) || len(got) > most {
			t.Errorf("%q becomes %q", text, got)
		}
	})
}

// TestWriter: characters that come in parts are whole, and nothing but the program's own sequences gets through.
func TestWriter(t *testing.T) {
	var out strings.Builder
	w := &Writer{To: &out}
	for _, b := range []byte("größe\x1b[31m\u202e\n") {
		if n, err := w.Write([]byte{b}); n != 1 || err != nil {
			t.Fatal(n, err)
		}
	}
	if err := w.Own("\x1b[K"); err != nil || out.String() != "größe\u241b[31m\ufffd\n\x1b[K" {
		t.Errorf("%q %v", out.String(), err)
	}
}

// TestHeadline: a heading alone says nothing, so what follows it belongs to the headline.
func TestHeadline(t *testing.T) {
	for text, want := range map[string]struct {
		line string
		more bool
	}{
		"one line":             {"one line", false},
		"a heading:":           {"a heading:", false},
		"one line\nanother":    {"one line", true},
		"a heading:\nwhat":     {"a heading: what", false},
		"a heading:\nwhat\nat": {"a heading: what", true},
	} {
		if line, more := Headline(text); line != want.line || more != want.more {
			t.Errorf("%q: %q %v", text, line, more)
		}
	}
}

// TestShellWord: what a shell would read otherwise is in quotes.
func TestShellWord(t *testing.T) {
	for text, want := range map[string]string{
		"uptime": "uptime", "site/reload": "site/reload", "": "''", "a b": "'a b'", "web*": "'web*'", "it's": `'it'\''s'`, "$(reboot)": "'$(reboot)'", "role=web": "'role=web'", "~": "'~'",
	} {
		if got := ShellWord(text); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

// TestSome: a list is as long as it may be, and then says how many it left out.
func TestSome(t *testing.T) {
	for want, names := range map[string][]string{
		"": nil, "a": {"a"}, "a, b": {"a", "b"}, "a, b and 1 more": {"a", "b", "c"}, "a, b and 2 more": {"a", "b", "c", "d"},
	} {
		if got := Some(names, 2); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestEventNames(t *testing.T) {
	for name, want := range map[string]bool{
		"a": true, "a/b": true, "pullet/step/failed": true, "A_1.b: c-d/_": true, "prometheus/alert/my-cool-alert": true, strings.Repeat("a", 200): true,
		"": false, "/": false, "a/": false, "/a": false, "a//b": false, " a": false, "a ": false, "a/ b": false, "-a": false, "a.": false, "a*": false, "ä": false, "a\nb": false,
		"a\x00": false, strings.Repeat("a", 201): false,
	} {
		if EventName(name) != want {
			t.Errorf("%q: %v", name, !want)
		}
	}
}
