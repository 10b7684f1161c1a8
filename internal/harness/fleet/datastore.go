package fleet

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

	"github.com/pullet/pullet/internal/datastore"
	"github.com/pullet/pullet/internal/freeport"
	"github.com/pullet/pullet/internal/harness/chance"
	"github.com/pullet/pullet/internal/harness/cluster"
	"github.com/pullet/pullet/internal/harness/link"
	"github.com/pullet/pullet/internal/harness/process"
)

// datastoreMembers is the number of hosts that carry the datastore of a fleet that keeps its own. datastoreReplace is
// the time after which another host replaces one that is unreachable.
const (
	datastoreMembers = 3
	datastoreReplace = 10 * time.Second
)

// RunOwnDatastore runs a fleet that keeps its datastore on the carriers, which the commands of an operator make. The
// members are killed, frozen and cut off from each other and from the hosts, and one loses its disk and is replaced.
// The fleet is judged as that of Run is. In addition all members must have every acknowledged write in the end.
func RunOwnDatastore(t testing.TB, o Options, carriers []string) {
	t.Helper()
	f := newFleet(t, o, carriers)
	t.Logf("%d nodes, %d of them carry the datastore, onLost: %s", len(o.Roles), datastoreMembers, f.onLost)
	f.repository.release("", "")
	d := &datastoreHosts{f, link.NewNetwork(), map[string]datastore.Addresses{}}
	d.create(carriers[0], o.Roles, carriers)
	f.await("all members carry the datastore", 3*time.Minute, func(ctx context.Context) error {
		return f.cluster.CheckWhole(ctx, f.client)
	})
	f.inject(o.Duration, d.loseDisk, d.endGrace)
	f.finish()
}

// datastoreHosts are the hosts of a fleet that keeps its own datastore, each behind its own link. They know the members
// at 0.0.0.0, which is this machine: for that address Go uses a proxy, unlike for 127.0.0.1. So agents, commands and
// members connect through the gates of their hosts. Only a keeper checks the other members without one.
type datastoreHosts struct {
	*fleet
	network *link.Network
	at      map[string]datastore.Addresses // by host
}

// await waits until wrong returns nil.
func (f *fleet) await(what string, atMost time.Duration, wrong func(context.Context) error) {
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

// create creates the fleet: the first host has its datastore, and the other hosts and an operator join it.
func (d *datastoreHosts) create(first string, roles map[string]string, carriers []string) {
	d.cluster = cluster.Adopt(d.t, datastoreMembers)
	for _, name := range slices.Sorted(maps.Keys(roles)) {
		n := d.newNode(name, roles[name])
		n.Env = append(gated(n.link.Gate(d.t, d.network)), "PULLET_ROOT="+filepath.Join(d.dir, name, "root"))
		d.repository.write(name+"/root/etc/machine-id", name+"machine\n")
		if n.carries = slices.Contains(carriers, name); n.carries {
			d.addCarrier(n)
		}
		d.nodes = append(d.nodes, n)
		d.configure(n, name == first)
	}
	d.operates = gated(link.New().Gate(d.t, d.network))
	one := d.nodes[slices.IndexFunc(d.nodes, func(n *node) bool { return n.Name == first })]
	at := d.at[first]
	d.mustRun(one.Env, "fleet", "create", "--client", at.Client, "--door", at.Door, "--peer", at.Peer, "--dir",
		d.datastoreDir(first), "--config", one.config(d.fleet))
	d.tend()
	member := d.cluster.Member(first)
	d.await("the datastore serves", time.Minute, func(context.Context) error {
		if text := member.Output(); !strings.Contains(text, "the datastore serves") {
			return fmt.Errorf("pullet etcd says: %s", text)
		}
		return nil
	})
	for _, n := range d.nodes {
		if n != one {
			d.join(one, n.Env, n.config(d.fleet), n.Name, "--label", "role="+n.role)
		}
	}
	d.join(one, d.operates, d.dir+"/operator/pullet.yaml", "bob", "--operator")
	d.useKeeper(first)
	d.connect()
	d.startAll()
}

// gated returns the environment of a host behind a gate.
func gated(at string) []string {
	return []string{"HTTPS_PROXY=http://" + at, "https_proxy=", "NO_PROXY=", "no_proxy="}
}

// config returns the path of the configuration of a node.
func (n *node) config(f *fleet) string {
	return filepath.Join(f.dir, n.Name, "pullet.yaml")
}

// datastoreDir returns the directory of the datastore on a host.
func (d *datastoreHosts) datastoreDir(host string) string { return filepath.Join(d.dir, host, "ds") }

// addCarrier gives a host its addresses, and the process that serves the datastore there.
func (d *datastoreHosts) addCarrier(n *node) {
	known := func(here string) string {
		_, port, _ := net.SplitHostPort(here)
		at := net.JoinHostPort("0.0.0.0", port)
		d.network.Add(d.t, at, here, n.link)
		return at
	}
	client := freeport.AddressFor(d.t)
	d.at[n.Name] = datastore.Addresses{Client: known(client), Peer: known(freeport.AddressFor(d.t)),
		Door: freeport.AddressFor(d.t)}
	d.cluster.Add(&process.Process{
		Name: n.Name, Env: n.Env, Log: filepath.Join(d.dir, n.Name, "datastore.log"),
		Args: []string{d.program, "etcd", "--config", n.config(d.fleet), "--root", filepath.Join(d.dir, n.Name, "root")},
	}, client)
}

// datastoreHost is the configuration of a host.
const datastoreHost = `agent: {interval: 2s, splay: 0s, wait: 5s}
paths: {state: %[1]s/state, hostVars: %[1]s/vars.d}
`

// configure writes the configuration of a host. The first one has its name and repositories there, and the others get
// them when they join.
func (d *datastoreHosts) configure(n *node, first bool) {
	text := fmt.Sprintf(datastoreHost, filepath.Join(d.dir, n.Name))
	if at, carries := d.at[n.Name]; carries {
		text += fmt.Sprintf("datastore: {dir: %q, candidate: {client: %q, peer: %q, door: %q}}\n", d.datastoreDir(n.Name),
			at.Client, at.Peer, at.Door)
	}
	if first {
		text += fmt.Sprintf("node: {name: %s, labels: {role: %s}}\nrepositories: [{name: main, url: %q, ref: main}]\n",
			n.Name, n.role, d.dir+"/repo")
	}
	d.repository.write(n.Name+"/pullet.yaml", text)
}

// mustRun runs a command of pullet, which has to succeed.
func (d *datastoreHosts) mustRun(env []string, args ...string) string {
	d.t.Helper()
	out, err := d.command(env, args...)
	if err != nil {
		d.t.Fatalf("pullet %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

// join lets a host or an operator join with the line that a host prints.
func (d *datastoreHosts) join(by *node, env []string, config, name string, flags ...string) {
	d.t.Helper()
	out := d.mustRun(by.Env, append([]string{"fleet", "invite", name, "--config", by.config(d.fleet)}, flags...)...)
	_, line, there := strings.Cut(out, "pullet join ")
	if !there {
		d.t.Fatalf("pullet fleet invite %s prints %s", name, out)
	}
	d.mustRun(env, append([]string{"join", "--no-pull", "--config", config}, strings.Fields(line)...)...)
}

// useKeeper lets the test connect with the credentials of the keeper of a host, which may do everything.
func (d *datastoreHosts) useKeeper(host string) {
	d.t.Helper()
	file := filepath.Join(d.datastoreDir(host), "keeper.pem")
	pair, err := tls.LoadX509KeyPair(file, file)
	if err != nil {
		d.t.Fatal(err)
	}
	ca, err := os.ReadFile(filepath.Join(d.datastoreDir(host), "ca.pem"))
	if err != nil {
		d.t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	d.cluster.UseTLS(&tls.Config{Certificates: []tls.Certificate{pair}, RootCAs: roots, MinVersion: tls.VersionTLS12})
}

// tend acts as systemd until the test ends: it starts the datastore on hosts that carry it, and again after it
// was killed or ended with an error.
func (d *datastoreHosts) tend() {
	end, ended := make(chan struct{}), make(chan struct{})
	d.t.Cleanup(func() {
		close(end)
		<-ended
		for _, m := range d.cluster.Members() {
			m.Kill(false)
		}
	})
	go func() {
		defer close(ended)
		for tick := time.Tick(2 * time.Second); ; {
			for _, m := range d.cluster.Members() {
				if m.Busy.TryLock() {
					d.tendOne(m)
					m.Busy.Unlock()
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

// tendOne starts the datastore of a host if the unit would. After an end without an error it stays down until the host
// carries the datastore again.
func (d *datastoreHosts) tendOne(m *process.Process) {
	if m.IsRunning() {
		return
	}
	_, err := os.Stat(filepath.Join(d.datastoreDir(m.Name), "authority.pem"))
	failed, killed := m.Failed()
	if failed && !killed && err == nil {
		d.count("members that ended with an error")
	}
	if err == nil || failed {
		m.Start(d.t)
	}
}

// endGrace ends the grace time after a change of the leader soon, which its lease does later, so that rollouts
// continue. No record is restored here.
func (d *datastoreHosts) endGrace(r *rand.Rand) {
	for time.Now().Before(d.until) {
		chance.Sleep(r, time.Second, 5*time.Second)
		ctx, cancel := context.WithTimeout(d.t.Context(), 5*time.Second)
		if got, err := d.client.Delete(ctx, d.store.Doubts.GraceKey()); err == nil && got.Deleted > 0 {
			d.count("grace times")
		}
		cancel()
	}
}

// loseDisk ends a member and removes its data. Another host replaces it, or it joins again.
func (d *datastoreHosts) loseDisk(r *rand.Rand) {
	chance.Sleep(r, 10*time.Second, 25*time.Second)
	var lost uint64
	var m *process.Process
	d.insist("member that can lose its disk", func(ctx context.Context) error {
		listed, err := d.client.MemberList(ctx)
		if err == nil {
			err = d.cluster.CheckWhole(ctx, d.client)
		}
		if err != nil {
			return err
		}
		one := listed.Members[r.IntN(len(listed.Members))]
		lost, m = one.ID, d.cluster.Member(one.Name)
		return nil
	})
	if m == nil {
		return
	}
	m.Busy.Lock()
	m.Kill(false)
	err := os.RemoveAll(d.datastoreDir(m.Name))
	m.Busy.Unlock()
	if err != nil {
		d.t.Error(err)
	}
	d.count("disks lost")
	d.insist("member in the place of "+m.Name, func(ctx context.Context) error {
		listed, err := d.client.MemberList(ctx)
		if err != nil {
			return err
		}
		for _, one := range listed.Members {
			if one.ID == lost {
				return fmt.Errorf("%s is still a member", m.Name)
			}
		}
		return d.cluster.CheckWhole(ctx, d.client)
	})
}
