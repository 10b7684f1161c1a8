package extension_test

import (
	"context"
	"encoding/json"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/apply/action/actiontest"
	"github.com/pullet/pullet/internal/patience"
)

// echo answers what a variable of the repository's test says, and keeps what it was told.
const echo = "#!/bin/sh\ncat >\"$PULLET_ROOT/told.$1\"\nenv >\"$PULLET_ROOT/env.$1\"\necho said >&2\n" +
	`case $1 in check) printf '%s' '{"change": "some  thing", "diff": "+x\n"}';; *) echo '{"state": "made", "stdout": "out", "data": {"n": 1.50}}';; esac` + "\n"

// TestExtensionProtocol: what the executable is told, and what becomes of its answer.
func TestExtensionProtocol(t *testing.T) {
	s := actiontest.New(t)
	schema := "parameters: {properties: {n: {type: integer, default: 7}, s: {type: string}, m: {}, b: {type: boolean}, my-own: {}}}\n"
	p := mustBindLayers(s, job(brings(echo, schema), "acme.it", "{s: 1.10, b: 'yes', m: {a: [1, <x>]}, my-own: x}"))
	r := s.Run(p)
	if r.Outcome != apply.Changed || r.Summary != "some thing" || r.Diff != "+x\n" {
		t.Errorf("%s %q %q %s", r.Outcome, r.Summary, r.Diff, r.Reason)
	}
	res := r.Result
	if res.State != "made" || res.StdOut != "out" || res.StdErr != "said\n" || !res.Changed || !reflect.DeepEqual(res.Data, map[string]any{"n": 1.5}) {
		t.Errorf("%+v", res)
	}
	for _, mode := range []string{"check", "apply"} {
		var got, want any
		text := `{"protocol": 1, "action": "acme.it", "mode": "` + mode + `", "root": "` + s.Root + `", "version": "v1",
			"node": {"name": "n1", "labels": {"role": "web"}}, "parameters": {"n": 7, "s": "1.10", "b": true, "m": {"a": [1, "<x>"]}, "my-own": "x"}}`
		if err := json.Unmarshal([]byte(text), &want); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal([]byte(s.Read("told."+mode)), &got); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%v\n got %v\nwant %v", err, got, want)
		}
	}
	env := "\n" + s.Read("env.apply")
	for _, want := range []string{"PULLET_ROOT=" + s.Root, "PULLET_PARAM_n=7", "PULLET_PARAM_s=1.10", "PULLET_PARAM_b=true", "HOME=/root"} {
		if !strings.Contains(env, "\n"+want+"\n") {
			t.Errorf("the environment lacks %s:%s", want, env)
		}
	}
	if strings.Contains(env, "my-own") || strings.Contains(env, "PULLET_PARAM_m") {
		t.Errorf("what is no name or no single value stands in the environment:%s", env)
	}
}

// answering is an extension that prints these texts.
func answering(check, apply string) string {
	return "#!/bin/sh\ncat >/dev/null\ncase $1 in\ncheck) " + check + ";;\napply) " + apply + ";;\nesac\n"
}

// TestExtensionAnswers: what cannot be taken for an answer fails the step, and the reason names what is wrong.
func TestExtensionAnswers(t *testing.T) {
	const fine = `echo '{"change": "x"}'`
	for _, c := range []struct{ check, apply, want string }{
		{`echo '{"change": "x"}'; exit 3`, "", "acme.it check: exit code 3"},
		{"echo one >&2; echo two >&2; exit 1", "", "acme.it check: exit code 1: one | two"},
		{"kill -9 $$", "", "acme.it check: exit code -1"},
		{"no-such-program", "", "acme.it check: exit code 127: extensions/it: 4: no-such-program: not found"},
		{"true", "", "acme.it check: it printed no answer: print a JSON object"},
		{"echo '[]'", "", `the answer is no JSON object: it begins with "[]"`},
		{"echo hello", "", `the answer is no JSON object: it begins with "hello"; what is meant for people belongs to stderr`},
		{"echo null", "", `the answer is no JSON object`},
		{`echo '{"change": "x"'`, "", `the answer is cut off: it ends with "{\"change\": \"x\""`},
		{`echo '{"change": x}'`, "", "the answer is no JSON: invalid character 'x'"},
		{`echo '{"change": 1}'`, "", `the answer's field "change" cannot be a number`},
		{`echo '{"chnage": "x"}'`, "", `the answer has an unknown field "chnage" (did you mean "change"?)`},
		{`echo '{"changed": true, "xyzzy": 1}'`, "", `the answer has an unknown field "changed" (did you mean "change"?)`},
		{`echo '{"xyzzy": 1}'`, "", `the answer has an unknown field "xyzzy": there are protocol, change, diff, state`},
		{`echo '{} {}'`, "", `the answer is followed by more`},
		{`echo '{"diff": "x"}'`, "", `the answer has a diff and no change`},
		{`echo '{"protocol": 2, "news": 1}'`, "", "it speaks protocol 2, and this pullet speaks 1"},
		{"head -c 2000000 /dev/zero | tr '\\000' x", "", "acme.it check: the answer is larger than 1 MiB"},
		{fine, `echo '{"change": "x"}'`, `acme.it apply: the answer has an unknown field "change" (did you mean "changed"?)`},
		{fine, "echo bad >&2; exit 4", "acme.it apply: exit code 4: bad"},
	} {
		t.Run(c.check+c.apply, func(t *testing.T) {
			s := actiontest.New(t)
			r := s.Run(mustBindLayers(s, job(brings(answering(c.check, c.apply), ""), "acme.it", "{}")))
			if r.Outcome != apply.Failed || !strings.Contains(r.Reason, c.want) {
				t.Errorf("%s %q\nwant %q", r.Outcome, r.Reason, c.want)
			}
		})
	}
}

// TestExtensionState: the word of check is the step's state where nothing is to be done.
func TestExtensionState(t *testing.T) {
	s := actiontest.New(t)
	r := s.Run(mustBindLayers(s, job(brings(answering(`echo '{"state": "framed"}'`, ""), ""), "acme.it", "{}")))
	if r.Outcome != apply.OK || r.Result.State != "framed" {
		t.Errorf("%s %s, state %q", r.Outcome, r.Reason, r.Result.State)
	}
}

// TestExtensionChangedNothing: an apply that says so is no change.
func TestExtensionChangedNothing(t *testing.T) {
	for answer, want := range map[string]apply.Outcome{`{"changed": false}`: apply.OK, `{"changed": true}`: apply.Changed, `{}`: apply.Changed} {
		s := actiontest.New(t)
		r := s.Run(mustBindLayers(s, job(brings(answering(`echo '{"change": "x"}'`, "echo '"+answer+"'"), ""), "acme.it", "{}")))
		if r.Outcome != want {
			t.Errorf("%s: %s %s", answer, r.Outcome, r.Reason)
		}
	}
}

// TestUncheckedExtension: without a check it runs once for each set of parameters, and again when something that it
// watches changed.
func TestUncheckedExtension(t *testing.T) {
	s := actiontest.New(t, "f other 644 a")
	script := answering("exit 9", `echo x >>"$PULLET_ROOT/runs"; echo '{}'`)
	files := brings(script, "check: false\nparameters: {properties: {a: {}}}\n")
	text := "steps:\n- name: it\n  action: acme.it\n  parameters: {a: 1}\n"
	p := mustBindLayers(s, jobs(files, text))
	if r := s.Plan(p); r.Summary != "run acme.it" || r.Outcome != apply.Changed {
		t.Errorf("%s %q", r.Outcome, r.Summary)
	}
	for range 3 {
		s.Run(p)
	}
	s.Run(mustBindLayers(s, jobs(files, strings.Replace(text, "a: 1", "a: 2", 1))))
	if got := s.Read("runs"); got != "x\nx\n" {
		t.Errorf("it ran %q", got)
	}
	watching := "steps:\n- name: f\n  action: file.managed\n  parameters: {name: /other, content: b}\n" + text[len("steps:\n"):] + "  watch: [f]\n"
	s.RunAll(context.Background(), mustBindLayers(s, jobs(files, strings.Replace(watching, "a: 1", "a: 2", 1))))
	if got := s.Read("runs"); got != "x\nx\nx\n" {
		t.Errorf("it watched and ran %q", got)
	}
}

// TestPassiveExtension never counts as a change.
func TestPassiveExtension(t *testing.T) {
	s := actiontest.New(t)
	r := s.Run(mustBindLayers(s, job(brings(answering(`echo '{"change": "read"}'`, `echo '{"stdout": "42"}'`), "passive: true\n"), "acme.it", "{}")))
	if r.Outcome != apply.OK || r.Result.StdOut != "42" {
		t.Errorf("%s %+v", r.Outcome, r.Result)
	}
}

// TestExtensionStops: one that is told to stop, or takes too long, returns soon and its children are gone.
func TestExtensionStops(t *testing.T) {
	busy := `sleep 60 & (sleep 60; true) & echo $$ > "$PULLET_ROOT/started"; wait`
	for name, script := range map[string]string{
		"check": answering(busy, ""), "apply": answering(`echo '{"change": "x"}'`, busy),
	} {
		t.Run(name+" is cancelled", func(t *testing.T) {
			s := actiontest.New(t)
			p, group, done := mustBindLayers(s, job(brings(script, ""), "acme.it", "{}")), s.Started(), make(chan *apply.Report, 1)
			ctx, cancel := context.WithCancel(context.Background())
			go func() { done <- s.RunAll(ctx, p) }()
			pid := <-group
			began := time.Now()
			cancel()
			if r := <-done; r.Stopped == "" || r.Failed() || time.Since(began) > patience.Stretch(2*time.Second) {
				t.Errorf("stopped %q, failed %v after %s", r.Stopped, r.Failed(), time.Since(began))
			}
			actiontest.WaitGone(t, pid)
		})
		t.Run(name+" takes too long", func(t *testing.T) {
			s := actiontest.New(t)
			p, group := mustBindLayers(s, job(brings(script, "timeout: 300ms\n"), "acme.it", "{}")), s.Started()
			if r := s.Run(p); r.Outcome != apply.Failed || !strings.Contains(r.Reason, "acme.it "+name+": timed out") {
				t.Errorf("%s %q", r.Outcome, r.Reason)
			}
			actiontest.WaitGone(t, <-group)
		})
	}
}

// TestExtensionStart: an interpreter runs the file; what cannot be started says why.
func TestExtensionStart(t *testing.T) {
	ok := "cat >/dev/null; echo '{}'\n"
	for _, c := range []struct{ script, more, want string }{
		{ok, "interpreter: sh\n", ""},
		{ok, "interpreter: [sh, -eu]\n", ""},
		{ok, "", "acme.it check: cannot start"},
		{ok, "", "a script without #! in its first line"},
		{"#!/usr/bin/no-such-thing -x\n", "", "/usr/bin/no-such-thing is not on this host"},
		{"#! /usr/bin/no-such-thing\n", "", "/usr/bin/no-such-thing is not on this host"},
		{ok, "interpreter: [no-such-thing]\n", "cannot start no-such-thing"},
	} {
		s := actiontest.New(t)
		r := s.Run(mustBindLayers(s, job(brings(c.script, c.more), "acme.it", "{}")))
		if (r.Outcome == apply.OK) != (c.want == "") || !strings.Contains(r.Reason, c.want) {
			t.Errorf("%q %q: %s %q", c.script, c.more, r.Outcome, r.Reason)
		}
	}
}

// from is a repository with an extension behind an address.
func from(url, digest string) fs.FS {
	return fstest.MapFS{"extensions/it.yaml": {Data: []byte("name: acme.it\nurl: " + url + "\ndigest: " + digest + "\n")}}
}

// TestFetchedExtension: what is behind an address is fetched once, and used only if it is the right thing.
func TestFetchedExtension(t *testing.T) {
	script, asked := answering("echo '{}'", ""), 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		if r.URL.Path != "/it" {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write([]byte(script))
	}))
	s := actiontest.New(t)
	good := job(from(server.URL+"/it", digestOf(script)), "acme.it", "{}")
	for range 2 {
		if r := s.Run(mustBindLayers(s, good)); r.Outcome != apply.OK {
			t.Errorf("%s %s", r.Outcome, r.Reason)
		}
	}
	if asked != 1 {
		t.Errorf("it was fetched %d times", asked)
	}
	wrong := digestOf("another")
	for _, c := range []struct{ path, want string }{
		{"/it", "acme.it check: " + server.URL + "/it has " + digestOf(script) + ", and the manifest wants " + wrong + ": it is not used; print the right one with: curl -fsSL " + server.URL + "/it | sha256sum"},
		{"/nothing", "cannot fetch the executable: " + server.URL + "/nothing answers 404 Not Found"},
	} {
		r := s.Run(mustBindLayers(s, job(from(server.URL+c.path, wrong), "acme.it", "{}")))
		if r.Outcome != apply.Failed || r.Reason != c.want && !strings.HasSuffix(r.Reason, c.want) {
			t.Errorf("%s %q\nwant %q", r.Outcome, r.Reason, c.want)
		}
	}
	server.Close()
	if r := s.Run(mustBindLayers(s, good)); r.Outcome != apply.OK {
		t.Errorf("without its server: %s %s", r.Outcome, r.Reason)
	}
	r := s.Run(mustBindLayers(s, job(from(server.URL+"/it", wrong), "acme.it", "{}")))
	if r.Outcome != apply.Failed || !strings.Contains(r.Reason, "cannot fetch the executable: ") {
		t.Errorf("%s %q", r.Outcome, r.Reason)
	}
	names, err := os.ReadDir(cache(s))
	if err != nil || len(names) != 1 || "sha256:"+names[0].Name() != digestOf(script) {
		t.Errorf("%v %v: something that is not used was kept", names, err)
	}
}

// TestExecutableTooLarge: what never ends is not read to its end.
func TestExecutableTooLarge(t *testing.T) {
	block := make([]byte, 1<<20)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for {
			if _, err := w.Write(block); err != nil {
				return
			}
		}
	}))
	defer server.Close()
	s := actiontest.New(t)
	r := s.Run(mustBindLayers(s, job(from(server.URL, digestOf("x")), "acme.it", "{}")))
	if r.Outcome != apply.Failed || !strings.Contains(r.Reason, "cannot fetch the executable: it is larger than 64 MiB") {
		t.Errorf("%s %q", r.Outcome, r.Reason)
	}
}

// TestExecutableIsHeldAgainstItsDigest before it is run; the next pull puts the right one back.
func TestExecutableIsHeldAgainstItsDigest(t *testing.T) {
	script := answering("echo '{}'", "")
	files := job(brings(script, ""), "acme.it", "{}")
	for want, damage := range map[string]func(path string) error{
		"acme.it check: the copy of extensions/it on this host was changed: it has " + digestOf("evil"): func(path string) error { return os.WriteFile(path, []byte("evil"), 0o700) },
		"the copy of extensions/it on this host was changed: its mode is 0777":                          func(path string) error { return os.Chmod(path, 0o777) },
		"open extensions/it: no such file or directory; the next pull puts it back":                     os.Remove,
	} {
		s := actiontest.New(t)
		p := mustBindLayers(s, files)
		if err := damage(filepath.Join(cache(s), strings.TrimPrefix(digestOf(script), "sha256:"))); err != nil {
			t.Fatal(err)
		}
		if r := s.Run(p); r.Outcome != apply.Failed || !strings.Contains(r.Reason, want) {
			t.Errorf("%s %q, want %q", r.Outcome, r.Reason, want)
		}
		if r := s.Run(mustBindLayers(s, files)); r.Outcome != apply.OK {
			t.Errorf("%s %q after another pull", r.Outcome, r.Reason)
		}
	}
}

// TestUnusedExecutables are dropped after a month; what is used stays.
func TestUnusedExecutables(t *testing.T) {
	s, script := actiontest.New(t), answering("echo '{}'", "")
	files := job(brings(script, ""), "acme.it", "{}")
	mustBindLayers(s, files)
	own := strings.TrimPrefix(digestOf(script), "sha256:")
	for name, days := range map[string]int{own: 40, "of-last-year": 40, ".cut-off": 40, "of-last-week": 7} {
		path, then := filepath.Join(cache(s), name), time.Now().AddDate(0, 0, -days)
		if name != own {
			if err := os.WriteFile(path, nil, 0o700); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Chtimes(path, then, then); err != nil {
			t.Fatal(err)
		}
	}
	mustBindLayers(s, files)
	entries, err := os.ReadDir(cache(s))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if want := own + " of-last-week"; strings.Join(got, " ") != want {
		t.Errorf("%q, want %q", got, want)
	}
}
