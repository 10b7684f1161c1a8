package file_test

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/pullet/pullet/apply/action/actiontest"
)

// TestEditedBytes: nothing but the line or the block changes: other ends of lines, a missing last one and what is no
// UTF-8 stay.
func TestEditedBytes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, action, params, before, after string }{
		{"add at the end", "file.line", "line: x", "a\nb\n", "a\nb\nx\n"},
		{"add behind a line without an end", "file.line", "line: x", "a\nb", "a\nb\nx\n"},
		{"add to nothing", "file.line", "line: x", "", "x\n"},
		{"add, dos", "file.line", "line: x", "a\r\nb\r\n", "a\r\nb\r\nx\r\n"},
		{"replace, dos, no end", "file.line", "line: x, match: '^b$'", "a\r\nb", "a\r\nx"},
		{"replace, mixed ends", "file.line", "line: x, match: '^b$'", "a\nb\r\nc\n", "a\nx\r\nc\n"},
		{"a carriage return alone is no end", "file.line", "line: x, match: '^b'", "a\rz\nb\r", "a\rz\nx"},
		{"latin-1", "file.line", "line: x, match: '^b'", "\xe4\nb\n", "\xe4\nx\n"},
		{"after the last that matches", "file.line", "line: x, after: '^a'", "a1\na2\nb\n", "a1\na2\nx\nb\n"},
		{"after the last line", "file.line", "line: x, after: b", "a\nb", "a\nb\nx\n"},
		{"before the first that matches", "file.line", "line: x, before: '^a'", "b\na1\na2", "b\nx\na1\na2"},
		{"remove all", "file.line", "match: '^a', state: absent", "a1\nb\na2", "b\n"},
		{"remove an equal line, not what begins so", "file.line", "line: a, state: absent", "a\nab\na\r\n", "ab\n"},
		{"block at the end", "file.block", `content: "x\n\ny"`, "a", "a\n# BEGIN pullet\nx\n\ny\n# END pullet\n"},
		{"block, dos", "file.block", `content: "x\ny\n"`, "a\r\nb\r\n", "a\r\nb\r\n# BEGIN pullet\r\nx\r\ny\r\n# END pullet\r\n"},
		{"block before", "file.block", "content: x, before: b, comment: ';', marker: m", "a\nb", "a\n; BEGIN m\nx\n; END m\nb"},
		{"block replaced", "file.block", "content: x", "a\n # BEGIN pullet \nold\nolder\n# END pullet", "a\n # BEGIN pullet \nx\n# END pullet"},
		{"block grows", "file.block", `content: "x\ny\nz"`, "# BEGIN pullet\nold\n# END pullet\nb", "# BEGIN pullet\nx\ny\nz\n# END pullet\nb"},
		{"block with whole markers", "file.block", "content: x, begin: '<!-- a -->', end: '<!-- /a -->'", "<!-- a -->\n<!-- /a -->\n", "<!-- a -->\nx\n<!-- /a -->\n"},
		{"block removed", "file.block", "state: absent", "a\n# BEGIN pullet\nold\n# END pullet\nb", "a\nb"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := actiontest.New(t)
			if err := os.WriteFile(s.Path("f"), []byte(c.before), 0o640); err != nil {
				t.Fatal(err)
			}
			s.MustRun(c.action, "{name: /f, "+c.params+"}")
			if got := s.Read("f"); got != c.after {
				t.Errorf("got  %q\nwant %q", got, c.after)
			}
			if info, err := os.Stat(s.Path("f")); err != nil || info.Mode() != 0o640 {
				t.Errorf("mode %v %v", info.Mode(), err)
			}
		})
	}
}

// TestEditThroughLink: the file is edited, and the link stays.
func TestEditThroughLink(t *testing.T) {
	t.Parallel()
	s := actiontest.New(t, "f run/f 644 a\n", "l etc/f /run/f")
	s.MustRun("file.line", "{name: /etc/f, line: b}")
	if to, err := os.Readlink(s.Path("etc/f")); err != nil || to != "/run/f" || s.Read("run/f") != "a\nb\n" {
		t.Errorf("link %q %v, file %q", to, err, s.Read("run/f"))
	}
}

// TestEditsAtOnce: steps that edit one file at the same time lose nothing of each other.
func TestEditsAtOnce(t *testing.T) {
	t.Parallel()
	s := actiontest.New(t, "f f 644 a\n")
	p, err := s.BindText(`runOptions: {ordering: justdoit}
steps:
- {name: l, forEach: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10], action: file.line, parameters: {name: /f, line: 'x{{ item }}'}}
- {name: b, forEach: [1, 2, 3, 4, 5], action: file.block, parameters: {name: /f, content: x, marker: 'm{{ item }}'}}
`)
	if err != nil {
		t.Fatal(err)
	}
	if r := s.RunAll(context.Background(), p); r.Changed() != 15 || strings.Count(s.Read("f"), "\n") != 1+10+15 {
		t.Errorf("%d changed: %q\n%s", r.Changed(), s.Read("f"), r.Why())
	}
}

// TestByteOrderMark: the mark stays in front of the text, whatever becomes of the first line.
func TestByteOrderMark(t *testing.T) {
	t.Parallel()
	for params, want := range map[string]string{
		"{name: /f, line: x = 1, match: '^x'}":                    "\ufeffx = 1\ny\n",
		"{name: /f, line: x = 0, state: absent}":                  "\ufeffy\n",
		"{name: /f, line: z, before: '^x'}":                       "\ufeffz\nx = 0\ny\n",
		"{name: /f, match: '^(x|y)', line: '', state: absent}":    "\ufeff",
		"{name: /f, line: x = 0, match: '^x = 0$', mode: '0600'}": "\ufeffx = 0\ny\n",
	} {
		s := actiontest.New(t, "f f 644 \ufeffx = 0\ny\n")
		s.MustRun("file.line", params)
		if have := s.Read("f"); have != want {
			t.Errorf("%s: %q, want %q", params, have, want)
		}
	}
}
