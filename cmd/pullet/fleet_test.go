package main

import (
	"context"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pullet/pullet/state"
)

// fleet is a fleet of real processes: members of etcd, and agents that reach them over links that can be cut.
type fleet struct {
	t       *testing.T
	dir     string
	seed    uint64
	onLost  string
	cluster *cluster
	client  *clientv3.Client
	store   *state.Store
	nodes   []*fleetNodeProcess

	versions []release
	mu       sync.Mutex
	counts   map[string]int // what was done to it
	restless time.Time      // until when leaders of etcd are hit
}

// fleetNodeProcess is one node: its agent, and its way to etcd.
type fleetNodeProcess struct {
	*process
	*link
	role string
}

// release is a version of the fleet's repository.
type release struct {
	id  string
	bad string // what is wrong with it, "" for nothing
}

// fleetLimit and fleetTotal bound who changes at a time, per group and in all.
const fleetLimit, fleetTotal = 2, 3

const fleetRules = `rollout:
  rollingRules: {global: %d, total: %d}
  roleDependencies: {web: db}
  canary: {target: 'canary=true', soak: 1s}
  onLost: %s
`

func newFleet(t *testing.T, members int, roles map[string]string, seed uint64) *fleet {
	dir, err := os.MkdirTemp("", "pullet-fleet-") // not the test's own, which goes with it: it is kept when the test fails
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() || os.Getenv("PULLET_TEST_KEEP") != "" {
			t.Logf("logs and the repository are kept in %s", dir)
		} else if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	f := &fleet{t: t, dir: dir, seed: seed, onLost: []string{"hold", "release"}[seed%2], counts: map[string]int{}}
	f.cluster = newCluster(t, dir, members, "http", 0)
	f.client = f.cluster.client()
	f.store = state.Over(f.client, "default", nil)
	f.repository(roles)
	for _, name := range slices.Sorted(maps.Keys(roles)) {
		f.nodes = append(f.nodes, f.node(name, roles[name]))
	}
	f.write("operator.yaml", fmt.Sprintf(fleetConfig, "operator", "none", f.dir+"/repo", endpoints(f.cluster.clients), f.dir+"/operator"))
	return f
}

const fleetConfig = `node: {name: %[1]s, labels: {role: %[2]s}}
repositories: [{name: main, url: %[3]q, ref: main}]
etcd: {endpoints: [%[4]s]}
agent: {interval: 2s, splay: 0s, wait: 5s}
paths: {state: %[5]s/state, hostVars: %[5]s/vars.d}
`

func endpoints(addresses []string) string {
	return "'http://" + strings.Join(addresses, "', 'http://") + "'"
}

// node writes the configuration of a node, and opens its way to etcd.
func (f *fleet) node(name, role string) *fleetNodeProcess {
	home := filepath.Join(f.dir, name)
	n := &fleetNodeProcess{role: role, link: &link{changed: make(chan struct{}), conns: map[net.Conn]bool{}}}
	var addresses []string
	for _, member := range f.cluster.clients {
		addresses = append(addresses, n.proxy(f.t, member))
	}
	f.write(name+"/pullet.yaml", fmt.Sprintf(fleetConfig, name, role, f.dir+"/repo", endpoints(addresses), home))
	if err := os.MkdirAll(home+"/root/etc", 0o755); err != nil {
		f.t.Fatal(err)
	}
	n.process = &process{name: name, log: home + "/agent.log", args: []string{"pullet", "agent", "--config", home + "/pullet.yaml", "--root", home + "/root"}}
	return n
}

func (f *fleet) write(name, text string) {
	f.t.Helper()
	path := filepath.Join(f.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		f.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fleet) git(args ...string) string {
	f.t.Helper()
	cmd := exec.Command("git", append([]string{"-C", filepath.Join(f.dir, "repo"), "-c", "user.name=t", "-c", "user.email=t@example.org"}, args...)...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		f.t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// repository makes the state repository, without its first version.
func (f *fleet) repository(roles map[string]string) {
	nodes := "nodes:\n"
	for _, name := range slices.Sorted(maps.Keys(roles)) {
		nodes += fmt.Sprintf("  %s: {labels: {role: %s, canary: '%v'}}\n", name, roles[name], roles[name] == "can")
	}
	f.write("repo/nodes/all.yaml", nodes)
	f.write("repo/pullet.yaml", fmt.Sprintf(fleetRules, fleetLimit, fleetTotal, f.onLost))
	f.write("repo/base/jobs.yaml", "jobs:\n  '*': [{name: site}]\n  'role=db': [{name: cluster}]\n  'role=web': [{name: cluster}]\nvalidations: {'*': [{name: check}]}\n")
	f.git("init", "-q", "-b", "main")
}

// logged is a command that notes in the node's ledger when it starts and ends.
func logged(step, do string) string {
	note := `echo "%s ` + step + ` $PULLET_NODE $PULLET_VERSION ${PULLET_FENCE:-0} $(date +%%s%%N)" >> ledger`
	return fmt.Sprintf(note, "start") + "; " + do + "; r=$?; " + fmt.Sprintf(note, "end") + "; exit $r"
}

const fleetSite = `steps:
- {name: version, action: file.managed, parameters: {name: /etc/version, content: "%d\n"}}
- {name: work, action: cmd.run, parameters: {cmd: %q}}
- {name: restart, action: cmd.run, parameters: {cmd: %q}, runOptions: {serialize: {count: 1}}}
`

const fleetJob = `steps:
- {name: token, action: cmd.run, parameters: {cmd: %q}, runOptions: {target: {hosts: role=db}}}
- {name: join, action: cmd.run, parameters: {cmd: %q}}
- {name: meet, action: cmd.run, parameters: {cmd: %q}, runOptions: {sync: true}}
- {name: behind, action: cmd.run, parameters: {cmd: %q}}
`

// release commits a version. What is wrong with a bad one is a command that fails on a node, alone or where one node at
// a time runs it, a validation that fails there, or a file that does not compile.
func (f *fleet) release(bad, node string) {
	fails := func(kind string) string {
		if bad != kind {
			return "sleep 0.1"
		}
		return "test $PULLET_NODE != " + node
	}
	number := len(f.versions) + 1
	site := fmt.Sprintf(fleetSite, number, logged("work", fails("work")), logged("restart", fails("restart")))
	if bad == "syntax" {
		site += "- {name: [}\n"
	}
	f.write("repo/jobs/site.yaml", site)
	f.write("repo/jobs/cluster.yaml", fmt.Sprintf(fleetJob, logged("token", "sleep 0.1; echo $PULLET_NODE-$$"),
		logged("join", "echo {{ (step `token`).StdOut | trim }} > etc/token"), logged("meet", "true"), logged("behind", "sleep 0.05")))
	f.write("repo/jobs/check.yaml", fmt.Sprintf("steps:\n- {name: version, action: cmd.run, parameters: {cmd: %q}}\n", "grep -qx "+strconv.Itoa(number)+" etc/version && "+fails("validation")))
	f.git("add", "-A")
	f.git("commit", "-qm", fmt.Sprint("version ", number))
	what := bad
	if bad != "" {
		what += " on " + node
	}
	f.versions = append(f.versions, release{f.git("rev-parse", "HEAD"), what})
}

// count notes what was done to the fleet.
func (f *fleet) count(what string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.counts[what]++
}

// TestFleetUnderFaults runs a fleet of real processes while they are killed, stopped and cut off from each other, with
// a new version every few seconds, and then judges etcd's own history of every key, which is a total order of all that
// nodes promised each other, and what the steps noted. When the faults are over, all nodes get to the last version.
// -short runs a small fleet for a short time.
func TestFleetUnderFaults(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv("PULLET_TEST_SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	members, last := 3, 2*time.Minute
	roles := map[string]string{"can1": "can", "db1": "db", "db2": "db", "db3": "db", "web1": "web", "web2": "web", "web3": "web", "web4": "web"}
	if testing.Short() {
		members, last = 1, 15*time.Second
		roles = map[string]string{"can1": "can", "db1": "db", "db2": "db", "web1": "web"}
	}
	f := newFleet(t, members, roles, seed)
	t.Logf("PULLET_TEST_SEED=%d: %d nodes, %d members of etcd, onLost: %s, for %s", seed, len(roles), members, f.onLost, last)
	f.release("", "")
	for _, n := range f.nodes {
		n.start(t)
		t.Cleanup(func() { n.kill(true) })
	}
	f.faults(last)
	unsettled := f.settles(3 * time.Minute)
	f.stopAll()
	j := newJudge(f)
	j.replay(f.history())
	if unsettled != "" {
		j.breach("%s", unsettled)
	}
	j.ledgers()
	j.verdict()
}

// stopAll ends the agents: from here on nothing moves.
func (f *fleet) stopAll() {
	for _, n := range f.nodes {
		n.kill(true)
	}
}

// settles waits, after the faults, until all nodes run the last version and hold nothing, or says why they do not. As
// the operator it commits a mending version where a halt stands in the way: a step that was cut off and must not run
// twice leaves one.
func (f *fleet) settles(atMost time.Duration) string {
	f.release("", "")
	end, mend := time.Now().Add(atMost), time.Now().Add(atMost/6)
	for why := ""; ; time.Sleep(200 * time.Millisecond) {
		if why = f.unsettled(); why == "" {
			return ""
		}
		if time.Now().After(end) {
			out, _ := f.operator("status")
			return fmt.Sprintf("%s after the faults the fleet has not settled: %s\n%s", atMost, why, out)
		}
		if time.Now().After(mend) && f.halted() {
			f.release("", "")
			f.count("mending versions")
			mend = time.Now().Add(atMost / 6)
		}
	}
}

// unsettled says what is left to do in the fleet.
func (f *fleet) unsettled() string {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	got, err := f.client.Get(ctx, "/pullet/default/", clientv3.WithPrefix(), clientv3.WithKeysOnly())
	if err != nil {
		return err.Error()
	}
	last, there := f.versions[len(f.versions)-1].id, map[string]bool{}
	for _, kv := range got.Kvs {
		key := strings.TrimPrefix(string(kv.Key), "/pullet/default/")
		for _, held := range []string{"slot/", "total/", "semaphore/"} {
			if strings.HasPrefix(key, held) {
				return key + " is held"
			}
		}
		there[key] = true
	}
	for _, n := range f.nodes {
		for _, key := range []string{"running_version/" + last + "/" + n.name, "status/configured/success/" + n.name, "status/validated/success/" + n.name} {
			if !there[key] {
				return "there is no " + key
			}
		}
	}
	return ""
}

// halted reports a halt in the rollout that goes on.
func (f *fleet) halted() bool {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	current, _, err := f.store.Versions.Current(ctx)
	if err != nil || current == nil {
		return false
	}
	got, err := f.client.Get(ctx, f.store.Rollouts.GateKey(current.Rollout(), ""), clientv3.WithPrefix())
	if err != nil {
		return false
	}
	for _, kv := range got.Kvs {
		if strings.Contains(string(kv.Value), state.Halted) {
			return true
		}
	}
	return false
}

// operator runs a command of pullet as a person does, on a host that nothing happens to.
func (f *fleet) operator(args ...string) (string, error) {
	out, err := exec.Command("pullet", append(args, "--config", f.dir+"/operator.yaml")...).CombinedOutput()
	return string(out), err
}
