package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/cgi"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"go.etcd.io/etcd/server/v3/embed"
)

// labScript is scripts/lab as seen from this package.
func labScript(t testing.TB) string {
	t.Helper()
	path, err := filepath.Abs("../../scripts/lab")
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// needLab skips a test where there can be no hosts, and fails it where the machine only lacks packages.
func needLab(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("boots hosts: run without -short")
	}
	if os.Geteuid() != 0 {
		t.Skip("needs root: hosts of the lab are made of namespaces and mounts")
	}
	out, err := exec.Command(labScript(t), "needs").CombinedOutput()
	if err != nil || len(out) > 0 {
		t.Fatalf("the lab needs Debian packages: apt-get install %s %v", strings.Join(strings.Fields(string(out)), " "), err)
	}
}

// lab runs scripts/lab for a lab of this name, which ends with the test.
func lab(t *testing.T, name string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.Command(labScript(t), args...)
	cmd.Dir = "../.."
	cmd.Env = append(os.Environ(), "PULLET_LAB="+name, fmt.Sprint("PULLET_LAB_OWNER=", os.Getpid()))
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// labName is a name that no other test on this machine has.
func labName(test string) string {
	return fmt.Sprintf("t%d-%.24s", os.Getpid(), strings.ReplaceAll(test, "_", "-"))
}

// runLab and runOn are the programs `lab` and `on` of scripts: `on HOST CMD...` is `lab exec HOST -- CMD...`.
func runLab() { becomeLab(os.Args[1:]) }
func runOn() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: on HOST CMD...")
		os.Exit(2)
	}
	becomeLab(append([]string{"exec", os.Args[1], "--"}, os.Args[2:]...))
}

func becomeLab(args []string) {
	script := os.Getenv("LAB_SCRIPT")
	err := syscall.Exec(script, append([]string{script}, args...), os.Environ())
	fmt.Fprintln(os.Stderr, script, err)
	os.Exit(1)
}

// TestLab runs scenarios on real hosts, each in a lab of its own. testdata/lab/README.md says how to read and write
// one.
func TestLab(t *testing.T) {
	needLab(t)
	share := filepath.Dir(filepath.Dir(binary(t)))
	places := make(chan bool, 2) // so many labs at once
	// What takes longest begins first: else it goes on alone at the end.
	const longest = "script-datastore_faults"
	begun := make(chan bool)
	testscript.Run(t, testscript.Params{
		Dir: "testdata/lab",
		Setup: func(env *testscript.Env) error {
			if filepath.Base(env.WorkDir) == longest {
				places <- true
				close(begun)
			} else {
				select {
				case <-begun:
				case <-time.After(5 * time.Second): // it does not run
				}
				places <- true
			}
			env.Defer(func() { <-places })
			return setupLab(env, share)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"commit": commitAll, "etcd": labEtcd, "exits": exits, "node": labNode, "subst": substFiles, "tag": tagHead, "until": untilMatches,
		},
	})
}

// setupLab makes the network of a script's lab; the script makes the hosts. Repositories below $WORK are at
// http://lab:8081/.
func setupLab(env *testscript.Env, share string) error {
	script, err := filepath.Abs("../../scripts/lab")
	if err != nil {
		return err
	}
	caches, err := exec.Command("go", "env", "GOCACHE", "GOMODCACHE").Output() // scripts have a home of their own
	if err != nil {
		return err
	}
	build, modules, _ := strings.Cut(strings.TrimSpace(string(caches)), "\n")
	name := labName(strings.TrimPrefix(filepath.Base(env.WorkDir), "script-"))
	for key, value := range map[string]string{
		"GOCACHE": build, "GOMODCACHE": modules,
		"LAB_SCRIPT": script, "PULLET_LAB": name, "PULLET_LAB_OWNER": fmt.Sprint(os.Getpid()), "PATH": env.Getenv("PATH") + ":/usr/sbin:/sbin",
		"PROGRAM": filepath.Join(share, "bin/pullet"),
		"SYSTEMD": filepath.Join(filepath.Dir(script), "systemd"),
		"PORTS":   filepath.Join(filepath.Dir(script), "../cmd/pullet/testdata/ports"),
		"HOME":    env.WorkDir, "GIT_CONFIG_NOSYSTEM": "1",
		"GIT_AUTHOR_NAME": "Ada", "GIT_AUTHOR_EMAIL": "ada@example.org", "GIT_COMMITTER_NAME": "Ada", "GIT_COMMITTER_EMAIL": "ada@example.org",
	} {
		env.Setenv(key, value)
	}
	setDate(env.Setenv, 0)
	run := func(args ...string) ([]byte, error) {
		cmd := exec.Command(script, args...)
		cmd.Env = append(env.Vars, "HOME="+os.Getenv("HOME")) // go has its cache there
		return cmd.CombinedOutput()
	}
	env.Defer(func() {
		if failed, ok := env.T().(interface{ Failed() bool }); ok && failed.Failed() {
			logs, _ := run("logs") // what there is: the script has failed already
			env.T().Log(string(logs))
		}
		if out, err := run("down"); err != nil {
			env.T().Log("lab down: ", err, string(out))
		}
	})
	if out, err := run("up", "--share", share, "0"); err != nil {
		return fmt.Errorf("lab up: %w\n%s", err, out)
	}
	address, err := labAddress(name)
	if err != nil {
		return err
	}
	env.Setenv("LAB_ADDRESS", address)
	return serveGit(env, address)
}

// labAddress is the machine's address on the bridge of a lab.
func labAddress(name string) (string, error) {
	subnet, err := os.ReadFile("/run/pullet-lab/" + name + "/subnet")
	return "10.99." + strings.TrimSpace(string(subnet)) + ".1", err
}

// serveGit serves the repositories of a script to its hosts with the real git.
func serveGit(env *testscript.Env, address string) error {
	listener, err := net.Listen("tcp", address+":8081")
	if err != nil {
		return err
	}
	path, err := exec.LookPath("git")
	if err != nil {
		return err
	}
	server := &http.Server{Handler: &cgi.Handler{
		Path: path, Args: []string{"http-backend"},
		Env: []string{"GIT_PROJECT_ROOT=" + env.WorkDir, "GIT_HTTP_EXPORT_ALL=1", "HOME=" + env.WorkDir},
	}}
	go server.Serve(listener) // ends with Close
	env.Defer(func() { server.Close() })
	return nil
}

// labConfig is a host's configuration: its name, role, repository, and the fleet's etcd if it has one.
const labConfig = `node: {name: %s, labels: {role: %s}}
repositories:
  - {name: main, url: "http://lab:8081/%s"}
%sagent: {interval: 2s, splay: 0s}
`

// node HOST ROLE [REPO] writes the configuration of a host. With `etcd` before it, the host belongs to the fleet of
// that etcd.
func labNode(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 || len(args) > 3 {
		ts.Fatalf("usage: node HOST ROLE [REPO]")
	}
	etcd := ""
	if ts.Getenv("ETCD") != "" {
		etcd = "etcd: {endpoints: [\"http://lab:2379\"]}\n"
	}
	text := fmt.Sprintf(labConfig, args[0], args[1], append(args, "repo")[2], etcd)
	dir := ts.MkAbs(args[0] + ".etc")
	ts.Check(os.MkdirAll(dir, 0o755))
	ts.Check(os.WriteFile(filepath.Join(dir, "pullet.yaml"), []byte(text), 0o644))
	ts.Check(ts.Exec("lab", "push", args[0], filepath.Join(dir, "pullet.yaml"), "/etc/pullet"))
}

// etcd starts an etcd on the machine, at http://lab:2379, until the script ends.
func labEtcd(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 0 {
		ts.Fatalf("usage: etcd")
	}
	c := embed.NewConfig()
	c.Dir = ts.MkAbs("etcd")
	c.LogLevel, c.LogOutputs = "panic", []string{os.DevNull}
	c.TickMs, c.ElectionMs = 10, 100
	listen := url.URL{Scheme: "http", Host: ts.Getenv("LAB_ADDRESS") + ":2379"}
	peer := url.URL{Scheme: "http", Host: ts.Getenv("LAB_ADDRESS") + ":2380"}
	c.ListenClientUrls, c.AdvertiseClientUrls = []url.URL{listen}, []url.URL{{Scheme: "http", Host: "lab:2379"}}
	c.ListenPeerUrls, c.AdvertisePeerUrls = []url.URL{peer}, []url.URL{peer}
	c.InitialCluster = c.Name + "=" + peer.String()
	server, err := embed.StartEtcd(c)
	ts.Check(err)
	ts.Defer(server.Close)
	select {
	case <-server.Server.ReadyNotify():
	case <-time.After(20 * time.Second):
		ts.Fatalf("etcd is not ready after 20s")
	}
	ts.Setenv("ETCD", listen.String())
}

// until PATTERN on|lab ... runs a command again and again until it prints what matches; it is a deadline, not a pause.
func untilMatches(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: until PATTERN on|lab ...")
	}
	pattern, err := regexp.Compile("(?m)" + args[0])
	ts.Check(err)
	program, out := filepath.Join(filepath.SplitList(ts.Getenv("PATH"))[0], args[1]), []byte(nil)
	for end := time.Now().Add(time.Minute); time.Now().Before(end) && !pattern.Match(out); time.Sleep(100 * time.Millisecond) {
		cmd := exec.Command(program, args[2:]...)
		for _, name := range []string{"PATH", "HOME", "LAB_SCRIPT", "PULLET_LAB"} {
			cmd.Env = append(cmd.Env, name+"="+ts.Getenv(name))
		}
		var exit *exec.ExitError
		if out, err = cmd.Output(); err != nil && !errors.As(err, &exit) {
			ts.Check(err)
		}
	}
	// What it printed last is what the script's stdout looks at.
	ts.Check(os.WriteFile(ts.MkAbs(".until"), out, 0o600))
	ts.Check(ts.Exec("cat", ts.MkAbs(".until")))
	if !pattern.Match(out) {
		ts.Fatalf("%s does not print %s", strings.Join(args[1:], " "), args[0])
	}
}

// TestLabContract runs the tests of the actions inside hosts, where those that need a whole system run too: the
// contract test on one, and on another one those of packages and services, which mostly wait.
func TestLabContract(t *testing.T) {
	needLab(t)
	name := labName("contract")
	t.Cleanup(func() {
		if out, err := lab(t, name, "down"); err != nil {
			t.Errorf("down: %v\n%s", err, out)
		}
	})
	if out, err := lab(t, name, "up", "host1", "host2"); err != nil {
		t.Fatalf("up: %v\n%s", err, out)
	}
	type tests struct{ of, named string }
	for host, all := range map[string][]tests{
		"host1": {
			{"./apply/action", "^(TestContract|TestCheckedActions|TestCancelledBefore)$"},
			{"./apply/action/mount", "^TestSystemdKnowsMounts$"},
		},
		"host2": {{"./apply/action/pkg", "^TestPackage.*$"}, {"./apply/action/systemd", "^TestService.*$"}},
	} {
		t.Run(host, func(t *testing.T) {
			t.Parallel()
			for _, these := range all {
				out, err := lab(t, name, "gotest", host, these.of, "-test.v", "-test.run", these.named)
				if err != nil {
					t.Errorf("%s on the host: %v\n%s", these.of, err, out)
				}
				if whole := wholeTests(t, out); whole == 0 {
					t.Errorf("%s: nothing ran on a whole host:\n%s", these.of, out)
				}
			}
		})
	}
}

// wholeTests counts what ran on a whole host, and passes on how each example of TestContract and each test ended.
func wholeTests(t *testing.T, out string) int {
	t.Helper()
	whole := map[string]bool{}
	ended := regexp.MustCompile(`^\s*--- (\w+): (\S+) (\(.*\))$`)
	lines, n := bufio.NewScanner(bytes.NewReader([]byte(out))), 0
	for lines.Scan() {
		if f := strings.Fields(lines.Text()); len(f) == 5 && f[1] == "ATTR" && f[3] == "host" && f[4] == "whole" {
			whole[f[2]] = true
		}
		m := ended.FindStringSubmatch(lines.Text())
		if m == nil {
			continue
		}
		if whole[m[2]] {
			n++
		}
		if whole[m[2]] && strings.HasPrefix(m[2], "TestContract/") || !strings.Contains(m[2], "/") {
			t.Log(m[1], m[2], m[3])
		}
	}
	t.Logf("%d tests and examples ran on a whole host", n)
	return n
}

// TestLabEndsWithItsOwner: hosts, mounts and networks do not outlive the process that asked for them, however it ends.
func TestLabEndsWithItsOwner(t *testing.T) {
	needLab(t)
	name := labName("owner")
	t.Cleanup(func() {
		if out, err := lab(t, name, "down"); err != nil {
			t.Errorf("down: %v\n%s", err, out)
		}
	})
	owner := exec.Command("sleep", "600")
	if err := owner.Start(); err != nil {
		t.Fatal(err)
	}
	up := exec.Command(labScript(t), "up", "host1")
	up.Env = append(os.Environ(), "PULLET_LAB="+name, fmt.Sprint("PULLET_LAB_OWNER=", owner.Process.Pid))
	out, err := up.CombinedOutput()
	address, missing := labAddress(name)
	if err := errors.Join(err, missing, owner.Process.Kill()); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	_ = owner.Wait() // killed
	bridge := "plab" + strings.Split(address, ".")[2]
	for _, path := range []string{"/run/pullet-lab/" + name, "/run/netns/" + bridge + "-host1", "/run/pullet-lab/.cgroup/pullet-lab/" + name} {
		end := time.Now().Add(20 * time.Second)
		for ; exists(path) && time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		}
		if exists(path) {
			t.Errorf("%s is still there", path)
		}
	}
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil || strings.Contains(string(mounts), "/"+name+"/") {
		t.Errorf("mounts are left: %v\n%s", err, mounts)
	}
	if _, err := net.InterfaceByName(bridge); err == nil {
		t.Errorf("the bridge %s is left", bridge)
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
