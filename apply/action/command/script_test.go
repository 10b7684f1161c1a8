package command_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/apply/action/actiontest"
)

// TestScriptInterpreters: the first line says who reads a script, with one argument, as the kernel has it; a parameter
// overrides it.
func TestScriptInterpreters(t *testing.T) {
	t.Parallel()
	for script, want := range map[string]string{
		"echo none $0":                                             "none",
		"#!/bin/sh\necho sh":                                       "sh",
		"#! /bin/sh -e \nfalse; echo not reached":                  "exit code 1",
		"#!/usr/bin/env -S sh -e\nfalse; echo not reached":         "exit code 1",
		"#!/usr/bin/awk -f\nBEGIN { print \"awk\" }":               "awk",
		"#!/bin/cat -n\nnumbered":                                  "2\tnumbered",
		"# no interpreter\necho comment":                           "comment",
		"#!\necho an empty one":                                    "an empty one",
		"#!/bin/sh\ncase $0 in */script) echo \"$#:$1:$2\";; esac": "2:a b:c",
	} {
		s := actiontest.New(t)
		s.Files["script"] = script
		r := s.Run(s.MustBind("cmd.script", "{source: script, args: [a b, c]}"))
		if !strings.Contains(r.Result.StdOut+r.Reason, want) || strings.Contains(r.Result.StdOut, "not reached") {
			t.Errorf("%q: %s %q %q, want %q", script, r.Outcome, r.Result.StdOut, r.Reason, want)
		}
	}
	s := actiontest.New(t)
	r := s.Run(s.MustBind("cmd.script", `{script: "#!/nowhere\necho $-", interpreter: [/bin/sh, -u]}`))
	if !strings.Contains(r.Result.StdOut, "u") {
		t.Errorf("the parameter: %s %q %s", r.Outcome, r.Result.StdOut, r.Reason)
	}
}

// TestScriptStaysPrivate: neither ps nor the file's mode shows the text, and the file is gone afterwards, also after a
// failure.
func TestScriptStaysPrivate(t *testing.T) {
	t.Parallel()
	s := actiontest.New(t)
	p := s.MustBind("cmd.script", `{script: "secret=open-sesame\necho $0\nstat -c %a $0 $(dirname $0)\ntr '\\0' ' ' </proc/$$/cmdline\nno-such-command\nexit 4\n"}`)
	r := s.Run(p)
	lines := strings.Split(r.Result.StdOut, "\n")
	if len(lines) < 4 || lines[1] != "400" || lines[2] != "700" || strings.Contains(r.Result.StdOut, "sesame") {
		t.Fatalf("%q", r.Result.StdOut)
	}
	if _, err := os.Stat(filepath.Dir(lines[0])); !os.IsNotExist(err) {
		t.Errorf("left behind: %v", err)
	}
	if !strings.HasPrefix(r.Reason, "a script of 6 lines: exit code 4: script: ") || strings.Contains(r.Reason+r.Result.StdErr, filepath.Dir(lines[0])) {
		t.Errorf("the temporary name shows: %q %q", r.Reason, r.Result.StdErr)
	}
}

// TestScriptOfAnotherUser: who runs it can read it, and nobody else.
func TestScriptOfAnotherUser(t *testing.T) {
	t.Parallel()
	actiontest.NeedRoot(t)
	s := actiontest.New(t)
	if err := os.Chmod(filepath.Dir(filepath.Dir(s.Root)), 0o755); err != nil {
		t.Fatal(err)
	}
	r := s.Run(s.MustBind("cmd.script", `{script: "id -un; stat -c '%U %a' $0 $(dirname $0)", user: nobody, cwd: /}`))
	if want := "nobody\nnobody 400\nnobody 700\n"; r.Result.StdOut != want {
		t.Errorf("%q %s, want %q", r.Result.StdOut, r.Reason, want)
	}
}

// TestScriptTemplate: a source can be a template; a script that changed runs again.
func TestScriptTemplate(t *testing.T) {
	t.Parallel()
	s := actiontest.New(t)
	s.Files["greet"] = "#!/bin/sh\necho hello {{ server.fqdn }}\n"
	r := s.Run(s.MustBind("cmd.script", "{source: greet, template: true}"))
	if r.Result.StdOut != "hello n1.example.org\n" || r.Summary != "run greet" {
		t.Errorf("%q %q %s", r.Result.StdOut, r.Summary, r.Reason)
	}
	for _, c := range []struct {
		text string
		want apply.Outcome
	}{{"echo 1", apply.Changed}, {"echo 1", apply.OK}, {"echo 2", apply.Changed}} {
		if r := s.Run(s.MustBind("cmd.script", "{script: "+c.text+"}")); r.Outcome != c.want {
			t.Errorf("%s: %s, want %s", c.text, r.Outcome, c.want)
		}
	}
}

// TestSensitiveIsNotLive: what a command prints is shown while it runs, that of a sensitive step and of guards never.
func TestSensitiveIsNotLive(t *testing.T) {
	t.Parallel()
	s := actiontest.New(t)
	p, err := s.BindText(`steps:
- {name: open, action: cmd.run, parameters: {cmd: echo shown, unless: echo guard; false}}
- {name: closed, action: cmd.script, parameters: {script: echo sesame}, sensitive: true}
- {name: again, action: cmd.run, parameters: {cmd: echo reacts, creates: /}, watch: [open]}
`)
	if err != nil {
		t.Fatal(err)
	}
	o := s.Options()
	var seen []string
	o.Host.Live = func(step, line string) { seen = append(seen, step+": "+line) }
	if _, err := p.Run(context.Background(), o); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(seen, ", "); got != "a/open: shown, a/again: reacts" {
		t.Errorf("shown: %s", got)
	}
}
