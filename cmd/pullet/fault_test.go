package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// binary builds pullet for the tests that kill it, or need it on other hosts: bin/pullet in a directory of its own.
func binary(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("kills real processes for a minute: run without -short")
	}
	path := filepath.Join(t.TempDir(), "bin", "pullet")
	if err := os.Mkdir(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("go", "build", "-o", path, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return path
}

// victim is a node whose pulls are killed.
type victim struct {
	t            *testing.T
	binary, home string
}

func newVictim(t *testing.T) *victim {
	v := &victim{t, binary(t), t.TempDir()}
	for _, dir := range []string{"root", "ledger", "repo/base", "repo/jobs"} {
		if err := os.MkdirAll(filepath.Join(v.home, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	v.write("pullet.yaml", fmt.Sprintf("node: {name: n1}\nrepositories: [{name: main, url: %q, ref: main}]\npaths: {state: %q, hostVars: %q}\n",
		v.home+"/repo", v.home+"/state", v.home+"/vars.d"))
	v.write("repo/base/jobs.yaml", "jobs: {'*': [{name: work}]}\nvalidations: {'*': [{name: check}]}\n")
	v.write("repo/jobs/check.yaml", "steps:\n- {name: files are whole, action: cmd.run, parameters: {cmd: 'grep -qx end \"$PULLET_ROOT/f0\"'}}\n")
	v.git("init", "-q", "-b", "main")
	return v
}

func (v *victim) write(name, text string) {
	v.t.Helper()
	if err := os.WriteFile(filepath.Join(v.home, name), []byte(text), 0o644); err != nil {
		v.t.Fatal(err)
	}
}

func (v *victim) git(args ...string) {
	v.t.Helper()
	cmd := exec.Command("git", append([]string{"-C", filepath.Join(v.home, "repo"), "-c", "user.name=t", "-c", "user.email=t@example.org"}, args...)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		v.t.Fatalf("git %v: %v\n%s", args, err, out)
	}
}

// steps is how many files and commands a version has.
const steps = 12

// release commits a version: files of 40 KiB that begin and end with their version, and commands that note each start
// in a ledger.
func (v *victim) release(version int) {
	var b strings.Builder
	b.WriteString("steps:\n")
	for i := range steps {
		body := strings.Repeat("          0123456789012345678901234567890123456789\n", 1000)
		fmt.Fprintf(&b, "- name: file %d\n  action: file.managed\n  parameters:\n    name: /f%d\n    content: |\n          version %d\n%s          end\n", i, i, version, body)
		fmt.Fprintf(&b, "- name: command %d\n  action: cmd.run\n  parameters: {cmd: 'echo x >> \"%s/ledger/%d-%d\"; sleep 0.03'}\n", i, v.home, version, i)
	}
	v.write("repo/jobs/work.yaml", b.String())
	v.git("add", "-A")
	v.git("commit", "-qm", fmt.Sprint("version ", version))
}

// command is pullet for the node. One that hangs is asked where: its goroutines are in its output.
func (v *victim) command(args ...string) *exec.Cmd {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	v.t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, v.binary, append(args, "--config", v.home+"/pullet.yaml", "--root", v.home+"/root")...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGQUIT) }
	return cmd
}

// pullKilled starts a pull and kills it after a while; false when it ended before.
func (v *victim) pullKilled(after time.Duration) bool {
	v.t.Helper()
	var out bytes.Buffer
	cmd := v.command("pull")
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		v.t.Fatal(err)
	}
	timer := time.AfterFunc(after, func() { cmd.Process.Kill() })
	err := cmd.Wait()
	killed := !timer.Stop() && !cmd.ProcessState.Exited()
	if !killed && err != nil {
		v.t.Fatalf("pull: %v\n%s", err, out.String())
	}
	return killed
}

// whole checks that every file is the old or the new one from end to end.
func (v *victim) whole() {
	v.t.Helper()
	for i := range steps {
		text, err := os.ReadFile(fmt.Sprintf("%s/root/f%d", v.home, i))
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil || !bytes.HasPrefix(text, []byte("version ")) || !bytes.HasSuffix(text, []byte("\nend\n")) {
			v.t.Errorf("f%d is half written: %d bytes, %v", i, len(text), err)
		}
	}
}

// ended are the commands with a successful end on record, with how often each was started by now.
func (v *victim) ended(version int) map[string]int {
	v.t.Helper()
	out := map[string]int{}
	text, err := os.ReadFile(v.home + "/state/journal.jsonl")
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		v.t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		var l struct {
			Step    string
			End, OK bool
		}
		if json.Unmarshal([]byte(line), &l) != nil || !l.End || !l.OK {
			continue
		}
		if number, ok := strings.CutPrefix(l.Step, "work/command "); ok {
			name := fmt.Sprintf("%d-%s", version, number)
			out[name] = v.started(name)
		}
	}
	return out
}

// started is how often a command ran.
func (v *victim) started(name string) int {
	text, err := os.ReadFile(v.home + "/ledger/" + name)
	if err != nil {
		return 0
	}
	return strings.Count(string(text), "x")
}

// TestKilledPull kills pulls with -9 at random moments, through two versions, and looks after each kill: files are
// whole, a command with an end on record never runs again, status explains the slot, and the next pull gets on until
// all is done.
func TestKilledPull(t *testing.T) {
	v := newVictim(t)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	kills := 0
	for version := 1; version <= 2; version++ {
		v.release(version)
		for round := 0; ; round++ {
			before := v.ended(version)
			life := time.Duration(random.IntN(250)+20) * time.Millisecond
			if round >= 20 {
				life = time.Minute
			}
			killed := v.pullKilled(life)
			for name, n := range before {
				if now := v.started(name); now != n {
					t.Errorf("command %s had an end on record and ran again: %d starts, then %d", name, n, now)
				}
			}
			v.whole()
			if !killed {
				break
			}
			kills++
			v.explained()
		}
		v.converged(version)
	}
	t.Logf("%d kills", kills)
}

// explained checks that status answers after a kill: the node is there, in a state that has a word.
func (v *victim) explained() {
	v.t.Helper()
	out, err := v.command("status").CombinedOutput()
	if err != nil {
		v.t.Errorf("status: %v\n%s", err, out)
	}
	if text := string(out); strings.Contains(text, "n1 ") && !strings.Contains(text, upgrading) && !strings.Contains(text, upToDate) && !strings.Contains(text, pending) {
		v.t.Errorf("status does not say what n1 does:\n%s", text)
	}
}

// converged checks that a plan finds nothing to do, the fleet's record is clean, and every command ran at least once.
func (v *victim) converged(version int) {
	v.t.Helper()
	out, err := v.command("plan", "--detailed-exitcode").CombinedOutput()
	if err != nil {
		v.t.Errorf("plan after the last pull: %v\n%s", err, out)
	}
	for i := range steps {
		if n := v.started(fmt.Sprintf("%d-%d", version, i)); n == 0 {
			v.t.Errorf("command %d of version %d never ran", i, version)
		}
	}
	status, err := v.command("status").CombinedOutput()
	if err != nil || !strings.Contains(string(status), "1 node: 1 ok") {
		v.t.Errorf("status: %v\n%s", err, status)
	}
}

// TestManyKills is the demanding form of TestKilledPull: short lives only, until each has got a little further.
func TestManyKills(t *testing.T) {
	v := newVictim(t)
	v.release(1)
	for life := 40 * time.Millisecond; v.pullKilled(life); life += max(5*time.Millisecond, life/20) {
		v.whole()
	}
	v.converged(1)
}
