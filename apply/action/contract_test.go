package action_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/apply/action"
	"github.com/pullet/pullet/render"
)

// example is one set of parameters of an action on a host.
type example struct {
	name, params string
	host         []string // what stands there before: see newScene
	want         string   // the summary; "": nothing is to be done
	fails        string   // what the reason says, where the host does not allow it
	unseen       bool     // it says that it changed something, and the host does not show it
}

// examples are the cases of each action, by its name.
var examples = map[string][]example{
	"cmd.run": {
		{name: "without a guard", params: "{cmd: echo x > out}", want: "run echo x > out"},
		{name: "a list", params: "{cmd: [touch, made]}", want: "run touch made"},
		{name: "creates, to be made", params: "{cmd: touch made, creates: /made}", want: "run touch made"},
		{name: "creates, made", params: "{cmd: touch made, creates: /made}", host: []string{"f made 644"}},
		{name: "removes, there", params: "{cmd: rm x, removes: /x}", host: []string{"f x 644"}, want: "run rm x"},
		{name: "removes, gone", params: "{cmd: rm x, removes: /x}"},
		{name: "unless", params: "{cmd: touch made, unless: test -e made}", want: "run touch made"},
		{name: "unless holds", params: "{cmd: touch made, unless: test -e made}", host: []string{"f made 644"}},
		{name: "onlyif", params: "{cmd: rm x, onlyif: test -e x}", host: []string{"f x 644"}, want: "run rm x"},
		{name: "onlyif does not hold", params: "{cmd: rm x, onlyif: test -e x}"},
		{name: "cwd and env", params: "{cmd: 'echo $A > made', cwd: /d, env: {A: b}, creates: /d/made}", host: []string{"d d 755"}, want: "run echo $A > made"},
		{name: "fails", params: "{cmd: exit 3}", want: "run exit 3", fails: "exit code 3"},
	},
	"file.managed": {
		{name: "create", params: "{name: /motd, content: hello}", want: "create"},
		{name: "create an empty one", params: "{name: /motd}", want: "create"},
		{name: "create with empty content", params: "{name: /motd, content: ''}", want: "create"},
		{name: "with its parents", params: "{name: /a/b/motd, content: hello, makeDirs: true}", want: "create"},
		{name: "right already", params: "{name: /motd, content: hello, mode: 0644}", host: []string{"f motd 644 hello"}},
		{name: "only there", params: "{name: /motd}", host: []string{"f motd 600 anything"}},
		{name: "content", params: "{name: /motd, content: hello}", host: []string{"f motd 600 old"}, want: "content"},
		{name: "emptied", params: "{name: /motd, content: ''}", host: []string{"f motd 600 old"}, want: "content"},
		{name: "mode", params: "{name: /motd, content: hello, mode: 0600}", host: []string{"f motd 644 hello"}, want: "mode 0644 -> 0600"},
		{name: "mode alone", params: "{name: /motd, mode: '4755'}", host: []string{"f motd 644 hello"}, want: "mode 0644 -> 4755"},
		{name: "content and mode", params: "{name: /motd, content: new, mode: 0o600}", host: []string{"f motd 644 old"}, want: "content, mode 0644 -> 0600"},
		{name: "a link stands there", params: "{name: /motd, content: new}", host: []string{"f other 644 x", "l motd other"}, want: "replace a symbolic link by a file"},
		{name: "a link stands there, no content", params: "{name: /motd, mode: 0600}", host: []string{"f other 644 x", "l motd other"}, want: "replace a symbolic link by a file"},
		{name: "a dangling link", params: "{name: /motd, content: new}", host: []string{"l motd gone"}, want: "replace a symbolic link by a file"},
		{name: "validate", params: "{name: /motd, content: hello, validate: grep -q hello %s}", want: "create"},
		{name: "validate fails", params: "{name: /motd, content: hello, validate: 'exit 7 # %s'}", want: "create", fails: "validate: exit code 7"},
		{name: "no parent", params: "{name: /a/b, content: hello}", want: "create", fails: "there is no directory /a"},
		{name: "a directory stands there", params: "{name: /d, content: x}", host: []string{"d d 755"}, fails: "/d is a directory"},
		{name: "no such owner", params: "{name: /motd, content: x, owner: nobody-has-this}", host: []string{"f etc/passwd 644 root:x:0:0::/:/bin/sh"}, fails: `there is no user "nobody-has-this"`},
		{name: "backup", params: "{name: /motd, content: new, backup: true}", host: []string{"f motd 644 old"}, want: "content"},
		{name: "backup of a link", params: "{name: /motd, content: new, backup: true}", host: []string{"l motd gone"}, want: "replace a symbolic link by a file"},
	},
	"file.directory": {
		{name: "create", params: "{name: /a/b}", want: "create"},
		{name: "create with a mode", params: "{name: /a, mode: 0700}", want: "create"},
		{name: "right already", params: "{name: /a, mode: 0700}", host: []string{"d a 700"}},
		{name: "mode", params: "{name: /a, mode: 0700}", host: []string{"d a 755"}, want: "mode 0755 -> 0700"},
		{name: "a link to one", params: "{name: /l, mode: 0700}", host: []string{"d a 755", "l l /a"}, want: "mode 0755 -> 0700"},
		{name: "a file stands there", params: "{name: /a}", host: []string{"f a 644"}, fails: "/a is not a directory"},
	},
	"file.symlink": {
		{name: "create", params: "{name: /l, target: /x}", want: "create, to /x"},
		{name: "right already", params: "{name: /l, target: /x}", host: []string{"l l /x"}},
		{name: "another target", params: "{name: /l, target: /x}", host: []string{"l l /y"}, want: "target /y -> /x"},
		{name: "a file stands there", params: "{name: /l, target: /x}", host: []string{"f l 644"}, fails: "is no symbolic link"},
		{name: "force", params: "{name: /l, target: /x, force: true}", host: []string{"f l 644"}, want: "replace a file by a link to /x"},
		{name: "force does not remove a directory", params: "{name: /l, target: /x, force: true}", host: []string{"d l 755"}, fails: "is no symbolic link"},
	},
	"file.absent": {
		{name: "not there", params: "{name: /a/b}"},
		{name: "a file", params: "{name: /a/b}", host: []string{"f a/b 644"}, want: "remove"},
		{name: "a link, not what it names", params: "{name: /a/l}", host: []string{"f a/b 644", "l a/l b"}, want: "remove"},
		{name: "a directory", params: "{name: /a/d}", host: []string{"f a/d/e/f 644"}, want: "remove the directory and what is in it"},
		{name: "below a file", params: "{name: /a/b/c}", host: []string{"f a/b 644"}},
	},
	"time.sleep": {
		{name: "a moment", params: "{time: 1ms}", want: "wait 1ms"},
		{name: "none", params: "{time: 0s}", want: "wait 0s"},
	},
	"time.sleep_rand": {
		{name: "a moment", params: "{time: 1ms}", want: "wait up to 1ms"},
		{name: "none", params: "{time: 0s}", want: "wait up to 0s"},
	},
	"test.succeed": {
		{name: "silent", params: "{}"},
		{name: "with a message", params: "{name: x, message: fine}"},
	},
	"test.change": {
		{name: "silent", params: "{}", want: "change", unseen: true},
		{name: "with a message", params: "{message: fine}", want: "change", unseen: true},
	},
	"test.fail": {
		{name: "silent", params: "{}", want: "fail", fails: "told to fail"},
		{name: "with a message", params: "{message: no way}", want: "fail", fails: "no way"},
	},
	"test.echo": {
		{name: "silent", params: "{}", want: "say"},
		{name: "with a message", params: "{message: hello}", want: "say"},
	},
	"template.expression": {
		{name: "a text", params: "{content: hello}", want: "compute"},
		{name: "a template", params: "{content: '{{ server.name }}'}", want: "compute"},
	},
}

// TestContract holds every action against what all of them promise.
func TestContract(t *testing.T) {
	for _, spec := range action.All() {
		cases := examples[spec.Name]
		if len(cases) < 2 {
			t.Errorf("%s: %d examples, want at least 2: add them to this test", spec.Name, len(cases))
		}
		for _, c := range cases {
			t.Run(spec.Name+"/"+c.name, func(t *testing.T) {
				s := newScene(t, c.host...)
				p := s.mustBind(spec.Name, c.params)
				planned := s.checkPlan(p, c, spec.Passive)
				s.checkRun(p, c, planned)
				if c.fails == "" {
					s.checkStays(p, spec)
				}
			})
		}
	}
}

// checkPlan: comparing writes nothing, neither on the host nor in the state directory.
func (s *scene) checkPlan(p *apply.Program, c example, passive bool) *apply.StepReport {
	s.t.Helper()
	before := tree(s.t, s.root+"/..")
	r := s.plan(p)
	for _, d := range differences(before, tree(s.t, s.root+"/..")) {
		s.t.Errorf("the plan wrote: %s", d)
	}
	if r.Summary != c.want {
		s.t.Errorf("plan: %q (%s %s), want %q", r.Summary, r.Outcome, r.Reason, c.want)
	}
	want := apply.Changed
	switch {
	case c.want == "" && c.fails != "":
		want = apply.Failed
	case c.want == "" || passive:
		want = apply.OK
	}
	if r.Outcome != want {
		s.t.Errorf("plan: %s (%s), want %s", r.Outcome, r.Reason, want)
	}
	return r
}

// checkRun: a run does what the plan said, or fails and leaves the host as it was.
func (s *scene) checkRun(p *apply.Program, c example, planned *apply.StepReport) {
	s.t.Helper()
	before := tree(s.t, s.root)
	r := s.run(p)
	changed := differences(before, tree(s.t, s.root))
	if c.fails != "" {
		if r.Outcome != apply.Failed || !strings.Contains(r.Reason, c.fails) {
			s.t.Errorf("run: %s %q, want failed with %q", r.Outcome, r.Reason, c.fails)
		}
		for _, d := range withoutTimes(changed) {
			s.t.Errorf("a failed run changed: %s", d)
		}
		return
	}
	if r.Outcome != planned.Outcome || r.Summary != planned.Summary || r.Diff != planned.Diff {
		s.t.Errorf("run: %s %q %q %s; the plan said %s %q %q", r.Outcome, r.Summary, r.Diff, r.Reason, planned.Outcome, planned.Summary, planned.Diff)
	}
	if !c.unseen && (len(changed) > 0) != (planned.Outcome == apply.Changed) {
		s.t.Errorf("the plan said %s, and the run changed %q", planned.Outcome, changed)
	}
}

// withoutTimes leaves out the directories, whose times a candidate that came and went has moved.
func withoutTimes(changed []string) []string {
	var out []string
	for _, d := range changed {
		if !strings.Contains(d, ": d") {
			out = append(out, d)
		}
	}
	return out
}

// checkStays: after a run nothing is to be done, and a second one does nothing.
func (s *scene) checkStays(p *apply.Program, spec apply.Spec) {
	s.t.Helper()
	before := tree(s.t, s.root+"/..")
	for range 2 {
		if r := s.plan(p); r.Outcome != apply.OK || r.Diff != "" {
			s.t.Errorf("a plan after the run: %s %q %q %s, want ok", r.Outcome, r.Summary, r.Diff, r.Reason)
		}
		if r := s.run(p); r.Outcome != apply.OK || r.Summary != "" {
			s.t.Errorf("%s: a second run: %s %q %s, want ok", spec.Name, r.Outcome, r.Summary, r.Reason)
		}
	}
	for _, d := range differences(before, tree(s.t, s.root+"/..")) {
		s.t.Errorf("a second run wrote: %s", d)
	}
}

// TestCheckedActions: after a run, an action that checks finds nothing also where nothing is on record.
func TestCheckedActions(t *testing.T) {
	for _, spec := range action.All() {
		for _, c := range examples[spec.Name] {
			if c.fails != "" || c.unseen || strings.HasPrefix(c.name, "without") || strings.HasPrefix(c.name, "a list") || spec.Passive {
				continue // no guard: the record is its check
			}
			t.Run(spec.Name+"/"+c.name, func(t *testing.T) {
				s := newScene(t, c.host...)
				p := s.mustBind(spec.Name, c.params)
				s.run(p)
				s.state = t.TempDir()
				if r := s.plan(p); r.Outcome != apply.OK {
					t.Errorf("check after apply: %s %q, want ok", r.Outcome, r.Summary)
				}
			})
		}
	}
}

// TestCancelledBefore: with a context that ended, nothing is started.
func TestCancelledBefore(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for _, spec := range action.All() {
		for _, c := range examples[spec.Name] {
			t.Run(spec.Name+"/"+c.name, func(t *testing.T) {
				s := newScene(t, c.host...)
				p := s.mustBind(spec.Name, c.params)
				before, began := tree(t, s.root), time.Now()
				r := s.runAll(ctx, p)
				if r.Stopped == "" || time.Since(began) > 2*time.Second {
					t.Errorf("stopped %q after %s", r.Stopped, time.Since(began))
				}
				for _, d := range differences(before, tree(t, s.root)) {
					t.Errorf("it changed: %s", d)
				}
			})
		}
	}
}

// TestBadParameters: what is wrong is found before the host is touched, with its place.
func TestBadParameters(t *testing.T) {
	for _, c := range []struct{ action, params, want string }{
		{"cmd.run", "{}", `jobs/a.yaml:2:3: parameters: "cmd" is missing`},
		{"cmd.run", "{cmd: ''}", "jobs/a.yaml:4:21: cmd: is empty"},
		{"cmd.run", "{cmd: []}", "jobs/a.yaml:4:21: cmd: is empty"},
		{"cmd.run", "{cmd: x, cwd: here}", `jobs/a.yaml:4:29: cwd: "here" is not an absolute path`},
		{"cmd.run", "{cmd: x, creates: here}", `jobs/a.yaml:4:33: creates: "here" is not an absolute path`},
		{"cmd.run", "{cmd: x, removes: here}", `jobs/a.yaml:4:33: removes: "here" is not an absolute path`},
		{"cmd.run", "{cmd: x, timeout: soon}", `jobs/a.yaml:4:33: "soon" is not a duration`},
		{"cmd.run", "{cmd: x, unles: y}", `jobs/a.yaml:4:24: parameters: unknown field "unles" (did you mean "unless"?)`},
		{"file.managed", "{content: x}", `jobs/a.yaml:2:3: parameters: "name" is missing`},
		{"file.managed", "{name: motd}", `jobs/a.yaml:4:22: name: "motd" is not an absolute path`},
		{"file.managed", "{name: /m, mode: rw}", `jobs/a.yaml:4:32: mode: "rw" is not a mode`},
		{"file.managed", "{name: /m, mode: 0888}", `jobs/a.yaml:4:32: mode: "0888" is not a mode`},
		{"file.managed", "{name: /m, mode: '17777'}", `jobs/a.yaml:4:32: mode: "17777" is not a mode`},
		{"file.managed", "{name: /m, content: a, source: b}", "jobs/a.yaml:4:46: source: content and source exclude each other"},
		{"file.managed", "{name: /m, template: true}", "jobs/a.yaml:4:36: template: only a source can be a template"},
		{"file.managed", "{name: /m, validate: 'true'}", "jobs/a.yaml:4:36: validate: %s is missing"},
		{"file.managed", "{name: /m, source: nope}", "jobs/a.yaml:4:34: source: there is no files/nope"},
		{"file.managed", "{name: /m, source: ../jobs/a.yaml}", "jobs/a.yaml:4:34: source: source \"../jobs/a.yaml\" leads out of files/"},
		{"file.managed", "{name: /m, source: bad, template: true}", "files/bad:2:4: vars.nope: there is no \"nope\""},
		{"file.managed", "{name: /m, backup: maybe}", `jobs/a.yaml:4:34: backup: expected true or false, found "maybe"`},
		{"file.directory", "{name: d}", `jobs/a.yaml:4:22: name: "d" is not an absolute path`},
		{"file.directory", "{name: /d, mode: x}", `jobs/a.yaml:4:32: mode: "x" is not a mode`},
		{"file.symlink", "{name: l, target: x}", `jobs/a.yaml:4:22: name: "l" is not an absolute path`},
		{"file.symlink", "{name: /l, target: ''}", "jobs/a.yaml:4:34: target: is empty"},
		{"file.symlink", "{name: /l}", `jobs/a.yaml:2:3: parameters: "target" is missing`},
		{"file.absent", "{name: a/b}", `jobs/a.yaml:4:22: name: "a/b" is not an absolute path`},
		{"file.absent", "{name: /etc}", "jobs/a.yaml:4:22: name: /etc is too near the root"},
		{"file.absent", "{name: /etc/x/..}", "jobs/a.yaml:4:22: name: /etc/x/.. is too near the root"},
		{"time.sleep", "{time: later}", `jobs/a.yaml:4:22: "later" is not a duration`},
		{"time.sleep", "{}", `jobs/a.yaml:2:3: parameters: "time" is missing`},
		{"template.expression", "{}", `jobs/a.yaml:2:3: parameters: "content" is missing`},
		{"template.expression", "{content: [a]}", "jobs/a.yaml:4:25: content: expected a text, found a list"},
		{"file.manged", "{}", `jobs/a.yaml:3:11: there is no action "file.manged" (did you mean "file.managed"?)`},
	} {
		t.Run(c.action+" "+c.params, func(t *testing.T) {
			s := newScene(t)
			s.files["bad"] = "x\n{{ vars.nope }}\n"
			_, err := s.bind(c.action, c.params)
			var list render.ErrorList
			if !errors.As(err, &list) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
		})
	}
}
