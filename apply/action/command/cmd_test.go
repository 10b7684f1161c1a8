package command_test

import (
	"context"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/apply/action/actiontest"
	"github.com/pullet/pullet/internal/patience"
)

// TestCleanEnvironment: a command sees exactly these variables, nothing of the agent's own.
func TestCleanEnvironment(t *testing.T) {
	t.Setenv("PULLET_TEST_LEAK", "1")
	s := actiontest.New(t)
	p := s.MustBind("cmd.run", "{cmd: [env], env: {A: b, LANG: de}}")
	o := s.Options()
	o.Host.Env = map[string]string{"PULLET_NODE": "n1", "PULLET_FENCE": "7"}
	report, err := p.Run(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Fields(s.Only(report).Result.StdOut)
	slices.Sort(got)
	for i, v := range got {
		if mark, ok := strings.CutPrefix(v, "PULLET_COMMAND="); ok && len(mark) >= 26 { // by chance
			got[i] = "PULLET_COMMAND=MARK"
		}
	}
	want := []string{
		"A=b", "HOME=/root", "LANG=de", "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
		"PULLET_COMMAND=MARK", "PULLET_FENCE=7", "PULLET_NODE=n1", "PULLET_ROOT=" + s.Root,
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// TestCommandResult: outputs, exit code and directory arrive; the word of a failure is the end of what was said.
func TestCommandResult(t *testing.T) {
	t.Parallel()
	s := actiontest.New(t, "d d 755")
	r := s.Run(s.MustBind("cmd.run", "{cmd: 'echo out; echo err >&2; pwd', cwd: /d}"))
	if want := "out\n" + s.Path("d") + "\n"; r.Result.StdOut != want || r.Result.StdErr != "err\n" || r.Result.ExitCode != 0 || !r.Result.Changed {
		t.Errorf("%+v, want %q", r.Result, want)
	}
	r = s.Run(s.MustBind("cmd.run", "{cmd: 'for i in 1 2 3 4 5; do echo l$i >&2; done; exit 42'}"))
	if r.Outcome != apply.Failed || r.Result.ExitCode != 42 || !strings.HasSuffix(r.Reason, "exit code 42: l3 | l4 | l5") {
		t.Errorf("%s %q %+v", r.Outcome, r.Reason, r.Result)
	}
	r = s.Run(s.MustBind("cmd.run", "{cmd: 'kill -9 $$'}"))
	if r.Outcome != apply.Failed || r.Result.ExitCode == 0 {
		t.Errorf("killed: %s %q %+v", r.Outcome, r.Reason, r.Result)
	}
	r = s.Run(s.MustBind("cmd.run", "{cmd: [no-such-program-here]}"))
	if r.Outcome != apply.Failed || !strings.Contains(r.Reason, "no-such-program-here") {
		t.Errorf("not there: %s %q", r.Outcome, r.Reason)
	}
}

// TestProgramsAreFoundByTheCleanPath: a program in a list is looked up where the command itself would look.
func TestProgramsAreFoundByTheCleanPath(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	s := actiontest.New(t)
	if r := s.Run(s.MustBind("cmd.run", "{cmd: ['true']}")); r.Outcome != apply.Changed {
		t.Errorf("%s %s: the agent's own PATH was asked", r.Outcome, r.Reason)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "mine"), []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if r := s.Run(s.MustBind("cmd.run", "{cmd: [mine], env: {PATH: '"+dir+"'}}")); r.Outcome != apply.Changed {
		t.Errorf("%s %s: the step's own PATH was not asked", r.Outcome, r.Reason)
	}
}

// TestOutputBound: of an endless output the end is kept.
func TestOutputBound(t *testing.T) {
	t.Parallel()
	s := actiontest.New(t)
	r := s.Run(s.MustBind("cmd.run", "{cmd: 'head -c 5000000 /dev/zero | tr \"\\000\" x; echo the end'}"))
	out := r.Result.StdOut
	if len(out) > 1<<20+100 || !strings.HasSuffix(out, "xthe end\n") || !strings.HasPrefix(out, "[3951432 bytes left out]\n") {
		t.Errorf("%d bytes, %.40q ... %q", len(out), out, out[max(0, len(out)-20):])
	}
}

// slow are parameters that keep an action busy for a minute, after the command wrote its process id to the pipe named
// started.
var slow = map[string]string{
	"cmd.script":   "{script: 'sleep 60 & (sleep 60; true) & echo $$ > started; wait'}",
	"cmd.run":      "{cmd: 'sleep 60 & (sleep 60; true) & echo $$ > started; wait'}",
	"file.managed": "{name: /f, content: new, validate: 'sleep 60 & echo $$ > started; wait # %s'}",
}

// TestCancelled: an action that is told to stop returns soon, with its whole process group gone and the host as it was.
func TestCancelled(t *testing.T) {
	for name, params := range slow {
		t.Run(name, func(t *testing.T) {
			s := actiontest.New(t, "f f 600 old")
			group := s.Started()
			ctx, cancel := context.WithCancel(context.Background())
			p, done := s.MustBind(name, params), make(chan *apply.Report, 1)
			go func() { done <- s.RunAll(ctx, p) }()
			pid := <-group
			began := time.Now()
			cancel()
			r := <-done
			if took := time.Since(began); took > patience.Stretch(2*time.Second) {
				t.Errorf("it took %s to stop", took)
			}
			if r.Stopped == "" || r.Failed() || !r.Pending() {
				t.Errorf("stopped %q, failed %v: being told to stop is no failure", r.Stopped, r.Failed())
			}
			actiontest.WaitGone(t, pid)
			if s.Read("f") != "old" {
				t.Errorf("the file holds %q", s.Read("f"))
			}
		})
	}
}

// TestTimeoutKillsGrandchildren: a command that takes too long is ended with everything that it started.
func TestTimeoutKillsGrandchildren(t *testing.T) {
	t.Parallel()
	for name, params := range map[string]string{
		"the parameter": "  parameters: {cmd: 'sleep 60 & (sleep 60; true) & echo $$ > started; wait', timeout: 300ms}\n",
		"its own group": "  parameters: {cmd: 'setsid -w sh -c \"echo \\$\\$ > started; sleep 60; true\"', timeout: 300ms}\n",
		"of the step":   "  parameters: {cmd: 'sleep 60 & (sleep 60; true) & echo $$ > started; wait'}\n  runOptions: {timeout: 300ms}\n",
		"of unless":     "  parameters: {cmd: 'true', unless: 'sleep 60 & (sleep 60; true) & echo $$ > started; wait', timeout: 300ms}\n",
		"of onlyif":     "  parameters: {cmd: 'true', onlyif: 'sleep 60 & (sleep 60; true) & echo $$ > started; wait', timeout: 300ms}\n",
		"of a script":   "  action: cmd.script\n  parameters: {script: 'true', onlyif: 'sleep 60 & (sleep 60; true) & echo $$ > started; wait', timeout: 300ms}\n",
		"of a request":  "  action: http.request\n  parameters: {url: 'http://127.0.0.1:1/', onlyif: 'sleep 60 & (sleep 60; true) & echo $$ > started; wait', timeout: 300ms}\n",
		"of the guard":  "  parameters: {cmd: 'true', unless: 'sleep 60 & (sleep 60; true) & echo $$ > started; wait'}\n  runOptions: {timeout: 300ms}\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := actiontest.New(t)
			group := s.Started()
			p, err := s.BindText("steps:\n- name: it\n" + map[bool]string{true: "  action: cmd.run\n"}[!strings.Contains(params, "action:")] + params)
			if err != nil {
				t.Fatal(err)
			}
			if r := s.Run(p); r.Outcome != apply.Failed || !strings.Contains(r.Reason, "timed out") {
				t.Errorf("%s %q", r.Outcome, r.Reason)
			}
			actiontest.WaitGone(t, <-group)
		})
	}
}

// TestStubbornCommand: one that does not mind being told is killed after the time of grace.
func TestStubbornCommand(t *testing.T) {
	t.Parallel()
	s := actiontest.New(t)
	group := s.Started()
	r := s.Run(s.MustBind("cmd.run", `{cmd: "trap '' TERM; sleep 60 & echo $$ > started; while :; do wait; done", timeout: 300ms}`))
	if r.Outcome != apply.Failed || !strings.Contains(r.Reason, "timed out") {
		t.Errorf("%s %q", r.Outcome, r.Reason)
	}
	actiontest.WaitGone(t, <-group)
}

// TestUser: a command runs as another user, without the groups of the agent.
func TestUser(t *testing.T) {
	t.Parallel()
	actiontest.NeedRoot(t)
	nobody, err := user.Lookup("nobody")
	if err != nil {
		t.Skipf("needs the user nobody: %v", err)
	}
	s := actiontest.New(t)
	if err := os.Chmod(filepath.Dir(filepath.Dir(s.Root)), 0o755); err != nil {
		t.Fatal(err)
	}
	r := s.Run(s.MustBind("cmd.run", "{cmd: 'id -u; id -g; id -G', user: nobody, cwd: /}"))
	if want := nobody.Uid + "\n" + nobody.Gid + "\n" + nobody.Gid + "\n"; r.Result.StdOut != want {
		t.Errorf("%q %s, want %q", r.Result.StdOut, r.Reason, want)
	}
	r = s.Run(s.MustBind("cmd.run", "{cmd: id, user: no-such-user}"))
	if r.Outcome != apply.Failed || !strings.Contains(r.Reason, "no-such-user") {
		t.Errorf("%s %q", r.Outcome, r.Reason)
	}
}
