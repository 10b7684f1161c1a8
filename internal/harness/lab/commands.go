package lab

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"go.etcd.io/etcd/server/v3/embed"
)

// Commands returns the commands that scripts of the lab have in addition to those of other scripts.
func Commands() map[string]func(ts *testscript.TestScript, neg bool, args []string) {
	return map[string]func(*testscript.TestScript, bool, []string){
		"etcd": startEtcd, "node": writeNode, "until": untilMatches,
	}
}

// hostConfig is the configuration of a host: its name, role, repository, and the etcd of the fleet if it has one.
const hostConfig = `node: {name: %s, labels: {role: %s}}
repositories:
  - {name: main, url: "http://lab:8081/%s"}
%sagent: {interval: 2s, splay: 0s}
`

// writeNode is the command `node HOST ROLE [REPO]`. It writes the configuration of a host. After the command etcd the
// host belongs to the fleet of that etcd.
func writeNode(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 || len(args) > 3 {
		ts.Fatalf("usage: node HOST ROLE [REPO]")
	}
	etcd := ""
	if ts.Getenv("ETCD") != "" {
		etcd = "etcd: {endpoints: [\"http://lab:2379\"]}\n"
	}
	text := fmt.Sprintf(hostConfig, args[0], args[1], append(args, "repo")[2], etcd)
	dir := ts.MkAbs(args[0] + ".etc")
	ts.Check(os.MkdirAll(dir, 0o755))
	ts.Check(os.WriteFile(filepath.Join(dir, "pullet.yaml"), []byte(text), 0o644))
	ts.Check(ts.Exec("lab", "push", args[0], filepath.Join(dir, "pullet.yaml"), "/etc/pullet"))
}

// startEtcd is the command `etcd`. It runs an etcd on the machine, at http://lab:2379, until the script ends.
func startEtcd(ts *testscript.TestScript, neg bool, args []string) {
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

// untilMatches is the command `until PATTERN on|lab ...`. It runs a program until its output matches, for up to a
// minute.
func untilMatches(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: until PATTERN on|lab ...")
	}
	pattern, err := regexp.Compile("(?m)" + args[0])
	ts.Check(err)
	program, out := filepath.Join(filepath.SplitList(ts.Getenv("PATH"))[0], args[1]), []byte(nil)
	for end := time.Now().Add(time.Minute); time.Now().Before(end) &&
		!pattern.Match(out); time.Sleep(100 * time.Millisecond) {
		cmd := exec.Command(program, args[2:]...)
		for _, name := range []string{"PATH", "HOME", "LAB_SCRIPT", "PULLET_LAB"} {
			cmd.Env = append(cmd.Env, name+"="+ts.Getenv(name))
		}
		var exit *exec.ExitError
		if out, err = cmd.Output(); err != nil && !errors.As(err, &exit) {
			ts.Check(err)
		}
	}
	// The last output is the stdout of the script.
	ts.Check(os.WriteFile(ts.MkAbs(".until"), out, 0o600))
	ts.Check(ts.Exec("cat", ts.MkAbs(".until")))
	if !pattern.Match(out) {
		ts.Fatalf("%s does not print %s", strings.Join(args[1:], " "), args[0])
	}
}

// CountWhole returns how many tests and examples in the output of a test ran on a whole host. It logs the results of
// each test, and of each example of TestContract.
func CountWhole(t testing.TB, out string) int {
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
