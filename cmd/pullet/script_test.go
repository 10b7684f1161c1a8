package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/pullet/pullet/internal/freeport"
	"github.com/pullet/pullet/internal/harness/cluster"
	"github.com/pullet/pullet/internal/harness/lab"
	"github.com/pullet/pullet/internal/patience"
	"github.com/pullet/pullet/state"
)

func TestMain(m *testing.M) {
	// Scripts wait more than they compute: for leases, locks and gates. The command line overrides this.
	if err := flag.Set("test.parallel", strconv.Itoa(4*runtime.GOMAXPROCS(0))); err != nil {
		panic(err)
	}
	testscript.Main(utcTests{m}, map[string]func(){"pullet": main, "lab": lab.Main, "on": lab.OnMain, "tty": runTerminal, commandLines: runCommandLines, cluster.Program: cluster.Main, editorProcess: runEditorProcess})
}

// utcTests runs the tests of this process with UTC as its local time zone: printed times are the same everywhere.
// The programs that scripts start have the zone of the machine, or the one that the script sets.
type utcTests struct{ *testing.M }

func (m utcTests) Run() int {
	time.Local = time.UTC
	return m.M.Run()
}

// TestScripts runs the specification of the command line. testdata/script/README.md says how to read and write a
// script.
func TestScripts(t *testing.T) {
	t.Parallel()
	params := scripts()
	setup := params.Setup
	params.Setup = func(env *testscript.Env) error { return errors.Join(setup(env), shareProcess(env)) }
	testscript.Run(t, params)
}

// scripts are the scripts, with the commands that they have.
func scripts() testscript.Params {
	return testscript.Params{
		Condition: condition,
		Dir:       "testdata/script",
		Setup:     setupScript,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"address": freeAddress, "as": asNode, "calm": runCalm, "collector": runCollector, "commit": commitAll, "damage": damageRecord, "etcd": showEtcd, "exits": exits, "forge": forgeVersion, "gitserver": runGitServer, "keeps": runKeeps, "killed": runKilled, "logstore": runLogStore, "lose": loseNode, "member": runMember, "milestones": milestones, "node": writeNode,
			"nospace": runNoSpace, "fill": fillDatastore, "react": react, "reacted": reacted, "receives": runReceives, "subst": substFiles,
			"store": runStore, "tag": tagHead, "typed": isTyped, "waitfor": waitFor, "web": runWeb,
		},
	}
}

// defaultNode is the configuration of a script that brings none.
const defaultNode = `node: {name: web1, labels: {role: web}}
repositories:
  - {name: main, url: "file://$WORK/repo"}
paths: {state: $WORK/state, hostVars: $WORK/vars.d}
`

// fleetNode is the configuration of a node that shares its store with others: its name, role and, last, the repository.
const fleetNode = `node: {name: %[1]s, labels: {role: %[2]s}}
repositories:
  - {name: main, url: "file://%[3]s"}
etcd: {dir: $WORK/etcd}
agent: {wait: 0s}
paths: {state: $WORK/%[1]s/state, hostVars: $WORK/%[1]s/vars.d}
`

// setupScript gives a script its node, unless it brings its own, and a git that does not know its user.
func setupScript(env *testscript.Env) error {
	config := filepath.Join(env.WorkDir, "pullet.yaml")
	text, err := os.ReadFile(config)
	if errors.Is(err, os.ErrNotExist) {
		text = []byte(defaultNode)
	} else if err != nil {
		return err
	}
	text = bytes.ReplaceAll(text, []byte("$WORK"), []byte(env.WorkDir))
	if err := os.WriteFile(config, text, 0o644); err != nil {
		return err
	}
	root := filepath.Join(env.WorkDir, "root")
	if err := os.MkdirAll(filepath.Join(root, "etc"), 0o755); err != nil {
		return err
	}
	env.Setenv("PULLET_CONFIG", config)
	env.Setenv("PULLET_ROOT", root)
	poisoned, err := filepath.Abs("../../scripts/poisoned")
	if err != nil {
		return err
	}
	env.Setenv("POISONED", poisoned)
	env.Values[memberOf{}] = &memberOf{}
	for name, value := range map[string]string{
		"HOME": env.WorkDir, "GIT_CONFIG_NOSYSTEM": "1",
		"GOGC":            "400", // thousands of commands live for a moment each
		"GIT_AUTHOR_NAME": "Ada", "GIT_AUTHOR_EMAIL": "ada@example.org", "GIT_COMMITTER_NAME": "Ada", "GIT_COMMITTER_EMAIL": "ada@example.org",
	} {
		env.Setenv(name, value)
	}
	setDate(env.Setenv, 0)
	return nil
}

// condition tells scripts who runs them: [root], and whether that user can mount what others do not see: [mounts].
func condition(name string) (bool, error) {
	switch name {
	case "root":
		return os.Geteuid() == 0, nil
	case "mounts":
		return os.Geteuid() == 0 && exec.Command("unshare", "--mount", "true").Run() == nil, nil
	}
	return false, fmt.Errorf("there is no condition %q", name)
}

// setDate sets the time of the next commit: a minute after the one before, so that hashes are the same in every run.
func setDate(setenv func(name, value string), commits int) {
	date := fmt.Sprintf("@%d +0000", 1700000000+60*commits)
	setenv("COMMITS", strconv.Itoa(commits))
	setenv("GIT_AUTHOR_DATE", date)
	setenv("GIT_COMMITTER_DATE", date)
}

// runGit runs git in a repository and returns what it prints.
func runGit(ts *testscript.TestScript, repo string, args ...string) string {
	cmd := exec.Command("git", append([]string{"-C", ts.MkAbs(repo)}, args...)...)
	cmd.Env = os.Environ()
	for _, name := range []string{"HOME", "GIT_CONFIG_NOSYSTEM", "GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME",
		"GIT_COMMITTER_EMAIL", "GIT_AUTHOR_DATE", "GIT_COMMITTER_DATE"} {
		cmd.Env = append(cmd.Env, name+"="+ts.Getenv(name))
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		ts.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// commit REPO MESSAGE commits everything in a directory, which becomes a repository with the first commit. $COMMIT is
// then its id, and $HEAD the short one.
func commitAll(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: commit REPO MESSAGE")
	}
	repo := args[0]
	if _, err := os.Stat(filepath.Join(ts.MkAbs(repo), ".git")); err != nil {
		runGit(ts, repo, "init", "-q", "-b", "main")
	}
	runGit(ts, repo, "add", "-A")
	runGit(ts, repo, "commit", "-q", "--allow-empty", "-m", args[1])
	ts.Setenv("COMMIT", runGit(ts, repo, "rev-parse", "HEAD"))
	ts.Setenv("HEAD", ts.Getenv("COMMIT")[:8])
	commits, err := strconv.Atoi(ts.Getenv("COMMITS"))
	ts.Check(err)
	setDate(ts.Setenv, commits+1)
}

// tag REPO NAME [-lightweight] tags the last commit.
func tagHead(ts *testscript.TestScript, neg bool, args []string) {
	switch {
	case !neg && len(args) == 2:
		runGit(ts, args[0], "tag", "-a", "-m", args[1], args[1])
	case !neg && len(args) == 3 && args[2] == "-lightweight":
		runGit(ts, args[0], "tag", args[1])
	default:
		ts.Fatalf("usage: tag REPO NAME [-lightweight]")
	}
}

// node NAME ROLE [REPO] writes the configuration NAME.yaml of a node of a fleet whose nodes share one store.
func writeNode(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 || len(args) > 3 {
		ts.Fatalf("usage: node NAME ROLE [REPO]")
	}
	repo := append(args, "repo")[2]
	text := strings.ReplaceAll(fmt.Sprintf(fleetNode, args[0], args[1], ts.MkAbs(repo)), "$WORK", ts.Getenv("WORK"))
	ts.Check(os.WriteFile(ts.MkAbs(args[0]+".yaml"), []byte(text), 0o644))
	ts.Check(os.MkdirAll(ts.MkAbs(args[0]+"/root/etc"), 0o755))
}

// store runs the store of a fleet's nodes until the script ends. Without it each pull runs it for itself, one after
// another.
func runStore(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 0 {
		ts.Fatalf("usage: store")
	}
	s, err := state.Open(context.Background(), state.Config{Fleet: "default", Dir: ts.MkAbs("etcd")})
	ts.Check(err)
	ts.Defer(func() { ts.Check(s.Close()) })
}

// as NAME makes the commands that follow run on this node.
func asNode(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: as NODE")
	}
	ts.Setenv("PULLET_CONFIG", ts.MkAbs(args[0]+".yaml"))
	ts.Setenv("PULLET_ROOT", ts.MkAbs(args[0]+"/root"))
	if l, mixed := ts.Value(lastOf{}).(*last); mixed {
		l.as(ts, args[0])
	}
}

// exits CODE COMMAND... runs a command that ends with this exit code; -1 is for one that a signal ended.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	code := execute(ts, args[1], args[2:])
	if code != want {
		ts.Fatalf("exit code %d, want %d", code, want)
	}
}

// killed COMMAND... runs a command that a signal ends, and waits until nothing that it started below this root runs any
// more: the next pull would wait for it.
func runKilled(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: killed COMMAND...")
	}
	exits(ts, false, append([]string{"-1"}, args...))
	mark := []byte("PULLET_ROOT=" + ts.Getenv("PULLET_ROOT") + "\x00")
	ended := func() bool { return len(processesWith(ts, mark)) == 0 }
	if !patience.Wait(context.Background(), time.Minute, ended) {
		ts.Fatalf("processes of the command still run: %v", processesWith(ts, mark))
	}
}

// processesWith returns the ids of the processes that have a variable in their environment. A process that ended
// meanwhile, or belongs to another user, has none.
func processesWith(ts *testscript.TestScript, variable []byte) []string {
	files, err := filepath.Glob("/proc/[0-9]*/environ")
	ts.Check(err)
	return slices.DeleteFunc(files, func(file string) bool {
		text, err := os.ReadFile(file)
		return err != nil || !bytes.Contains(append([]byte{0}, text...), append([]byte{0}, variable...))
	})
}

// subst FILE... expands $WORK in files.
func substFiles(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: subst FILE...")
	}
	for _, file := range args {
		text := strings.ReplaceAll(ts.ReadFile(file), "$WORK", ts.Getenv("WORK"))
		ts.Check(os.WriteFile(ts.MkAbs(file), []byte(text), 0o644))
	}
}

// freeAddress is "address NAME...": each variable is an address of this machine at which nobody listens.
func freeAddress(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: address NAME...")
	}
	for _, name := range args {
		at, err := freeport.Address()
		ts.Check(err)
		ts.Setenv(name, at)
	}
}

// waitFor PATTERN FILE waits until a file is there and matches; it is a deadline, not a pause.
func waitFor(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: waitfor PATTERN FILE")
	}
	pattern, err := regexp.Compile("(?m)" + args[0])
	ts.Check(err)
	var text []byte
	matches := func() bool {
		text, err = os.ReadFile(ts.MkAbs(args[1]))
		return err == nil && pattern.Match(text)
	}
	if !patience.Wait(context.Background(), time.Minute, matches) {
		ts.Fatalf("%s never matched %s; it holds:\n%s", args[1], args[0], text)
	}
}

// milestones FILE PATTERNS checks that a file has lines that match the patterns of another file, in their order.
func milestones(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: milestones FILE PATTERNS")
	}
	rest := strings.Split(ts.ReadFile(args[0]), "\n")
	for line := range strings.Lines(ts.ReadFile(args[1])) {
		pattern, err := regexp.Compile(strings.TrimSuffix(line, "\n"))
		ts.Check(err)
		at := slices.IndexFunc(rest, pattern.MatchString)
		if at < 0 {
			ts.Fatalf("%s: no line matches %s after the ones before it", args[0], pattern)
		}
		rest = rest[at+1:]
	}
}
