// Package monitoring runs a fleet of real agents that a real Prometheus watches, and injects the fault of each alert.
// Tests only.
package monitoring

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pullet/pullet/internal/freeport"
	"github.com/pullet/pullet/internal/harness/cluster"
	"github.com/pullet/pullet/internal/harness/process"
)

// fleet is a fleet that Prometheus watches.
type fleet struct {
	t          testing.TB
	program    string // pullet
	root       string // directory of the module
	dir        string
	began      time.Time
	prometheus string // its address
	agents     map[string]*process.Process
	client     *clientv3.Client
}

// write writes a file below the directory of the fleet.
func (f *fleet) write(name, text string, mode os.FileMode) {
	f.t.Helper()
	path := filepath.Join(f.dir, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), mode)); err != nil {
		f.t.Fatal(err)
	}
}

// run runs a program, which has to succeed, and returns its output.
func (f *fleet) run(name string, args ...string) string {
	f.t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = f.dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		f.t.Fatalf("%s %v: %v\n%s", name, args, err, out)
	}
	return string(out)
}

// git runs git in a repository.
func (f *fleet) git(repo string, args ...string) {
	f.t.Helper()
	f.run("git", append([]string{"-C", repo, "-c", "user.name=t", "-c", "user.email=t@example.org"}, args...)...)
}

// siteJob is the job of all hosts.
const siteJob = `steps:
- {name: motd, action: file.managed, parameters: {name: /etc/motd, content: %s}}
- {name: command, action: cmd.run, parameters: {cmd: %q}}
`

// release commits a version whose second step is a command.
func (f *fleet) release(repo, name, command string) {
	f.t.Helper()
	f.write(repo+"/jobs/site.yaml", fmt.Sprintf(siteJob, name, command), 0o644)
	f.git(repo, "add", "-A")
	f.git(repo, "commit", "-qm", name)
}

// repository makes a repository with its first version.
func (f *fleet) repository(repo string) {
	f.write(repo+"/base/jobs.yaml", "jobs: {'*': [{name: site}]}\n", 0o644)
	f.git(".", "init", "-q", "-b", "main", repo)
	f.release(repo, "one", "true")
}

// hostConfig is the configuration of a host.
const hostConfig = `node: {name: %s, labels: {role: %s}}
repositories: [{name: main, url: %q, ref: main%s}]
paths: {state: %[5]s/state, hostVars: %[5]s/vars.d}
%s`

// host writes the configuration of a host with more settings, rest, and returns its agent.
func (f *fleet) host(name, role, repo, rest string) *process.Process {
	home, verify := filepath.Join(f.dir, name), ""
	if name == "strict" {
		verify = ", verify: {allowedSigners: " + f.dir + "/signers}"
	}
	f.write(name+"/root/etc/keep", "", 0o644)
	text := fmt.Sprintf(hostConfig, name, role, filepath.Join(f.dir, repo), verify, home, rest)
	f.write(name+"/pullet.yaml", text, 0o600)
	return &process.Process{
		Name: name, Log: home + ".log", MustLive: true,
		Args: []string{f.program, "agent", "--config", home + "/pullet.yaml", "--root", home + "/root"},
	}
}

// agent starts the agent of a host, which listens at an address.
func (f *fleet) agent(name, role, repo, interval, address, rest string) {
	rest = fmt.Sprintf("agent: {interval: %s, splay: 0s, wait: 2s, listen: %q}\n%s", interval, address, rest)
	p := f.host(name, role, repo, rest)
	f.agents[name] = p
	p.Start(f.t)
	f.t.Cleanup(func() { p.Kill(true) })
}

// oneByOne pulls on a host again and again, as a timer does, until stop is called.
func (f *fleet) oneByOne(etcd string) (stop func()) {
	rest := "agent: {interval: 1s, wait: 0s, metrics: {textfile: " + f.dir + "/spool/pullet.prom}}\n"
	p := f.host("timer", "db", "repo", etcd+rest)
	f.write("spool/.keep", "", 0o644)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for ctx.Err() == nil {
			args := append([]string{"pull", "--quiet"}, p.Args[2:]...)
			_, _ = exec.Command(f.program, args...).CombinedOutput() // the metrics show errors
			select {
			case <-ctx.Done():
			case <-time.After(300 * time.Millisecond):
			}
		}
	}()
	return func() { cancel(); <-ended }
}

// tmpfs mounts a small disk at a directory. It reports false if the user may not.
func (f *fleet) tmpfs(dir string) bool {
	path := filepath.Join(f.dir, dir)
	if os.Geteuid() != 0 || os.MkdirAll(path, 0o700) != nil || syscall.Mount("tmpfs", path, "tmpfs", 0,
		"size=400m,mode=700") != nil {
		return false
	}
	f.t.Cleanup(func() {
		if err := syscall.Unmount(path, syscall.MNT_DETACH); err != nil {
			f.t.Error(err)
		}
	})
	return true
}

// inventory has the hosts of a fleet with an etcd.
const inventory = `nodes:
  web1: {labels: {role: web}}
  web2: {labels: {role: web}}
  timer: {labels: {role: db}}
  slow: {labels: {role: slow}}
`

// signers has a signer of no commit.
const signers = `ada@example.org namespaces="git" ssh-ed25519 ` +
	"AAAAC3NzaC1lZDI1NTE5AAAAIJ0X1dNsYQ0vVQ1yq8nqPqkF0cFm2n0uQ3mYw5jP1b6T\n"

// Run runs a fleet of the program pullet, and fails the test unless each fault makes its alert fire and Prometheus
// answers every query of the dashboard with data. The alerts and the dashboard are those of the module in the directory
// root.
func Run(t testing.TB, program, root string) {
	t.Helper()
	f := &fleet{
		t: t, program: program, root: root, dir: t.TempDir(), began: time.Now(), agents: map[string]*process.Process{},
	}
	f.repository("repo")
	f.write("repo/nodes/all.yaml", inventory, 0o644)
	f.release("repo", "first", "true")
	f.repository("own")
	f.run("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "3",
		"-subj", "/CN=slow", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", "tls.key", "-out", "tls.pem")
	f.write("scrape.token", "0123456789abcdef0123456789abcdef\n", 0o600)
	f.write("signers", signers, 0o600)
	etcdMembers := cluster.Start(t, cluster.Options{Dir: f.dir, Size: 1})
	f.client = etcdMembers.Connect()
	etcdMembers.AwaitWrite(f.client)
	etcd := fmt.Sprintf("etcd: {endpoints: [%q], timeout: 3s}\n", etcdMembers.Endpoints()[0])
	targets := map[string]string{}
	for _, name := range []string{"web1", "web2", "solo", "strict"} {
		targets[name] = freeport.AddressFor(t)
	}
	small := f.tmpfs("strict/state")
	f.agent("web1", "web", "repo", "1s", targets["web1"], etcd)
	f.agent("web2", "web", "repo", "1s", targets["web2"], etcd)
	f.agent("solo", "web", "own", "1s", targets["solo"], "")
	f.agent("strict", "web", "own", "1s", targets["strict"], "")
	_, port, err := net.SplitHostPort(freeport.AddressFor(t))
	if err != nil {
		t.Fatal(err)
	}
	f.slow(port, etcd)
	stop := f.oneByOne(etcd)
	defer func() { stop() }()
	files := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		text, err := os.ReadFile(f.dir + "/spool/pullet.prom")
		if err != nil {
			http.Error(w, "not yet", http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		_, _ = w.Write(text) // the client may have closed the connection
	}))
	defer files.Close()
	targets["timer"] = strings.TrimPrefix(files.URL, "http://")
	f.startPrometheus(targets, "127.0.0.1:"+port)

	f.until("the fleet is well", func() bool {
		firing := f.firing()
		well := func(host string) bool { return !strings.Contains(strings.Join(firing, "\n")+"\n", " "+host+"\n") }
		return f.value(`count(pullet_version_info and on (instance, version) pullet_fleet_version_info)`) == 5 &&
			well("web1") && well("web2") && well("timer")
	})
	f.fires("a certificate near its end", "PulletCertificateEnds slow")
	f.fires("an unsigned commit", "PulletRefused strict")
	if small {
		f.fires("a small disk", "PulletDiskFull strict")
	}
	f.injectAll(etcdMembers.Members()[0], func() { stop(); stop = func() {} })
	f.checkDashboard()
}

// slowConfig is the configuration of an agent with TLS.
const slowConfig = `agent:
  interval: 1h
  listen: '0.0.0.0:%s'
  tls: {cert: %[2]s/tls.pem, key: %[2]s/tls.key}
  metrics: {tokenFile: %[2]s/scrape.token}
`

// slow starts the agent of a host that pulls once an hour and has TLS.
func (f *fleet) slow(port, etcd string) {
	p := f.host("slow", "slow", "repo", etcd+fmt.Sprintf(slowConfig, port, f.dir))
	f.agents["slow"] = p
	p.Start(f.t)
	f.t.Cleanup(func() { p.Kill(true) })
}
