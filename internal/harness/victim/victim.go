// Package victim pulls on a node whose pulls are killed, and checks what a kill leaves. Tests only.
package victim

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Node is a node whose pulls are killed.
type Node struct {
	t       testing.TB
	program string // pullet
	home    string
}

// New returns a node that runs program, with a repository without a version.
func New(t testing.TB, program string) *Node {
	t.Helper()
	n := &Node{t, program, t.TempDir()}
	for _, dir := range []string{"root", "ledger", "repo/base", "repo/jobs"} {
		if err := os.MkdirAll(filepath.Join(n.home, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	n.write("pullet.yaml", fmt.Sprintf(config, n.home))
	n.write("repo/base/jobs.yaml", "jobs: {'*': [{name: work}]}\nvalidations: {'*': [{name: check}]}\n")
	n.write("repo/jobs/check.yaml", check)
	n.git("init", "-q", "-b", "main")
	return n
}

// config is the configuration of the node.
const config = `node: {name: n1}
repositories: [{name: main, url: '%[1]s/repo', ref: main}]
paths: {state: '%[1]s/state', hostVars: '%[1]s/vars.d'}
`

// check is the validation of all versions.
const check = `steps:
- {name: files are whole, action: cmd.run, parameters: {cmd: 'grep -qx end "$PULLET_ROOT/f0"'}}
`

// write writes a file of the test.
func (n *Node) write(name, text string) {
	n.t.Helper()
	if err := os.WriteFile(filepath.Join(n.home, name), []byte(text), 0o644); err != nil {
		n.t.Fatal(err)
	}
}

// git runs git in the repository.
func (n *Node) git(args ...string) {
	n.t.Helper()
	cmd := exec.Command("git", append([]string{"-C", filepath.Join(n.home, "repo"), "-c", "user.name=t", "-c",
		"user.email=t@example.org"}, args...)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		n.t.Fatalf("git %v: %v\n%s", args, err, out)
	}
}

// steps is the number of files, and that of commands, of a version.
const steps = 12

// step is a file and a command.
const step = `- name: file %[1]d
  action: file.managed
  parameters:
    name: /f%[1]d
    content: |
          version %[2]d
%[3]s          end
- name: command %[1]d
  action: cmd.run
  parameters: {cmd: 'echo x >> "%[4]s/ledger/%[2]d-%[1]d"; sleep 0.03'}
`

// Release commits a version: files of 40 KiB that begin and end with their version, and commands that note each start
// in a ledger.
func (n *Node) Release(version int) {
	var b strings.Builder
	b.WriteString("steps:\n")
	for i := range steps {
		body := strings.Repeat("          0123456789012345678901234567890123456789\n", 1000)
		fmt.Fprintf(&b, step, i, version, body, n.home)
	}
	n.write("repo/jobs/work.yaml", b.String())
	n.git("add", "-A")
	n.git("commit", "-qm", fmt.Sprint("version ", version))
}

// command returns pullet for the node. After two minutes it ends and prints its goroutines.
func (n *Node) command(args ...string) *exec.Cmd {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	n.t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, n.program, append(args, "--config", n.home+"/pullet.yaml", "--root",
		n.home+"/root")...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGQUIT) }
	return cmd
}

// Pull starts a pull and kills it after a time. It reports whether the pull was killed: otherwise it ended before.
func (n *Node) Pull(after time.Duration) bool {
	n.t.Helper()
	var out bytes.Buffer
	cmd := n.command("pull")
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		n.t.Fatal(err)
	}
	timer := time.AfterFunc(after, func() { cmd.Process.Kill() })
	err := cmd.Wait()
	killed := !timer.Stop() && !cmd.ProcessState.Exited()
	if !killed && err != nil {
		n.t.Fatalf("pull: %v\n%s", err, out.String())
	}
	return killed
}

// CheckFiles checks that each file is a whole old or new one.
func (n *Node) CheckFiles() {
	n.t.Helper()
	for i := range steps {
		text, err := os.ReadFile(fmt.Sprintf("%s/root/f%d", n.home, i))
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil || !bytes.HasPrefix(text, []byte("version ")) || !bytes.HasSuffix(text, []byte("\nend\n")) {
			n.t.Errorf("f%d is half written: %d bytes, %v", i, len(text), err)
		}
	}
}

// Ended returns the commands of a version whose success the journal has, with the number of their starts.
func (n *Node) Ended(version int) map[string]int {
	n.t.Helper()
	out := map[string]int{}
	text, err := os.ReadFile(n.home + "/state/journal.jsonl")
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		n.t.Fatal(err)
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
			out[name] = n.Starts(name)
		}
	}
	return out
}

// Starts returns how often a command was started.
func (n *Node) Starts(name string) int {
	text, err := os.ReadFile(n.home + "/ledger/" + name)
	if err != nil {
		return 0
	}
	return strings.Count(string(text), "x")
}

// CheckStatus checks that status succeeds, and that the node has one of these states if status has the node.
func (n *Node) CheckStatus(states ...string) {
	n.t.Helper()
	out, err := n.command("status").CombinedOutput()
	if err != nil {
		n.t.Errorf("status: %v\n%s", err, out)
	}
	shown := func(state string) bool { return strings.Contains(string(out), state) }
	if shown("n1 ") && !slices.ContainsFunc(states, shown) {
		n.t.Errorf("status has none of the states %q:\n%s", states, out)
	}
}

// CheckConverged checks that a plan finds nothing to do, that the node is in order, and that every command ran.
func (n *Node) CheckConverged(version int) {
	n.t.Helper()
	out, err := n.command("plan", "--detailed-exitcode").CombinedOutput()
	if err != nil {
		n.t.Errorf("plan after the last pull: %v\n%s", err, out)
	}
	for i := range steps {
		if n.Starts(fmt.Sprintf("%d-%d", version, i)) == 0 {
			n.t.Errorf("command %d of version %d never ran", i, version)
		}
	}
	status, err := n.command("status").CombinedOutput()
	if err != nil || !strings.Contains(string(status), "1 node: 1 ok") {
		n.t.Errorf("status: %v\n%s", err, status)
	}
}
