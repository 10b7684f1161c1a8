package main

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
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
	t        *testing.T
	dir      string
	seed     uint64
	onLost   string
	cluster  *cluster
	client   *clientv3.Client
	store    *state.Store
	nodes    []*fleetNodeProcess
	operates []string // the environment of an operator, beside the test's own

	versions []release

	mu       sync.Mutex
	counts   map[string]int   // what was done to it
	until    time.Time        // faults go on
	restless time.Time        // until when leaders of etcd are hit
	acked    map[int64]string // by the revision: what etcd said that it wrote
}

// fleetNodeProcess is one node: its agent, and its way to etcd.
type fleetNodeProcess struct {
	*process
	*link
	role    string
	carries bool // the datastore, or may do so
}

// release is a version of the fleet's repository.
type release struct {
	id  string
	bad string // what is wrong with it, "" for nothing
}

// fleetLimit and fleetTotal bound who changes at a time, per group and in all.
const fleetLimit, fleetTotal = 2, 3

const fleetRules = `config: {%s}
rollout:
  rollingRules: {global: %d, total: %d}
  roleDependencies: {web: db}
  canary: {target: 'canary=true', soak: 1s}
  onLost: %s
`

// newFleet is a fleet without its nodes, with a repository for these roles. Of those that may carry the datastore its
// repository says so.
func newFleet(t *testing.T, roles map[string]string, carriers []string) *fleet {
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
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv("PULLET_TEST_SEED"); text != "" {
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	f := &fleet{t: t, dir: dir, seed: seed, onLost: []string{"hold", "release"}[seed%2], counts: map[string]int{}, acked: map[int64]string{}}
	f.repository(roles, carriers)
	return f
}

// onEtcd has the fleet run on an etcd of so many members.
func (f *fleet) onEtcd(members int, roles map[string]string) {
	f.cluster = newCluster(f.t, f.dir, members, "http", 0)
	f.connect()
	f.born()
	for _, name := range slices.Sorted(maps.Keys(roles)) {
		f.nodes = append(f.nodes, f.node(name, roles[name]))
	}
	f.write("operator/pullet.yaml", fmt.Sprintf(fleetConfig, "operator", "none", f.dir+"/repo", quoted(f.cluster.endpoints()), f.dir+"/operator"))
}

// born waits until etcd wrote something: an only member that is killed before waits for a leader for good.
func (f *fleet) born() {
	ctx, cancel := context.WithTimeout(f.t.Context(), time.Minute)
	defer cancel()
	for {
		_, err := f.client.Put(ctx, "/begin", "")
		if err == nil {
			return
		}
		if ctx.Err() != nil {
			f.t.Fatalf("etcd takes no write in its first minute: %v", err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// connect opens the fleet's record without anything in between.
func (f *fleet) connect() {
	f.client = f.cluster.client()
	f.store = state.Over(f.client, "default", nil)
}

const fleetConfig = `node: {name: %[1]s, labels: {role: %[2]s}}
repositories: [{name: main, url: %[3]q, ref: main}]
etcd: {endpoints: [%[4]s]}
agent: {interval: 2s, splay: 0s, wait: 5s}
paths: {state: %[5]s/state, hostVars: %[5]s/vars.d}
`

func quoted(all []string) string { return "'" + strings.Join(all, "', '") + "'" }

// node writes the configuration of a node, and opens its way to etcd.
func (f *fleet) node(name, role string) *fleetNodeProcess {
	n := f.newNode(name, role)
	var endpoints []string
	for _, member := range f.cluster.clients {
		endpoints = append(endpoints, "http://"+n.proxy(f.t, member))
	}
	f.write(name+"/pullet.yaml", fmt.Sprintf(fleetConfig, name, role, f.dir+"/repo", quoted(endpoints), filepath.Join(f.dir, name)))
	return n
}

// newNode is a node without a configuration.
func (f *fleet) newNode(name, role string) *fleetNodeProcess {
	home := filepath.Join(f.dir, name)
	if err := os.MkdirAll(home+"/root/etc", 0o755); err != nil {
		f.t.Fatal(err)
	}
	return &fleetNodeProcess{role: role, link: newLink(), process: &process{
		name: name, log: home + "/agent.log", mustLive: true,
		args: []string{"pullet", "agent", "--config", home + "/pullet.yaml", "--root", home + "/root"},
	}}
}

// startAll starts the agents, until the test ends.
func (f *fleet) startAll() {
	for _, n := range f.nodes {
		n.start(f.t)
		f.t.Cleanup(func() { n.kill(true) })
	}
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
func (f *fleet) repository(roles map[string]string, carriers []string) {
	nodes, config := "nodes:\n", ""
	for _, name := range slices.Sorted(maps.Keys(roles)) {
		nodes += fmt.Sprintf("  %s: {labels: {role: %s, canary: '%v', disk: '%v'}}\n", name, roles[name], roles[name] == "can", slices.Contains(carriers, name))
	}
	if len(carriers) > 0 {
		config = fmt.Sprintf("dataStore: {type: etcd, count: %d, eligible: disk=true, replaceAfter: %s}", datastoreMembers, datastoreReplace)
	}
	f.write("repo/nodes/all.yaml", nodes)
	f.write("repo/pullet.yaml", fmt.Sprintf(fleetRules, config, fleetLimit, fleetTotal, f.onLost))
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
	members, last := 3, 2*time.Minute
	roles := map[string]string{"can1": "can", "db1": "db", "db2": "db", "db3": "db", "web1": "web", "web2": "web", "web3": "web", "web4": "web"}
	if testing.Short() {
		members, last = 1, 15*time.Second
		roles = map[string]string{"can1": "can", "db1": "db", "db2": "db", "web1": "web"}
	}
	f := newFleet(t, roles, nil)
	f.onEtcd(members, roles)
	t.Logf("PULLET_TEST_SEED=%d: %d nodes, %d members of etcd, onLost: %s, for %s", f.seed, len(roles), members, f.onLost, last)
	f.release("", "")
	f.startAll()
	var once []func(*rand.Rand)
	if !testing.Short() {
		once = append(once, f.longStop, f.longStall)
	}
	f.faults(last, once...)
	f.judged()
}

// judged has the fleet settle, ends it, and judges what happened.
func (f *fleet) judged() {
	f.t.Helper()
	unsettled := f.settles(3 * time.Minute)
	f.stopAll()
	j := newJudge(f)
	j.replay(f.history())
	if unsettled != "" {
		j.breach("%s", unsettled)
	}
	if err := f.cluster.same(f.t.Context(), f.client); err != nil {
		j.breach("%v", err)
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
