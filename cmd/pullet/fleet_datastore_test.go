package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pullet/pullet/datastore"
)

// datastoreMembers is how many hosts carry the datastore of a fleet that keeps its own, and datastoreReplace after what
// time another host takes the place of one that is away.
const (
	datastoreMembers = 3
	datastoreReplace = 10 * time.Second
)

// datastoreHosts are the hosts of a fleet that keeps its own datastore, each behind a link of its own. They know the
// members at 0.0.0.0, which is this machine, and for which Go takes a proxy, unlike for 127.0.0.1: agents, commands and
// what members tell each other go through the gates of their hosts. A keeper alone looks without one how the other
// members are.
type datastoreHosts struct {
	*fleet
	network
	at map[string]datastore.Addresses // by host
}

// TestFleetOnItsOwnDatastoreUnderFaults runs a fleet whose hosts carry its datastore, made by the commands of an
// operator, while its members are killed, stopped and cut off from each other and from the hosts, and one loses its
// disk and is replaced. It is judged as TestFleetUnderFaults is. What the datastore said that it wrote it has in the
// end, on all members.
func TestFleetOnItsOwnDatastoreUnderFaults(t *testing.T) {
	if testing.Short() {
		t.Skip("three members and their elections take a while")
	}
	t.Parallel()
	roles := map[string]string{"can1": "can", "db1": "db", "db2": "db", "db3": "db", "web1": "web", "web2": "web"}
	carriers := []string{"db1", "db2", "db3", "web1"}
	f := newFleet(t, roles, carriers)
	t.Logf("PULLET_TEST_SEED=%d: %d nodes, %d of them carry the datastore, onLost: %s", f.seed, len(roles), datastoreMembers, f.onLost)
	f.release("", "")
	d := &datastoreHosts{f, network{map[string]string{}, map[string]string{}, map[string]*link{}}, map[string]datastore.Addresses{}}
	d.create("db1", roles, carriers)
	f.awaits("all members carry the datastore", 3*time.Minute, func(ctx context.Context) error {
		return f.cluster.whole(ctx, f.client)
	})
	f.faults(time.Minute, d.diskLoss, d.calm)
	f.judged()
}

// awaits waits until something is so.
func (f *fleet) awaits(what string, atMost time.Duration, wrong func(context.Context) error) {
	f.t.Helper()
	for end := time.Now().Add(atMost); ; time.Sleep(200 * time.Millisecond) {
		ctx, cancel := context.WithTimeout(f.t.Context(), 5*time.Second)
		err := wrong(ctx)
		cancel()
		if err == nil {
			return
		}
		if time.Now().After(end) {
			f.t.Fatalf("not in %s: %s: %v", atMost, what, err)
		}
	}
}

// create makes the fleet: the first host has its datastore, the others join it, and so does an operator elsewhere.
func (d *datastoreHosts) create(first string, roles map[string]string, carriers []string) {
	d.cluster = &cluster{t: d.t, scheme: "https", count: datastoreMembers, tended: true}
	for _, name := range slices.Sorted(maps.Keys(roles)) {
		n := d.newNode(name, roles[name])
		n.env = append(gated(n.gate(d.t, &d.network)), "PULLET_ROOT="+filepath.Join(d.dir, name, "root"))
		d.write(name+"/root/etc/machine-id", name+"machine\n")
		if n.carries = slices.Contains(carriers, name); n.carries {
			d.carrier(n)
		}
		d.nodes = append(d.nodes, n)
		d.host(n, name == first)
	}
	d.operates = gated(newLink().gate(d.t, &d.network))
	one := d.nodes[slices.IndexFunc(d.nodes, func(n *fleetNodeProcess) bool { return n.name == first })]
	at := d.at[first]
	d.must(one.env, "fleet", "create", "--client", at.Client, "--door", at.Door, "--peer", at.Peer, "--dir", d.keepsIn(first), "--config", one.config(d.fleet))
	d.tend()
	member := d.cluster.members[slices.IndexFunc(d.cluster.members, func(m *process) bool { return m.name == first })]
	d.awaits("the datastore serves", time.Minute, func(context.Context) error {
		if text := member.said(); !strings.Contains(text, "the datastore serves") {
			return fmt.Errorf("pullet etcd says: %s", text)
		}
		return nil
	})
	for _, n := range d.nodes {
		if n != one {
			d.join(one, n.env, n.config(d.fleet), n.name, "--label", "role="+n.role)
		}
	}
	d.join(one, d.operates, d.dir+"/operator/pullet.yaml", "bob", "--operator")
	d.believes(first)
	d.connect()
	d.startAll()
}

// gated is the environment of a host behind a gate.
func gated(at string) []string {
	return []string{"HTTPS_PROXY=http://" + at, "https_proxy=", "NO_PROXY=", "no_proxy="}
}

// config is the configuration of a node.
func (n *fleetNodeProcess) config(f *fleet) string {
	return filepath.Join(f.dir, n.name, "pullet.yaml")
}

// keepsIn is where a host keeps the datastore.
func (d *datastoreHosts) keepsIn(host string) string { return filepath.Join(d.dir, host, "ds") }

// carrier gives a host its addresses, and the process that serves the datastore there when it is to.
func (d *datastoreHosts) carrier(n *fleetNodeProcess) {
	known := func(here string) string {
		_, port, _ := net.SplitHostPort(here)
		at := net.JoinHostPort("0.0.0.0", port)
		d.own[at], d.entries[at], d.links[at] = here, n.entry(d.t, here), n.link
		return at
	}
	client := freePort(d.t)
	d.at[n.name] = datastore.Addresses{Client: known(client), Peer: known(freePort(d.t)), Door: freePort(d.t)}
	d.cluster.clients = append(d.cluster.clients, client)
	d.cluster.members = append(d.cluster.members, &process{
		name: n.name, env: n.env, log: filepath.Join(d.dir, n.name, "datastore.log"),
		args: []string{"pullet", "etcd", "--config", n.config(d.fleet), "--root", filepath.Join(d.dir, n.name, "root")},
	})
}

const datastoreHost = `agent: {interval: 2s, splay: 0s, wait: 5s}
paths: {state: %[1]s/state, hostVars: %[1]s/vars.d}
`

// host writes the configuration of a host. The first one has its name and repositories there, the others get them when
// they join.
func (d *datastoreHosts) host(n *fleetNodeProcess, first bool) {
	text := fmt.Sprintf(datastoreHost, filepath.Join(d.dir, n.name))
	if at, carries := d.at[n.name]; carries {
		text += fmt.Sprintf("datastore: {dir: %q, candidate: {client: %q, peer: %q, door: %q}}\n", d.keepsIn(n.name), at.Client, at.Peer, at.Door)
	}
	if first {
		text += fmt.Sprintf("node: {name: %s, labels: {role: %s}}\nrepositories: [{name: main, url: %q, ref: main}]\n", n.name, n.role, d.dir+"/repo")
	}
	d.write(n.name+"/pullet.yaml", text)
}

// must runs a command of pullet, which has to succeed.
func (d *datastoreHosts) must(env []string, args ...string) string {
	d.t.Helper()
	out, err := d.command(env, args...)
	if err != nil {
		d.t.Fatalf("pullet %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

// join has somebody join with the line that a host prints.
func (d *datastoreHosts) join(by *fleetNodeProcess, env []string, config, name string, flags ...string) {
	d.t.Helper()
	out := d.must(by.env, append([]string{"fleet", "invite", name, "--config", by.config(d.fleet)}, flags...)...)
	_, line, there := strings.Cut(out, "pullet join ")
	if !there {
		d.t.Fatalf("pullet fleet invite %s prints %s", name, out)
	}
	d.must(env, append([]string{"join", "--no-pull", "--config", config}, strings.Fields(line)...)...)
}

// believes has the test connect with the credentials of a host's keeper, who may do all.
func (d *datastoreHosts) believes(host string) {
	d.t.Helper()
	file := filepath.Join(d.keepsIn(host), "keeper.pem")
	pair, err := tls.LoadX509KeyPair(file, file)
	if err != nil {
		d.t.Fatal(err)
	}
	ca, err := os.ReadFile(filepath.Join(d.keepsIn(host), "ca.pem"))
	if err != nil {
		d.t.Fatal(err)
	}
	d.cluster.tls = &tls.Config{Certificates: []tls.Certificate{pair}, RootCAs: x509.NewCertPool(), MinVersion: tls.VersionTLS12}
	d.cluster.tls.RootCAs.AppendCertsFromPEM(ca)
}

// tend does what systemd does, until the test ends: it starts the datastore where a host is to carry it, and again
// where it was killed or ended with an error.
func (d *datastoreHosts) tend() {
	end, ended := make(chan struct{}), make(chan struct{})
	d.t.Cleanup(func() {
		close(end)
		<-ended
		for _, m := range d.cluster.members {
			m.kill(false)
		}
	})
	go func() {
		defer close(ended)
		for tick := time.Tick(2 * time.Second); ; {
			for _, m := range d.cluster.members {
				if m.busy.TryLock() {
					d.unit(m)
					m.busy.Unlock()
				}
			}
			select {
			case <-tick:
			case <-end:
				return
			}
		}
	}()
}

// unit looks whether a host's datastore is to start. One that ended without an error stays down, until the host is to
// carry it once more.
func (d *datastoreHosts) unit(m *process) {
	if m.runs() {
		return
	}
	_, err := os.Stat(filepath.Join(d.keepsIn(m.name), "authority.pem"))
	failed := m.done != nil && !m.cmd.ProcessState.Success()
	if failed && !m.killed.Load() && err == nil {
		d.count("members that ended with an error")
	}
	if err == nil || failed {
		m.start(d.t)
	}
}

// calm ends the grace time behind a change of the leader soon, as its lease does late: rollouts go on meanwhile. No
// record is restored here.
func (d *datastoreHosts) calm(r *rand.Rand) {
	for time.Now().Before(d.until) {
		sleepFor(r, time.Second, 5*time.Second)
		ctx, cancel := context.WithTimeout(d.t.Context(), 5*time.Second)
		if got, err := d.client.Delete(ctx, d.store.Doubts.GraceKey()); err == nil && got.Deleted > 0 {
			d.count("grace times")
		}
		cancel()
	}
}

// diskLoss is the end of a member with all that it kept: another host takes its place, or it comes again with nothing.
func (d *datastoreHosts) diskLoss(r *rand.Rand) {
	sleepFor(r, 10*time.Second, 25*time.Second)
	var lost uint64
	var m *process
	d.insists("member that can lose its disk", func(ctx context.Context) error {
		listed, err := d.client.MemberList(ctx)
		if err == nil {
			err = d.cluster.whole(ctx, d.client)
		}
		if err != nil {
			return err
		}
		one := listed.Members[r.IntN(len(listed.Members))]
		lost, m = one.ID, d.cluster.members[slices.IndexFunc(d.cluster.members, func(m *process) bool { return m.name == one.Name })]
		return nil
	})
	if m == nil {
		return
	}
	m.busy.Lock()
	m.kill(false)
	err := os.RemoveAll(d.keepsIn(m.name))
	m.busy.Unlock()
	if err != nil {
		d.t.Error(err)
	}
	d.count("disks lost")
	d.insists("member in the place of "+m.name, func(ctx context.Context) error {
		listed, err := d.client.MemberList(ctx)
		if err != nil {
			return err
		}
		for _, one := range listed.Members {
			if one.ID == lost {
				return fmt.Errorf("%s is a member still", m.name)
			}
		}
		return d.cluster.whole(ctx, d.client)
	})
}
