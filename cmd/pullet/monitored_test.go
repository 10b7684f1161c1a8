package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// monitored is a fleet of real agents that a real Prometheus watches, with the alerts of docs/monitoring.
type monitored struct {
	t          *testing.T
	dir        string
	began      time.Time
	prometheus string // its address
	agents     map[string]*process
	client     *clientv3.Client
}

func (m *monitored) write(name, text string, mode os.FileMode) {
	m.t.Helper()
	path := filepath.Join(m.dir, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), mode)); err != nil {
		m.t.Fatal(err)
	}
}

func (m *monitored) run(name string, args ...string) string {
	m.t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = m.dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		m.t.Fatalf("%s %v: %v\n%s", name, args, err, out)
	}
	return string(out)
}

func (m *monitored) git(repo string, args ...string) {
	m.t.Helper()
	m.run("git", append([]string{"-C", repo, "-c", "user.name=t", "-c", "user.email=t@example.org"}, args...)...)
}

// release commits a version whose second step is a command.
func (m *monitored) release(repo, name, command string) {
	m.t.Helper()
	m.write(repo+"/jobs/site.yaml", fmt.Sprintf("steps:\n- {name: motd, action: file.managed, parameters: {name: /etc/motd, content: %s}}\n"+
		"- {name: command, action: cmd.run, parameters: {cmd: %q}}\n", name, command), 0o644)
	m.git(repo, "add", "-A")
	m.git(repo, "commit", "-qm", name)
}

func (m *monitored) repository(repo string) {
	m.write(repo+"/base/jobs.yaml", "jobs: {'*': [{name: site}]}\n", 0o644)
	m.git(".", "init", "-q", "-b", "main", repo)
	m.release(repo, "one", "true")
}

// host writes the configuration of a host.
func (m *monitored) host(name, role, repo, rest string) *process {
	home, verify := filepath.Join(m.dir, name), ""
	if name == "strict" {
		verify = ", verify: {allowedSigners: " + m.dir + "/signers}"
	}
	m.write(name+"/root/etc/keep", "", 0o644)
	m.write(name+"/pullet.yaml", fmt.Sprintf("node: {name: %[1]s, labels: {role: %[2]s}}\nrepositories: [{name: main, url: %[3]q, ref: main%[6]s}]\n"+
		"paths: {state: %[4]s/state, hostVars: %[4]s/vars.d}\n%[5]s", name, role, filepath.Join(m.dir, repo), home, rest, verify), 0o600)
	return &process{name: name, log: home + ".log", mustLive: true, args: []string{"pullet", "agent", "--config", home + "/pullet.yaml", "--root", home + "/root"}}
}

// agent is a host with an agent at an address, which begins at once.
func (m *monitored) agent(name, role, repo, interval, address, rest string) {
	p := m.host(name, role, repo, fmt.Sprintf("agent: {interval: %s, splay: 0s, wait: 2s, listen: %q}\n%s", interval, address, rest))
	m.agents[name] = p
	p.start(m.t)
	m.t.Cleanup(func() { p.kill(true) })
}

// oneByOne pulls again and again, as a timer does, until it is stopped.
func (m *monitored) oneByOne(etcd string) (stop func()) {
	p := m.host("timer", "db", "repo", etcd+"agent: {interval: 1s, wait: 0s, metrics: {textfile: "+m.dir+"/spool/pullet.prom}}\n")
	m.write("spool/.keep", "", 0o644)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for ctx.Err() == nil {
			args := append([]string{"pull", "--quiet"}, p.args[2:]...)
			_, _ = exec.Command("pullet", args...).CombinedOutput() // what is wrong is seen in the metrics
			select {
			case <-ctx.Done():
			case <-time.After(300 * time.Millisecond):
			}
		}
	}()
	return func() { cancel(); <-ended }
}

// shortened are the alerts as they are shipped, with times that a test can wait for.
func shortened(t *testing.T) string {
	text, err := os.ReadFile("../../docs/monitoring/alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	out := regexp.MustCompile(`for: \d+[mh]\b`).ReplaceAllString(string(text), "for: 1s")
	out = strings.NewReplacer(" 2 * 3600", " 4", " 3 * 3600", " 6", " 24 * 3600", " 12", "[6h]", "[30s]").Replace(out)
	if left := regexp.MustCompile(`3600|\[\d+[mhd]\]`).FindString(out); left != "" {
		t.Fatalf("%s is left of long times", left)
	}
	return out
}

// watches starts Prometheus.
func (m *monitored) watches(targets map[string]string, tlsHost string) {
	m.write("alerts.yaml", shortened(m.t), 0o644)
	jobs := ""
	for _, name := range []string{"web1", "web2", "solo", "strict"} {
		jobs += fmt.Sprintf("      - {targets: [%q], labels: {instance: %s}}\n", targets[name], name)
	}
	m.write("prometheus.yml", fmt.Sprintf(`global: {scrape_interval: 500ms, scrape_timeout: 500ms, evaluation_interval: 500ms}
rule_files: [alerts.yaml]
scrape_configs:
  - job_name: pullet
    static_configs:
%s  - job_name: pullet-tls
    scheme: https
    tls_config: {ca_file: %[2]s/tls.pem}
    authorization: {credentials_file: %[2]s/scrape.token}
    static_configs: [{targets: [%[3]q], labels: {instance: slow}}]
  - job_name: node
    static_configs: [{targets: [%[4]q], labels: {instance: timer}}]
`, jobs, m.dir, tlsHost, targets["timer"]), 0o644)
	m.prometheus = freePort(m.t)
	p := &process{name: "prometheus", log: m.dir + "/prometheus.log", mustLive: true, args: []string{
		"prometheus", "--config.file=" + m.dir + "/prometheus.yml", "--storage.tsdb.path=" + m.dir + "/tsdb",
		"--web.listen-address=" + m.prometheus, "--log.level=warn",
	}}
	p.start(m.t)
	m.t.Cleanup(func() { p.kill(true) })
}

// answer asks Prometheus.
func (m *monitored) answer(path string, query url.Values, into any) error {
	got, err := http.Get("http://" + m.prometheus + path + "?" + query.Encode())
	if err != nil {
		return err
	}
	defer got.Body.Close()
	text, err := io.ReadAll(got.Body)
	if err == nil && got.StatusCode != 200 {
		err = fmt.Errorf("%s: %s", got.Status, text)
	}
	if err != nil {
		return err
	}
	return json.Unmarshal(text, into)
}

// alert is one that fires or is about to.
type alert struct {
	Labels, Annotations map[string]string
	State               string
}

func (m *monitored) firing() (out []string) {
	var all struct{ Data struct{ Alerts []alert } }
	if err := m.answer("/api/v1/alerts", nil, &all); err != nil {
		return nil // it begins
	}
	for _, a := range all.Data.Alerts {
		if a.State == "firing" {
			out = append(out, a.Labels["alertname"]+" "+a.Labels["instance"])
		}
		for _, text := range a.Annotations {
			if strings.Contains(text, "<no value>") || strings.Contains(text, "error expanding") {
				m.t.Errorf("%s says %s", a.Labels["alertname"], text)
			}
		}
	}
	slices.Sort(out)
	return out
}

// until waits.
func (m *monitored) until(what string, is func() bool) {
	m.t.Helper()
	for end := time.Now().Add(time.Minute); !is(); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			m.t.Fatalf("%s: firing are %q", what, m.firing())
		}
	}
	m.t.Logf("%4.1fs %s", time.Since(m.began).Seconds(), what)
}

// fires waits for alerts, each with a pattern of its host.
func (m *monitored) fires(fault string, alerts ...string) {
	m.t.Helper()
	for _, want := range alerts {
		m.until(fault+": "+want, func() bool { return slices.ContainsFunc(m.firing(), regexp.MustCompile("^"+want+"$").MatchString) })
	}
}

// tmpfs puts a small disk under a directory, where this user may.
func (m *monitored) tmpfs(dir string) bool {
	path := filepath.Join(m.dir, dir)
	if os.Geteuid() != 0 || os.MkdirAll(path, 0o700) != nil || syscall.Mount("tmpfs", path, "tmpfs", 0, "size=400m,mode=700") != nil {
		return false
	}
	m.t.Cleanup(func() {
		if err := syscall.Unmount(path, syscall.MNT_DETACH); err != nil {
			m.t.Error(err)
		}
	})
	return true
}

// TestMonitored: each fault of a fleet makes its alert fire, in a real Prometheus with the alerts that are shipped, and
// every query of the dashboard is answered with data.
func TestMonitored(t *testing.T) {
	if testing.Short() {
		t.Skip("a fleet and Prometheus for a minute: run without -short")
	}
	// Not parallel: it takes the processors, and the time of members of a datastore counts in other tests.
	m := &monitored{t: t, dir: t.TempDir(), began: time.Now(), agents: map[string]*process{}}
	m.repository("repo")
	m.write("repo/nodes/all.yaml", "nodes: {web1: {labels: {role: web}}, web2: {labels: {role: web}}, timer: {labels: {role: db}}, slow: {labels: {role: slow}}}\n", 0o644)
	m.release("repo", "first", "true")
	m.repository("own")
	m.run("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "3", "-subj", "/CN=slow",
		"-addext", "subjectAltName=IP:127.0.0.1", "-keyout", "tls.key", "-out", "tls.pem")
	m.write("scrape.token", "0123456789abcdef0123456789abcdef\n", 0o600)
	m.write("signers", "ada@example.org namespaces=\"git\" ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ0X1dNsYQ0vVQ1yq8nqPqkF0cFm2n0uQ3mYw5jP1b6T\n", 0o600)
	cluster := newCluster(t, m.dir, 1, "http", 0)
	m.client = cluster.client()
	m.etcdAnswers()
	etcd := fmt.Sprintf("etcd: {endpoints: [%s], timeout: 3s}\n", quoted(cluster.endpoints()))
	targets := map[string]string{"web1": freePort(t), "web2": freePort(t), "solo": freePort(t), "strict": freePort(t)}
	small := m.tmpfs("strict/state")
	m.agent("web1", "web", "repo", "1s", targets["web1"], etcd)
	m.agent("web2", "web", "repo", "1s", targets["web2"], etcd)
	m.agent("solo", "web", "own", "1s", targets["solo"], "")
	m.agent("strict", "web", "own", "1s", targets["strict"], "")
	_, port, err := net.SplitHostPort(freePort(t))
	if err != nil {
		t.Fatal(err)
	}
	m.slow(port, etcd)
	stop := m.oneByOne(etcd)
	defer func() { stop() }()
	files := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		text, err := os.ReadFile(m.dir + "/spool/pullet.prom")
		if err != nil {
			http.Error(w, "not yet", http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		_, _ = w.Write(text) // who went away reads nothing
	}))
	defer files.Close()
	targets["timer"] = strings.TrimPrefix(files.URL, "http://")
	m.watches(targets, "127.0.0.1:"+port)

	m.until("the fleet is well", func() bool {
		firing := m.firing()
		well := func(host string) bool { return !strings.Contains(strings.Join(firing, "\n")+"\n", " "+host+"\n") }
		return m.value(`count(pullet_version_info and on (instance, version) pullet_fleet_version_info)`) == 5 && well("web1") && well("web2") && well("timer")
	})
	m.fires("a certificate near its end", "PulletCertificateEnds slow")
	m.fires("an unsigned commit", "PulletRefused strict")
	if small {
		m.fires("a small disk", "PulletDiskFull strict")
	}
	m.faults(cluster, func() { stop(); stop = func() {} })
	m.dashboard()
}

// etcdAnswers waits until etcd takes writes: who pulls once an hour does not ask again soon.
func (m *monitored) etcdAnswers() {
	ctx, cancel := context.WithTimeout(m.t.Context(), time.Minute)
	defer cancel()
	for {
		_, err := m.client.Put(ctx, "/begin", "")
		if err == nil {
			return
		}
		if ctx.Err() != nil {
			m.t.Fatalf("etcd takes no write in its first minute: %v", err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// slow is a host that pulls once an hour, and is scraped from elsewhere.
func (m *monitored) slow(port, etcd string) {
	p := m.host("slow", "slow", "repo", fmt.Sprintf("%sagent:\n  {interval: 1h, listen: '0.0.0.0:%s', tls: {cert: %[3]s/tls.pem, key: %[3]s/tls.key}, metrics: {tokenFile: %[3]s/scrape.token}}\n",
		etcd, port, m.dir))
	m.agents["slow"] = p
	p.start(m.t)
	m.t.Cleanup(func() { p.kill(true) })
}

// value is the first value of a query; -1 where there is none.
func (m *monitored) value(query string) float64 {
	var got struct {
		Data struct{ Result []struct{ Value [2]any } }
	}
	if err := m.answer("/api/v1/query", url.Values{"query": {query}}, &got); err != nil || len(got.Data.Result) == 0 {
		return -1
	}
	var out float64
	if _, err := fmt.Sscan(got.Data.Result[0].Value[1].(string), &out); err != nil {
		m.t.Error(err)
	}
	return out
}
