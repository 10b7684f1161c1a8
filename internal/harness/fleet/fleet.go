// Package fleet runs a fleet of real agents on an etcd, injects faults, and has its history judged. Tests only.
package fleet

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pullet/pullet/internal/harness/cluster"
	"github.com/pullet/pullet/internal/harness/history"
	"github.com/pullet/pullet/internal/harness/link"
	"github.com/pullet/pullet/internal/harness/process"
	"github.com/pullet/pullet/state"
)

// Options describe a fleet.
type Options struct {
	Program  string            // pullet
	Seed     uint64            // of the faults
	Roles    map[string]string // by node
	Duration time.Duration     // of the faults
	Members  int               // of etcd
	Long     bool              // one node is frozen, and one cut off, for longer than a lease
}

// Run runs a fleet on an etcd during faults, and fails the test if the fleet broke a promise or does not get all nodes
// to the last version after them.
func Run(t testing.TB, o Options) {
	t.Helper()
	f := newFleet(t, o, nil)
	f.startEtcd(o.Members, o.Roles)
	t.Logf("%d nodes, %d members of etcd, onLost: %s, for %s", len(o.Roles), o.Members, f.onLost, o.Duration)
	f.repository.release("", "")
	f.startAll()
	var once []func(*rand.Rand)
	if o.Long {
		once = append(once, f.freezeLong, f.cutLong)
	}
	f.inject(o.Duration, once...)
	f.finish()
}

// fleet is a fleet of real processes: agents that reach the members of etcd over links.
type fleet struct {
	t        testing.TB
	program  string // pullet
	dir      string
	seed     uint64
	onLost   string
	cluster  *cluster.Cluster
	client   *clientv3.Client
	store    *state.Store
	nodes    []*node
	operates []string // added to the environment of an operator

	repository *repository

	mu       sync.Mutex
	counts   map[string]int   // of faults
	until    time.Time        // the end of the faults
	restless time.Time        // the end of the faults of leaders of etcd
	acked    map[int64]string // writes that etcd acknowledged, by revision
}

// node is one host of a fleet: its agent, and its link to etcd.
type node struct {
	*process.Process
	link    *link.Link
	role    string
	carries bool // may carry the datastore
}

// newFleet returns a fleet with its repository and without nodes. The carriers may carry its datastore.
func newFleet(t testing.TB, o Options, carriers []string) *fleet {
	t.Helper()
	dir, err := os.MkdirTemp("", "pullet-fleet-") // it is kept if the test fails
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
	onLost := []string{"hold", "release"}[o.Seed%2]
	return &fleet{
		t: t, program: o.Program, dir: dir, seed: o.Seed, onLost: onLost, counts: map[string]int{}, acked: map[int64]string{},
		repository: newRepository(t, dir, onLost, o.Roles, carriers),
	}
}

// startEtcd starts an etcd, and configures the nodes and the operator for it.
func (f *fleet) startEtcd(members int, roles map[string]string) {
	f.cluster = cluster.Start(f.t, cluster.Options{Dir: f.dir, Size: members})
	f.connect()
	f.cluster.AwaitWrite(f.client)
	for _, name := range slices.Sorted(maps.Keys(roles)) {
		f.nodes = append(f.nodes, f.addNode(name, roles[name]))
	}
	f.repository.write("operator/pullet.yaml", fmt.Sprintf(nodeConfig, "operator", "none", f.dir+"/repo",
		quoted(f.cluster.Endpoints()), f.dir+"/operator"))
}

// connect opens the record of the fleet without a link.
func (f *fleet) connect() {
	f.client = f.cluster.Connect()
	f.store = state.Over(f.client, "default", nil)
}

// nodeConfig is the configuration of a node.
const nodeConfig = `node: {name: %[1]s, labels: {role: %[2]s}}
repositories: [{name: main, url: %[3]q, ref: main}]
etcd: {endpoints: [%[4]s]}
agent: {interval: 2s, splay: 0s, wait: 5s}
paths: {state: %[5]s/state, hostVars: %[5]s/vars.d}
`

// quoted joins texts for a YAML list.
func quoted(all []string) string { return "'" + strings.Join(all, "', '") + "'" }

// addNode writes the configuration of a node, and opens its links to etcd.
func (f *fleet) addNode(name, role string) *node {
	n := f.newNode(name, role)
	var endpoints []string
	for _, member := range f.cluster.Addresses() {
		endpoints = append(endpoints, "http://"+n.link.Proxy(f.t, member))
	}
	f.repository.write(name+"/pullet.yaml", fmt.Sprintf(nodeConfig, name, role, f.dir+"/repo", quoted(endpoints),
		filepath.Join(f.dir, name)))
	return n
}

// newNode returns a node without a configuration.
func (f *fleet) newNode(name, role string) *node {
	home := filepath.Join(f.dir, name)
	if err := os.MkdirAll(home+"/root/etc", 0o755); err != nil {
		f.t.Fatal(err)
	}
	return &node{role: role, link: link.New(), Process: &process.Process{
		Name: name, Log: home + "/agent.log", MustLive: true,
		Args: []string{f.program, "agent", "--config", home + "/pullet.yaml", "--root", home + "/root"},
	}}
}

// startAll starts the agents. They end with the test.
func (f *fleet) startAll() {
	for _, n := range f.nodes {
		n.Start(f.t)
		f.t.Cleanup(func() { n.Kill(true) })
	}
}

// count counts a fault.
func (f *fleet) count(what string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.counts[what]++
}

// finish waits until the fleet settles, stops it, and judges its history and ledgers.
func (f *fleet) finish() {
	f.t.Helper()
	unsettled := f.settle(3 * time.Minute)
	f.stopAll()
	roles := map[string]string{}
	for _, n := range f.nodes {
		roles[n.Name] = n.role
	}
	changes := history.Read(f.t, f.client, filepath.Join(f.dir, "history"))
	v := history.Judge(history.Fleet{
		Dir: f.dir, Roles: roles, OnLost: f.onLost, GroupLimit: groupLimit, TotalLimit: totalLimit,
		Versions: f.repository.versions, Written: written, Acked: f.acked,
	}, changes)
	if unsettled != "" {
		v.Breaches = append(v.Breaches, unsettled)
	}
	if err := f.cluster.CheckSame(f.t.Context(), f.client); err != nil {
		v.Breaches = append(v.Breaches, err.Error())
	}
	f.report(v)
}

// report logs the faults and the contents of the history, and fails the test if there are breaches.
func (f *fleet) report(v history.Verdict) {
	f.t.Helper()
	summary := func(counts map[string]int) string {
		var parts []string
		for _, what := range slices.Sorted(maps.Keys(counts)) {
			parts = append(parts, fmt.Sprintf("%s %d", what, counts[what]))
		}
		return strings.Join(parts, ", ")
	}
	f.t.Logf("done to the fleet: %s", summary(f.counts))
	f.t.Logf("in its history: %s", summary(v.Seen))
	for i, b := range v.Breaches {
		if i == 50 {
			f.t.Errorf("and %d more", len(v.Breaches)-i)
			break
		}
		f.t.Error(b)
	}
	if v.Seen["claims"] < len(f.nodes) || v.Seen["barriers"] == 0 || v.Seen["tokens"] == 0 ||
		v.Seen["commands behind barriers"] == 0 {
		f.t.Error("hardly anything happened: this run judges nothing")
	}
	if 3*v.Seen["versions"] < len(f.repository.versions) {
		f.t.Errorf("the fleet was stuck: it came to %d of %d versions", v.Seen["versions"], len(f.repository.versions))
	}
}

// stopAll ends the agents.
func (f *fleet) stopAll() {
	for _, n := range f.nodes {
		n.Kill(true)
	}
}
