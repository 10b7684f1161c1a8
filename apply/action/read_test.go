package action_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/apply/action"
	"github.com/pullet/pullet/apply/action/actiontest"
)

// macro is what a step gets from a macro m, written in any form; or why it does not.
func macro(s *actiontest.Scene, text, use string) (string, error) {
	s.T.Helper()
	s.Macros, s.State = "m: "+text+"\n", s.T.TempDir()
	p, err := s.Bind("template.expression", "{content: '{{ "+use+" }}'}")
	if err != nil {
		return "", err
	}
	r := s.Run(p)
	if r.Outcome != apply.OK {
		return "", fmt.Errorf("%s", r.Reason)
	}
	return r.Result.StdOut, nil
}

// readers are the actions that a macro may use, each with a macro and its value on a host with /etc/load.
func readers(url string) map[string][2]string {
	return map[string][2]string{
		"cmd.run":      {"{params: [a], cmd.run: {cmd: [printf, '%s-%s', '{{ .a }}', x], cwd: /etc, env: {A: b}}}", "one-x"},
		"file.content": {"{file.content: {name: '/etc/{{ .a }}'}, params: [a]}", "12"},
		"http.request": {"{params: [a], action: http.request, parameters: [{url: '" + url + "/{{ .a }}'}, {timeout: 5s}]}", "GET /one"},
		"pkg.uptodate": {"{params: [a], pkg.uptodate: [{lockTimeout: 5s}]}", ""},
	}
}

// TestMacroReads: a macro may use every action that only reads.
func TestMacroReads(t *testing.T) {
	t.Parallel()
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, r.Method+" "+r.URL.Path+"\n") }))
	defer web.Close()
	known := readers(web.URL)
	for _, spec := range action.All() {
		_, reads := spec.New().(apply.Reader)
		if _, tested := known[spec.Name]; reads != tested {
			t.Errorf("%s: it reads: %v; it is tested: %v", spec.Name, reads, tested)
		}
	}
	for name, c := range known {
		s := actiontest.New(t, "f etc/one 0644 12\n")
		got, err := macro(s, c[0], `macro "m" "one"`)
		if name == "pkg.uptodate" { // on a whole host: TestPackageMacroOfRepository
			if err == nil || !strings.Contains(err.Error(), `macro "m": `+s.Root+" is no system with apt") {
				t.Errorf("%s: %q %v", name, got, err)
			}
			continue
		}
		if err != nil || got != c[1] {
			t.Errorf("%s: %q %v, want %q", name, got, err, c[1])
		}
	}
}

// TestMacroDoesNotChange: what would change something cannot be a macro, and mistakes in its parameters are found
// before the run.
func TestMacroDoesNotChange(t *testing.T) {
	t.Parallel()
	only := "macros only read, with cmd.run, file.content, http.request, pkg.uptodate, template.expression"
	for text, want := range map[string]string{
		"{file.managed: {name: /etc/x}}":                              "file.managed cannot be a macro: " + only,
		"{action: file.contents, parameters: {name: /etc/x}}":         `there is no action "file.contents" (did you mean "file.content"?)`,
		"{http.request: {url: 'http://x/', method: POST}}":            "method POST changes the server, and a macro only reads: use GET",
		"{http.request: {url: 'http://x/', creates: /x}}":             "a macro always sends its request: leave out creates, removes, unless and onlyif",
		"{cmd.run: {cmd: x, creates: /x}}":                            "a macro always runs its command, which only reads: leave out",
		"{cmd.run: {cmd: x, cwt: /x}}":                                `unknown field "cwt"`,
		"{cmd.run: {cwd: /x}}":                                        `parameters: "cmd" is missing`,
		"{file.content: {name: etc}}":                                 `name: "etc" is not an absolute path`,
		"{file.content: {name: /etc}, file.managed: {name: /etc/x}}":  `unknown field "file.managed"`,
		"{params: [a], cmd.run: {cmd: x}, runOptions: {timeout: 5s}}": `unknown field "runOptions"`,
		"{params: [a], parameters: {cmd: x}}":                         `"action" is missing`,
		"{template.expression: {content: x}, action: cmd.run}":        `unknown field "template.expression"`,
		"{cmd.run: {cmd: x, timeout: soon}}":                          "timeout",
	} {
		_, err := macro(actiontest.New(t), text, `macro "m"`)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "macros/all.yaml:1:") {
			t.Errorf("%s:\n  %v\nwant %q", text, err, want)
		}
	}
}

// TestMacroOfDirectory: a macro's value is a text, so that of a directory is none.
func TestMacroOfDirectory(t *testing.T) {
	t.Parallel()
	if _, err := macro(actiontest.New(t, "d etc 0755"), "{file.content: {name: /etc}}", `macro "m"`); err == nil ||
		!strings.Contains(err.Error(), `macro "m": /etc is a directory: the value of a macro is the text of one file`) {
		t.Error(err)
	}
}
